"""What is shown of runs side by side."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils import timezone

from experiments.analysis.number_text import signed_percent
from experiments.judging.comparing.comparison import Comparison, MetricRow, compare
from experiments.models import Run
from experiments.registry.errors import Conflict
from experiments.telling.reports.markdown import figure_text
from experiments.telling.reports.plots import ROW, TOP, Axis, Dot, PlotRow, RowPlot, changes_plot
from experiments.telling.sharing import wording
from experiments.telling.sharing.sheet import Fact, Sentences, Sheet, Table, Tone

HEADLINE = ("throughput_rps", "latency_p99_ms")
_ONE_EACH = "One run each: a single difference may be noise."


def comparison_sheet(runs: Sequence[Run]) -> Sheet:
    """The runs as `comparable_runs` gives them, the first one the baseline. Conflict while one is not finished."""
    live = next((run for run in runs if run.is_live), None)
    if live is not None:
        raise Conflict(f"Run #{live.number} is not finished; share the comparison when it has ended.")
    found = compare(runs)
    names = _names(runs)
    row = _headline(found)
    tables = [_metrics(found, names), wording.difference_table(found.configuration, names)]
    sections: list[Table | Sentences] = [table for table in tables if table is not None]
    if found.confounders:
        said = tuple(f"{one.what}: {' / '.join(_told(one.what, one.values))}" for one in found.confounders)
        sections.insert(1, Sentences(title="What else differs", sentences=said))
    return Sheet(
        title=f"Comparison of {', '.join(names[1:])} with {names[0]}",
        sentence=_sentence(found, row, names),
        caution=_caution(found),
        tone=_tone(found, row),
        badge_label=f"{names[1]} against {names[0]}",
        badge_value=_badge(row),
        facts=tuple(Fact(label=name, value=_described(run)) for run, name in zip(runs, names, strict=True)),
        plots=tuple(plot for plot in (_changes(found, names), wording.percentiles_of(runs, names)) if plot),
        sections=tuple(sections),
        frozen_at=timezone.now(),
        made_by_version=wording.version(),
    )


def _names(runs: Sequence[Run]) -> list[str]:
    return [f"#{run.number}" for run in runs]


def _described(run: Run) -> str:
    parts = [str(run.recipe or "imported figures"), str(run.get_validity_display()).lower() if run.validity else ""]
    parts += [wording.moment_text(run.finished_at), wording.labels_text(run)]
    return ", ".join(part for part in parts if part)


def _told(what: str, values: Sequence[str]) -> list[str]:
    """The names of hosts stay with the team: that they differ is what matters here."""
    if what in ("SUT", "driver host"):
        return [f"host {list(dict.fromkeys(values)).index(value) + 1}" for value in values]
    return list(values)


def _headline(found: Comparison) -> MetricRow | None:
    rows = {row.metric.name: row for row in found.rows}
    return next((rows[name] for name in HEADLINE if name in rows), next(iter(rows.values()), None))


def _caution(found: Comparison) -> str:
    invalid = [f"#{run.number}" for run in found.runs if run.validity == Run.Validity.INVALID]
    said = [f"{' and '.join(invalid)} must not be used: invalid."] if invalid else []
    if not found.comparable:
        count = len(found.confounders)
        said.append(f"{count} thing{'s' if count > 1 else ''} differ{'' if count > 1 else 's'} apart from the recipe.")
    return " ".join([*said, _ONE_EACH])


def _sentence(found: Comparison, row: MetricRow | None, names: Sequence[str]) -> str:
    if row is None:
        return "The runs have no figure in common."
    parts = []
    for name, value, change_pct in zip(names[1:], row.values[1:], row.changes_pct[1:], strict=True):
        change = signed_percent(change_pct) if change_pct is not None else "no change can be given"
        parts.append(f"{name} {wording.value_text(value, row.metric)} ({change})")
    base = wording.value_text(row.values[0], row.metric)
    return f"{row.metric.label} against {base} of {names[0]}: {', '.join(parts)}."


def _tone(found: Comparison, row: MetricRow | None) -> Tone:
    """Of two comparable runs only, and only beyond the noise floor of the metric."""
    if row is None or len(found.runs) != 2 or not found.comparable:
        return "neutral"
    change_pct = row.changes_pct[1]
    if change_pct is None or abs(change_pct) / 100 < row.metric.noise_floor_ratio:
        return "neutral"
    return "good" if (change_pct > 0) == row.metric.higher_is_better else "bad"


def _badge(row: MetricRow | None) -> str:
    if row is None or row.changes_pct[1] is None:
        return "no change known"
    return f"{wording.short_name(row.metric)} {signed_percent(row.changes_pct[1])}"


def _changes(found: Comparison, names: Sequence[str]) -> RowPlot | None:
    """Each metric's change against the baseline, one dot per run."""
    known = [row for row in found.rows if any(change_pct is not None for change_pct in row.changes_pct)]
    if not known:
        return None
    axis = Axis([0.0, *(change_pct for row in known for change_pct in row.changes_pct if change_pct is not None)])
    rows = []
    for index, row in enumerate(known):
        pairs = [
            (name, change_pct)
            for name, change_pct in zip(names, row.changes_pct, strict=True)
            if change_pct is not None
        ]
        said = ", ".join(f"{name} {signed_percent(change_pct)}" for name, change_pct in pairs)
        alone = axis.at(pairs[0][1]) if len(pairs) == 1 else None
        dots = tuple(Dot(axis.at(change_pct), f"{name} {signed_percent(change_pct)}") for name, change_pct in pairs)
        rows.append(
            PlotRow(
                label=row.metric.label,
                full_label=wording.metric_head(row.metric),
                y=TOP + ROW * (index + 0.5),
                low_x=None if alone is None else min(alone, axis.at(0.0)),
                high_x=None if alone is None else max(alone, axis.at(0.0)),
                middle_x=alone,
                title=f"{row.metric.label}: {said}",
                dots=() if alone is not None else dots,
                colour=1,
            )
        )
    return changes_plot(
        title=f"Change against {names[0]}, one run each",
        summary=f"{'; '.join(row.title for row in rows)}.",
        rows=rows,
        axis=axis,
    )


def _metrics(found: Comparison, names: Sequence[str]) -> Table | None:
    rows = []
    for row in found.rows:
        cells = [wording.metric_head(row.metric), figure_text(row.values[0], row.metric)]
        for value, change_pct in zip(row.values[1:], row.changes_pct[1:], strict=True):
            cells += [figure_text(value, row.metric), "—" if change_pct is None else signed_percent(change_pct)]
        rows.append(tuple(cells))
    heads = ["Metric", f"{names[0]} baseline"]
    for name in names[1:]:
        heads += [name, "Change"]
    return Table(title="Metrics", heads=tuple(heads), rows=tuple(rows)) if rows else None
