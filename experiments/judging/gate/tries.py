"""The gate of a run that was tried again: its newest try decides, and is waited for."""

from __future__ import annotations

from dataclasses import replace

from experiments.judging.gate.decision import GateVerdict, run_gate
from experiments.judging.gate.rules import Inconclusive
from experiments.models import Run


def newest_try(run: Run) -> Run:
    """The last run of the chain of retries behind this one; the run itself when it was not tried again."""
    while run.outcome in Run.TRIED_AGAIN and (again := run.retries.order_by("number").last()) is not None:
        run = again
    return run


def gate_of_tries(run: Run, inconclusive: Inconclusive = "neutral") -> GateVerdict:
    """The decision on a run by its newest try, which it names."""
    newest = newest_try(run)
    verdict = replace(run_gate(newest, inconclusive), decided_by=newest.number)
    if newest.pk == run.pk:
        return verdict
    ended = f"Run #{run.number} ended as {run.get_outcome_display().lower()} and was tried again"
    return replace(verdict, reasons=(f"{ended}: run #{newest.number} decides.", *verdict.reasons))
