"""Answers of a tuning search in sentences; pages, API and CI alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agents.steps.recipe import Value
from experiments.analysis.tuning.confirming import standing
from experiments.analysis.tuning.smallest import Obstacle, Reverted, Smallest
from experiments.analysis.verdict import Verdict
from experiments.asking.tunings.judged import limited_figure
from experiments.asking.tunings.trials import bounds_of, searched, settings_of, trials_over
from experiments.models import Run, Tuning, TuningTrial


def config_text(config: Mapping[str, Value], default: Mapping[str, Value]) -> str:
    """What differs from the default: "workers=4, sendfile=off"."""
    changed = [f"{name}={shown(value)}" for name, value in config.items() if value != default.get(name)]
    return ", ".join(changed) or "the default"


def shown(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def limit_text(limit: Mapping[str, Any]) -> str:
    """A limit as people write it: "latency_p99_ms ≤ 50"."""
    sign, value = ("≤", limit["at_most"]) if limit["at_least"] is None else ("≥", limit["at_least"])
    number = f"{value:,.0f}" if value >= 1e6 and float(value).is_integer() else f"{value:g}"  # bytes, to the last one
    return f"{limit['metric']} {sign} {number}"


def answer_sentence(tuning: Tuning, over: Sequence[TuningTrial]) -> str:
    """The confirmed gain with its interval, what it rests on, in how many runs each limit held, and what crashed."""
    if tuning.gain_ratio is None or tuning.low_ratio is None or tuning.high_ratio is None or tuning.winner is None:
        return ""
    pairs = standing(settings_of(tuning, over), searched(over), tuning.winner).pairs
    complete = {block for block, pair in pairs.items() if None not in pair}
    won = [
        one
        for one in over
        if one.purpose == TuningTrial.Purpose.CONFIRM and one.config == tuning.winner and one.block in complete
        if one.result == TuningTrial.Result.OK
    ]
    gain, low, high = (improvement_pct(tuning, one) for one in (tuning.gain_ratio, tuning.low_ratio, tuning.high_ratio))
    how = "" if tuning.higher_is_better else f": it lowers {tuning.metric}"
    doubt = (
        ""
        if low >= 100 * tuning.margin_ratio
        else (f" That it is more than the margin of {100 * tuning.margin_ratio:.3g} % is not certain.")
    )
    return (
        f"{config_text(tuning.winner, tuning.default)} is better than the default{how} by {gain:.1f} %, "
        f"95 % interval {low:.1f} to {high:.1f} %, from {len(won)} fresh pairs "
        f"of runs, none of which belonged to the search.{doubt}{_limits_held(tuning, won)}{_crashed(tuning, over)}"
    )


def improvement_pct(tuning: Tuning, gain_ratio: float) -> float:
    """By how many per cent the metric gets better: how much it rises, or falls where lower is better.

    `gain_ratio` is that of speeds: a latency of a quarter is a gain of 3, and gets better by 75 %.
    """
    return 100 * (gain_ratio if tuning.higher_is_better else gain_ratio / (1 + gain_ratio))


def claim_beside(tuning: Tuning) -> str:
    """The confirmed gain, where the search's own sentence does not say it: it still runs, or was ended meanwhile."""
    if tuning.winner is None or tuning.state == Tuning.State.FINISHED:
        return ""
    return answer_sentence(tuning, trials_over(tuning))


def _limits_held(tuning: Tuning, won: Sequence[TuningTrial]) -> str:
    """For each limit in how many of the winner's runs it held; not those of 0, for a run that breaks one is no pair."""
    said = []
    for place, (limit, most) in enumerate(bounds_of(tuning)):
        held = sum(one.bounded[place] <= most for one in won)
        said.append(f" {limit_text(limit)} held in {held} of the {len(won)} runs with it.")
    return "".join(said)


