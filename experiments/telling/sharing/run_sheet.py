"""What is shown of one run."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils import timezone

from agents.system import LOADED
from experiments.analysis.outcomes import WORDS
from experiments.judging.evidence.roles import CHECK, MemberFigures, loaded_role, members_of
from experiments.models import Run, SampleSeries, StoredVerdict
from experiments.registry.errors import Conflict
from experiments.registry.metrics.own_metrics import metrics_of, standing_metrics
from experiments.registry.metrics.vocabulary import METRICS, ROLE_FIGURES, MetricSpec
from experiments.registry.runs.summary import figure
from experiments.telling.reports.answer import change_text, changes_of
from experiments.telling.reports.machines import machine_facts
from experiments.telling.reports.markdown import figure_text
from experiments.telling.reports.plots import Plot
from experiments.telling.reports.runs import HIDDEN
from experiments.telling.sharing import wording
from experiments.telling.sharing.lines import PlotLine, line_plot, second_ticks
from experiments.telling.sharing.sheet import Fact, Sentences, Sheet, Table, Tone

HEADLINE = ("latency_p99_ms", "throughput_rps")
"""What the badge shows: the first one that there is."""
MOST_OTHERS = 3
_CPU = "cpu_set.busy_ratio"
_TONES: dict[str, Tone] = {"valid": "good", "suspect": "warn", "invalid": "bad"}
_MOST_POINTS = 300


def run_sheet(run: Run) -> Sheet:
    """The run as it is now. Conflict while it is not finished: its figures are not final."""
    if run.is_live:
        raise Conflict(f"Run #{run.number} is not finished; it has a report, and can be shared, when it has ended.")
    verdict = verdict_on(run)
    tone = _tone(run, verdict)
    return Sheet(
        title=_title(run),
        sentence=_sentence(run, verdict),
        caution=_caution(run),
        tone=tone,
        badge_label=f"run #{run.number}",
        badge_value=_badge(run, verdict),
        facts=_facts(run),
        plots=tuple(_plots(run)),
        sections=tuple(_sections(run)),
        frozen_at=timezone.now(),
        made_by_version=wording.version(),
    )


def _title(run: Run) -> str:
    parts = [str(run.variant or run.recipe or "imported figures")]
    if run.workload:
        parts.append(f"under {run.workload}")
    return f"Run #{run.number}: {' '.join(parts)}"


def verdict_on(run: Run) -> StoredVerdict | None:
    """What its experiment found on its variant, for the metric that decides."""
    if run.experiment is None or run.variant is None or run.variant.is_baseline:
        return None
    return run.experiment.verdicts.filter(candidate=run.variant, metric=run.experiment.primary_metric).first()


def _tone(run: Run, verdict: StoredVerdict | None) -> Tone:
    if run.outcome != Run.Outcome.SUCCEEDED:
        return "neutral" if run.outcome == Run.Outcome.CANCELLED else "bad"
    if verdict is not None and run.is_usable:
        return wording.outcome_tone(verdict.shown)
    return _TONES.get(run.validity, "neutral")


def _sentence(run: Run, verdict: StoredVerdict | None) -> str:
    if run.outcome != Run.Outcome.SUCCEEDED:
        return f"The run {run.get_outcome_display().lower()}. {run.failure}".strip()
    said = [
        f"{wording.short_name(metric)} {wording.value_text(value, metric)}"
        for metric in _told_first(run, ("throughput_rps", "latency_p99_ms", "errors_total"))
        if (value := figure(run, metric.name)) is not None
    ]
    text = ", ".join(said) or "No figure is on record"
    text = f"{text[0].upper()}{text[1:]}; the run is {run.get_validity_display().lower()}."
    return f"{text} {verdict.sentence}" if verdict and run.is_usable else text


def _told_first(run: Run, names: Sequence[str]) -> list[MetricSpec]:
    """What stands for a run without requests/s, then those of `names` that it has; else the first of its others."""
    own = standing_metrics(run.team_id, run.metrics)[:MOST_OTHERS]
    known = [METRICS[name] for name in names if figure(run, name) is not None]
    return [*own, *known] or list(metrics_of(run.team_id, run.metrics).values())[:MOST_OTHERS]


def _caution(run: Run) -> str:
    found = [str(one["sentence"]) for one in run.findings if one["level"] in ("invalid", "warn")]
    if not found:
        return ""
    said = "These figures must not be used." if run.validity == Run.Validity.INVALID else "Use these figures with care."
    return " ".join([said, *found])


def _badge(run: Run, verdict: StoredVerdict | None) -> str:
    if run.outcome != Run.Outcome.SUCCEEDED:
        return str(run.get_outcome_display()).lower()
    known = _told_first(run, HEADLINE)
    said = [f"{wording.short_name(metric)} {wording.value_text(figure(run, metric.name), metric)}" for metric in known]
    judged = WORDS[verdict.shown] if verdict and run.is_usable else str(run.get_validity_display()).lower()
    return ", ".join([*said[:1], judged])


def _facts(run: Run) -> tuple[Fact, ...]:
    took_s = (run.finished_at - run.started_at).total_seconds() if run.started_at and run.finished_at else None
    return wording.facts(
        ("Outcome", str(run.get_outcome_display()).capitalize()),
        ("Validity", str(run.get_validity_display()).capitalize() if run.validity else None),
        ("Ended", wording.moment_text(run.finished_at)),
        ("Took", f"{took_s:,.0f} s" if took_s is not None else None),
        ("Application", str(run.application) if run.application else None),
        ("Recipe", str(run.recipe) if run.recipe else None),
        ("Workload", str(run.workload) if run.workload else None),
        ("Server under test", wording.host_name(run.sut) if run.sut else None),
        *_members(run),
        ("Driver hosts", ", ".join(wording.host_name(host) for host in run.drivers.in_order) if run.drivers else None),
        ("Labels", wording.labels_text(run)),
        *((label[:1].upper() + label[1:], value) for label, value in _machine(run)),
    )


def _members(run: Run) -> list[tuple[str, str]]:
    """The hosts of a system's further members; none for a single server."""
    members = run.drivers.members if run.drivers else {}
    return [(role.capitalize(), wording.host_name(host)) for role, host in members.items()]


