"""What came of one trial: measured, invalid (it is made again), or the configuration is to blame."""

from __future__ import annotations

from dataclasses import dataclass

from experiments.asking.tunings.trials import LEAST_RATIO
from experiments.models import Run, Tuning, TuningTrial
from experiments.registry.metrics.vocabulary import label_of
from experiments.registry.runs.summary import figure, is_hidden

Result = TuningTrial.Result

OF_THE_SERVER = frozenset({"errors", "connect_errors", "offered_rate"})
"""Checks that make a run invalid, but say something about the configuration: the server did not bear the load."""


@dataclass(frozen=True)
class Judged:
    """`figure` and `bounded` only when the result is ok. `hopeless`: no trial of this search could have a figure."""

    result: TuningTrial.Result
    reason: str = ""
    figure: float | None = None
    bounded: tuple[float, ...] = ()
    hopeless: bool = False


def judged(tuning: Tuning, run: Run) -> Judged:
    """What the ended run says of its configuration."""
    if run.outcome != Run.Outcome.SUCCEEDED:
        said = f"{run.failure or f'The run ended as {run.get_outcome_display()}.'} {run.failure_hint}".strip()
        to_blame = run.outcome == Run.Outcome.FAILED and run.cause == Run.Cause.SPECIFICATION
        if not to_blame:
            return Judged(Result.INVALID, said)
        return Judged(Result.CRASHED if run.measured_at else Result.REFUSED, said)
    wrong = [one for one in run.findings if one["level"] == "invalid"]
    if others := [one["sentence"] for one in wrong if one["check"] not in OF_THE_SERVER]:
        return Judged(Result.INVALID, " ".join(others))
    if wrong:
        return Judged(Result.CRASHED, " ".join(one["sentence"] for one in wrong))
    return _measured(tuning, run)


def _measured(tuning: Tuning, run: Run) -> Judged:
    value = figure(run, tuning.metric)
    if value is None or value <= 0:
        return _without(run, tuning.metric)
    bounded = []
    for limit in tuning.limits:
        name, most, least = limit["metric"], limit["at_most"], limit["at_least"]
        seen = figure(run, name)
        if seen is None and name == "errors_total":
            seen = float(run.errors_total or 0)
        if seen is None or (least is not None and seen <= 0):
            return _without(run, name)
        if most == 0:
            if seen > 0:
                return Judged(Result.CRASHED, f"{label_of(name)}: {seen:,.6g}, and the limit is 0.")
        else:
            bounded.append(max(seen, most * LEAST_RATIO) if least is None else 1 / seen)
    return Judged(Result.OK, "", value, tuple(bounded))


def _without(run: Run, metric: str) -> Judged:
    label = label_of(metric)
    if is_hidden(run, metric):
        return Judged(Result.CRASHED, f"{label}: the server was saturated, so that latency is backlog and no figure.")
    if metric in run.metrics:
        return Judged(Result.CRASHED, f"{label} is {run.metrics[metric]:g}: that is no figure to compare.")
    return Judged(Result.INVALID, f"The run has no {label}; choose another metric.", hopeless=True)