def _crashed(tuning: Tuning, over: Sequence[TuningTrial]) -> str:
    """In how many of all the winner's runs of the confirmation each limit of 0 held, and how many of them crashed."""
    mine = [
        one
        for one in over
        if one.purpose == TuningTrial.Purpose.CONFIRM and one.config == tuning.winner
        if one.result != TuningTrial.Result.INVALID
    ]
    said = []
    for limit in tuning.limits:
        if limit["at_most"] == 0:
            held = sum(_holds_at_0(one, limit["metric"]) for one in mine)
            said.append(f" {limit_text(limit)} held in {held} of all {len(mine)} runs with it.")
    for result, word in ((TuningTrial.Result.CRASHED, "crashed"), (TuningTrial.Result.REFUSED, "did not start")):
        if failed := sum(one.result == result for one in mine):
            said.append(f" {failed} of all {len(mine)} runs with it {word}.")
    return "".join(said)


def _holds_at_0(trial: TuningTrial, metric: str) -> bool:
    if trial.result == TuningTrial.Result.OK:
        return True
    run = trial.run
    return run is not None and run.outcome == Run.Outcome.SUCCEEDED and limited_figure(run, metric) == 0


def pause_sentence(tuning: Tuning) -> str:
    """Why nothing follows now; "" when it goes on."""
    if not tuning.paused:
        return ""
    if tuning.confirms_at is None:
        return "It is paused."
    return f"It is paused until {tuning.confirms_at:%Y-%m-%d %H:%M} UTC, then it confirms what it found."


def smallest_sentence(tuning: Tuning, one: Reverted) -> str:
    """What one parameter at its default costs."""
    default = shown(tuning.default[one.parameter])
    measured = _measured(one.verdict)
    if one.may_go:
        return f"{one.parameter} may go back to {default}: {_loss(one.verdict)} is left out{measured}."
    return f"{one.parameter} stays: at {default} {_why(one.obstacle, one.verdict)}{measured}."


def together_sentence(smallest: Smallest) -> str:
    """What all that may go alone costs when it goes together; "" when fewer than two may."""
    verdict, measured = smallest.together, _measured(smallest.together)
    if smallest.obstacle:
        return f"Together they may not: {_why(smallest.obstacle, verdict)}{measured}, so all of the answer stays."
    return f"Together they may go back, too: {_loss(verdict)} is left out{measured}." if verdict else ""


def _loss(verdict: Verdict | None) -> str:
    return f"a loss of more than {100 * verdict.margin_ratio:.2g} %" if verdict else "a loss"


def _why(obstacle: Obstacle, verdict: Verdict | None) -> str:
    return f"{_loss(verdict)} is not left out" if obstacle == "loss" else _OBSTACLES[obstacle]


_OBSTACLES: Mapping[Obstacle, str] = {
    "failed": "a run failed",
    "limit": "a limit held in fewer of the runs than with the answer",
    "forbidden": "the combination is forbidden",
    "default": "there is nothing but the default",
}


def _measured(verdict: Verdict | None) -> str:
    """The interval behind a sentence, in brackets; "" without one."""
    low_high = verdict.deciding_pct if verdict else None
    return f" ({low_high[0]:+.1f} … {low_high[1]:+.1f} %)" if low_high else ""


def measured_json(verdict: Verdict | None) -> dict[str, Any]:
    """The estimate and the interval of a verdict as they are stored, in per cent; None where there is none."""
    interval = verdict.deciding_pct if verdict else None
    return {
        "estimate_pct": verdict.estimate_pct if verdict else None,
        "interval_pct": list(interval) if interval else None,
    }


def smallest_evidence(tuning: Tuning) -> str:
    """What the smallest recipe was measured beside, and what it cost there; "" where it is the winner itself."""
    found = tuning.smallest or {}
    if not found.get("dropped"):
        return ""
    alone = {one["parameter"]: one["interval_pct"] for one in found["each"]}
    together = found.get("together")
    one_alone = alone[found["dropped"][0]] if len(found["dropped"]) == 1 else None  # older ones kept no more
    interval = together["interval_pct"] if together else one_alone
    measured = f": {interval[0]:+.1f} … {interval[1]:+.1f} %" if interval else ""
    return (
        f"Without {', '.join(found['dropped'])} it was measured beside that configuration, not beside the default"
        f"{measured}."
    )
