"""A comparison as Markdown, for a ticket or a pull request."""

from __future__ import annotations

from experiments.judging.comparing.comparison import Comparison
from experiments.judging.evidence.roles import limit_of_runs
from frontend.shared.templatetags.units import in_unit, signed_pct


def markdown(comparison: Comparison, url: str) -> str:
    """A table of metrics, the baseline first, and what else differs."""
    runs = comparison.runs
    names = [f"#{run.number} {run.recipe or run.origin}" for run in runs]
    lines = [
        f"| metric | {_cell(names[0])} (baseline) | {' | '.join(_cell(name) for name in names[1:])} |",
        f"| --- | {' | '.join('---:' for _ in names)} |",
    ]
    for row in comparison.rows:
        cells = [in_unit(row.values[0], row.metric.unit)]
        for value, change_pct in zip(row.values[1:], row.changes_pct[1:], strict=True):
            change = f" ({signed_pct(change_pct / 100)})" if change_pct is not None else ""
            cells.append(f"{in_unit(value, row.metric.unit)}{change}")
        lines.append(f"| {row.metric.label} | {' | '.join(cells)} |")
    if comparison.comparable:
        lines += ["", "Comparable: workload, load tool, application, hardware and validity are the same."]
    else:
        lines += ["", "Not directly comparable, these differ as well:", ""]
        lines += [f"- {c.what}: {_cell(' / '.join(c.values))}" for c in comparison.confounders]
    limits = [(run.number, limit.sentence) for run in runs if (limit := limit_of_runs([run]))]
    lines += ["", *(f"- #{number}: {_cell(sentence)}" for number, sentence in limits)] if limits else []
    return "\n".join([*lines, "", url, ""])


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
