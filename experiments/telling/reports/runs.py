"""What a report says of single runs: which do not count, which count with doubt, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from experiments.models import Experiment, Run

HIDDEN = "Its latency is left out: the load could not be kept up, so what was measured is mostly waiting."
PART_OF_AA = "It belongs to the A/A check, which compares the baseline with itself."


@dataclass(frozen=True)
class Remark:
    """`what` is the short form: invalid, failed, cancelled, lost, suspect, ...; `sentences` say why."""

    number: int
    variant: str
    what: str
    sentences: tuple[str, ...]


def remarks_on(experiment: Experiment, runs: Sequence[Run], *, counts: bool) -> tuple[Remark, ...]:
    """With `counts`, the doubts about runs that count; else the finished runs that do not count, and why."""
    found = []
    for run in runs:
        if run.is_live:
            continue
        in_check = not experiment.compares(run.block)
        if (run.is_usable and not in_check) is not counts:
            continue
        remark = _doubt(run) if counts else _reason(run, in_check and run.is_usable)
        if remark is not None:
            found.append(remark)
    return tuple(found)


def _doubt(run: Run) -> Remark | None:
    sentences = _said(run, "warn")
    if run.hides_latency:
        sentences = (*sentences, HIDDEN)
    what = str(run.get_validity_display()).lower()
    return Remark(run.number, str(run.variant), what, sentences) if sentences else None


def _reason(run: Run, in_check: bool) -> Remark:
    name = str(run.variant)
    if in_check:
        return Remark(run.number, name, "A/A check", (PART_OF_AA,))
    if run.outcome != Run.Outcome.SUCCEEDED:
        what = str(run.get_outcome_display()).lower()
        return Remark(run.number, name, what, (run.failure or f"The run {what}.",))
    sentences = _said(run, "invalid") or ("No reason is on record.",)
    return Remark(run.number, name, str(run.get_validity_display()).lower(), sentences)


def _said(run: Run, level: str) -> tuple[str, ...]:
    return tuple(str(finding["sentence"]) for finding in run.findings if finding["level"] == level)
