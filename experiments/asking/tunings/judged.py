"""What came of one trial: measured, invalid (it is made again), or the configuration is to blame."""

from __future__ import annotations

from dataclasses import dataclass, replace

from experiments.asking.tunings.trials import LEAST_RATIO
from experiments.models import Run, Tuning, TuningTrial
from experiments.registry.metrics.vocabulary import is_percentile, label_of
from experiments.registry.runs.summary import figure, is_hidden

Result = TuningTrial.Result

OF_THE_SERVER = frozenset({"errors", "connect_errors"})
"""Checks that make a run invalid, but say something about the configuration: the server did not bear the load."""
PERHAPS_ITS_OWN = frozenset({"report", "swap"})
"""Checks that may: nothing was answered, or memory ran out. Once it may be chance."""


@dataclass(frozen=True)
class Judged:
    """`figure` and `bounded` only when the result is ok. `lacks`: the metric that the run has no figure of.
    `hopeless`: no trial of this search had it, or the default has one that nothing can be compared with."""

    result: TuningTrial.Result
    reason: str = ""
    figure: float | None = None
    bounded: tuple[float, ...] = ()
    lacks: str = ""
    hopeless: bool = False


def judged(tuning: Tuning, step: TuningTrial, run: Run) -> Judged:
    """What the ended run of this trial says of its configuration.

    What may be chance the first time is the configuration's own when it comes again, and another run was measured in
    between: a server that the kernel killed, because memory ran out; nothing answered; a figure that only this
    configuration does not have. Where nothing was measured meanwhile, it may be an outage. The default is never to
    blame so: all others are compared with it.
    """
    found = _of_one(tuning, run)
    if found.lacks and not tuning.trials.filter(result=Result.OK).exists():
        said = f"{found.reason} Search again with another metric or a longer load."
        return replace(found, reason=said, hopeless=True)
    if step.config == tuning.default:
        return _of_default(tuning, run, found)
    if is_percentile(found.lacks):  # the others had it, so this configuration completed too few requests for it
        return Judged(Result.CRASHED, f"{label_of(found.lacks)}: too few requests were completed to tell it.")
    if _perhaps_its_own(run, found) and _came_before(tuning, step, run):
        return Judged(Result.CRASHED, f"For the second time: {found.reason}")
    return found


def _of_default(tuning: Tuning, run: Run, found: Judged) -> Judged:
    """As it was found, but with an objective of 0 in the default no other configuration has a ratio to it."""
    value = figure(run, tuning.metric)
    if found.result != Result.CRASHED or value is None or value > 0:
        return found
    said = f"{label_of(tuning.metric)} is {value:g} with the default, and nothing has a ratio to that:"
    return Judged(Result.INVALID, f"{said} search by another metric, and make this one a limit.", hopeless=True)


def limited_figure(run: Run, metric: str) -> float | None:
    """The figure that a limit is on; None when the run has none of it. A run without errors need not say so."""
    seen = figure(run, metric)
    return float(run.errors_total or 0) if seen is None and metric == "errors_total" else seen


def _perhaps_its_own(run: Run, found: Judged) -> bool:
    if found.result != Result.INVALID:
        return False
    if run.outcome != Run.Outcome.SUCCEEDED:
        return bool(run.outcome == Run.Outcome.FAILED and run.cause == Run.Cause.HOST)
    return bool(found.lacks) or {one["check"] for one in run.findings if one["level"] == "invalid"} <= PERHAPS_ITS_OWN


def _came_before(tuning: Tuning, step: TuningTrial, run: Run) -> bool:
    """Whether an earlier trial of the same configuration ended in the same way, and one was measured since."""
    measured = tuning.trials.filter(result=Result.OK, position__lt=step.position).last()
    if measured is None:
        return False
    same = tuning.trials.filter(config=step.config, result=Result.INVALID, position__lt=measured.position)
    earlier = [one.run for one in same.select_related("run") if one.run is not None]
    return any(_perhaps_its_own(one, _of_one(tuning, one)) and _way(one) == _way(run) for one in earlier)


def _way(run: Run) -> tuple[str, str, frozenset[str]]:
    """How a run ended, so that two can be told apart: outcome, what failed, and the checks that make it invalid."""
    checks = frozenset(one["check"] for one in run.findings if one["level"] == "invalid")
    return run.outcome, run.failure, checks


def _of_one(tuning: Tuning, run: Run) -> Judged:
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
        seen = limited_figure(run, name)
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
    return Judged(Result.INVALID, f"The run has no {label}.", lacks=metric)
