"""Answers of a tuning search in sentences; pages, API and CI alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agents.steps.recipe import Value
from experiments.analysis.tuning.smallest import Reverted
from experiments.asking.tunings.trials import bounds_of
from experiments.models import Tuning, TuningTrial


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
    most, least = limit["at_most"], limit["at_least"]
    return f"{limit['metric']} ≤ {most:g}" if least is None else f"{limit['metric']} ≥ {least:g}"


def answer_sentence(tuning: Tuning, over: Sequence[TuningTrial]) -> str:
    """The confirmed gain with its interval, what it rests on, and in how many of these runs each limit held."""
    if tuning.gain_ratio is None or tuning.low_ratio is None or tuning.high_ratio is None or tuning.winner is None:
        return ""
    won = [
        one
        for one in over
        if one.purpose == TuningTrial.Purpose.CONFIRM and one.config == tuning.winner and one.result == "ok"
    ]
    return (
        f"{config_text(tuning.winner, tuning.default)} is better than the default by {100 * tuning.gain_ratio:.1f} %, "
        f"95 % interval {100 * tuning.low_ratio:.1f} to {100 * tuning.high_ratio:.1f} %, from {len(won)} fresh pairs "
        f"of runs, none of which belonged to the search.{_limits_held(tuning, won)}"
    )


def _limits_held(tuning: Tuning, won: Sequence[TuningTrial]) -> str:
    """For each limit in how many of the winner's runs it held."""
    said = []
    for place, (limit, most) in enumerate(bounds_of(tuning)):
        held = sum(one.bounded[place] <= most for one in won)
        said.append(f" {limit_text(limit)} held in {held} of the {len(won)} runs with it.")
    return "".join(said)


def pause_sentence(tuning: Tuning) -> str:
    """Why nothing follows now; "" when it goes on."""
    if not tuning.paused:
        return ""
    if tuning.confirms_at is None:
        return "It is paused."
    return f"It is paused until {tuning.confirms_at:%Y-%m-%d %H:%M} UTC, then it confirms what it found."


def too_many_runs(most: int) -> str:
    """What to do when a forecast is beyond what a search may have."""
    return f"A search has at most {most}: measure longer in each run, or on hosts with less noise."


def smallest_sentence(tuning: Tuning, one: Reverted) -> str:
    """What one parameter at its default costs."""
    default = shown(tuning.default[one.parameter])
    interval = one.verdict.deciding_pct
    measured = f" ({interval[0]:+.1f} … {interval[1]:+.1f} %)" if interval else ""
    if one.may_go:
        return f"{one.parameter} may go back to {default}: a loss beyond the margin is left out{measured}."
    return f"{one.parameter} stays: at {default} a loss beyond the margin is not left out{measured}."