def _machine(run: Run) -> tuple[tuple[str, str], ...]:
    return machine_facts(run.sut_profile.facts) if run.sut_profile else ()


def _plots(run: Run) -> list[Plot]:
    found: list[Plot] = []
    if (curve := wording.percentiles_of([run], [f"run #{run.number}"])) is not None:
        found.append(curve)
    series = SampleSeries.objects.filter(run=run, channel=_CPU).order_by("-role")
    lines = [PlotLine(_whose(run, one.role), points) for one in series if (points := _points(one))]
    if lines:
        found.append(
            line_plot(
                lines,
                name="cpu",
                title="CPUs busy during the run, 0 s is where measuring began",
                summary="; ".join(f"{line.label} at most {_most_pct(line):.0f} %" for line in lines),
                y_text=lambda value: f"{value * 100:g} %",
                x_ticks=second_ticks,
                from_zero=True,
            )
        )
    return found


def _whose(run: Run, role: str) -> str:
    """Whose CPUs a line shows: in a system the loaded server has a name of its own."""
    if role != "sut":
        return f"{role} host"
    own = loaded_role(run)
    return f"{own} host" if own not in ("", LOADED) else "server under test"


def _most_pct(line: PlotLine) -> float:
    return max(y for _, y, _ in line.points) * 100


def _points(series: SampleSeries) -> list[tuple[float, float, str]]:
    step = max(1, -(-len(series.at_s) // _MOST_POINTS))
    pairs = zip(series.at_s[::step], series.values[::step], strict=True)
    return [(at_s, value, "") for at_s, value in pairs]


def _sections(run: Run) -> list[Table | Sentences]:
    found: list[Table | Sentences] = []
    known = [metric for metric in metrics_of(run.team_id, run.metrics).values() if figure(run, metric.name) is not None]
    if known:
        rows = tuple((_head(metric), figure_text(figure(run, metric.name), metric)) for metric in known)
        note = HIDDEN if run.hides_latency else ""
        found.append(Table(title="Figures", heads=("Metric", "Value"), rows=rows, note=note))
    if run.experiment is not None and run.variant is not None and run.is_usable:
        changes = [one for one in changes_of(run.experiment) if one.candidate == run.variant.name]
        if changes:
            against = tuple((_head(one.metric), change_text(one), one.sentence) for one in changes)
            heads = ("Metric", f"Change against {changes[0].baseline} [95 %]", "In words")
            found.append(Table(title="Verdicts of its experiment", heads=heads, rows=against, numbers_from=3))
    if members := members_of(run):
        limit = next((str(one["sentence"]) for one in run.findings if one["check"] == CHECK), "")
        found.append(_of_members(run, members, limit))
    if run.findings:
        checks = tuple(f"{str(one['level']).capitalize()}: {one['sentence']}" for one in run.findings)
        found.append(Sentences(title="Checks of validity", sentences=checks))
    return found


def _of_members(run: Run, members: Sequence[MemberFigures], limit: str) -> Table:
    """The members of a system beside each other."""
    heads = ("Member", "Server", "Host", *(one.label.rpartition(" ")[0] for one in ROLE_FIGURES.values()))
    hosts = run.drivers.members if run.drivers else {}
    rows = tuple(
        (
            one.role,
            one.server,
            wording.host_name(run.sut if one.is_loaded else hosts.get(one.role)),
            *(figure_text(getattr(one, name), metric) for name, metric in ROLE_FIGURES.items()),
        )
        for one in members
    )
    return Table(title="Members of the system", heads=heads, rows=rows, numbers_from=3, note=limit)


def _head(metric: MetricSpec) -> str:
    return wording.metric_head(metric)
