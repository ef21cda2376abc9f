"""The trials of a tuning search as lines over parallel axes: one for each parameter, the last one the objective."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, cast

from experiments.analysis.tuning.space import Config, Parameter, Space, Value
from experiments.analysis.tuning.trials import Settings
from experiments.asking.tunings.reading import Shown
from experiments.asking.tunings.trials import settings_of
from experiments.asking.tunings.wording import shown as value_text
from experiments.models import Tuning, TuningTrial

Outcome = Literal["measured", "limit", "crashed", "refused", "invalid", "open"]


def coordinates_json(tuning: Tuning, rows: Sequence[Shown]) -> dict[str, Any]:
    """The JSON of tunings/coordinates.js.

    A place is a fraction of its axis from 0 to 1; None where the parameter was not active, or there is no figure.
    """
    settings = settings_of(tuning, [one.trial for one in rows if one.trial.result])
    space = settings.space
    best = tuning.winner or (tuning.best["config"] if tuning.best else None)
    best_key = space.key(best) if best is not None else None
    return {
        "axes": [_axis(one) for one in space.parameters],
        "higher_is_better": tuning.higher_is_better,
        "is_confirmed": tuning.winner is not None,
        "lines": [
            {
                "position": one.trial.position + 1,
                "run": one.trial.run.number if one.trial.run else None,
                "places": _places(space, one.trial.config),
                "log_ratio": math.log1p(one.against_pct / 100) if one.against_pct is not None else None,
                "outcome": _outcome(settings, one.trial),
                "is_default": one.is_default,
                "is_best": best_key is not None and space.key(one.trial.config) == best_key,
                "config": one.config,
            }
            for one in rows
        ],
    }


def _axis(one: Parameter) -> dict[str, Any]:
    return {
        "name": one.name,
        "choices": [value_text(choice) for choice in one.choices],
        "low": one.low,
        "high": one.high,
        "log": one.log,
        "whole": one.kind == "integer",
        "conditional": one.only_when is not None,
    }


def _places(space: Space, config: Config) -> list[float | None]:
    return [
        _place(one, config[one.name]) if on else None
        for one, on in zip(space.parameters, space.active(config), strict=True)
    ]


def _place(one: Parameter, value: Value) -> float:
    """Choices without an order, too, stand at equal distances, as they were written down."""
    return one.position(value) / (1 if one.is_ordered else len(one.choices) - 1)


def _outcome(settings: Settings, trial: TuningTrial) -> Outcome:
    if trial.result == TuningTrial.Result.OK:
        bounds = zip(trial.bounded, settings.limits, strict=True)
        return "limit" if any(seen > limit.at_most for seen, limit in bounds) else "measured"
    return cast(Outcome, trial.result or "open")
