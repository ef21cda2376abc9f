"""Partial dependence as small pictures, all on one scale: a line with its band, or a bar for each choice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from experiments.analysis.number_text import figure_text
from experiments.analysis.tuning.effects import Effect
from experiments.analysis.tuning.space import Space, Value
from experiments.asking.tunings.wording import shown as value_text

WIDTH, HEIGHT, MARGIN = 200.0, 100.0, 8.0


@dataclass(frozen=True)
class Bar:
    """A choice: where it stands, and its interval."""

    x: float
    y: float
    low_y: float
    high_y: float


@dataclass(frozen=True)
class Picture:
    """One parameter. `line` and `band` are points of an SVG of 200 by 100, empty where `bars` are."""

    name: str
    summary: str
    ends: tuple[str, ...]
    zero_y: float
    line: str
    band: str
    bars: tuple[Bar, ...]
    configs: int


def scale_of(effects: Sequence[Effect]) -> tuple[float, float]:
    """The lowest and the highest change of all pictures, in %, 0 among them."""
    lows = [low for one in effects for low in one.low_pct]
    highs = [high for one in effects for high in one.high_pct]
    return min(0.0, *lows), max(0.0, *highs)


def scale_text(effects: Sequence[Effect]) -> str:
    """The scale of the pictures in words."""
    low, high = scale_of(effects)
    return f"{_pct(low)} to {_pct(high)}"


def pictures(space: Space, effects: Sequence[Effect]) -> list[Picture]:
    """In the order of the effects."""
    low, high = scale_of(effects)

    def y(value_pct: float) -> float:
        ratio = (value_pct - low) / (high - low) if high > low else 0.5
        return round(MARGIN + (HEIGHT - 2 * MARGIN) * (1 - ratio), 1)

    parameters = {one.name: one for one in space.parameters}
    found = []
    for one in effects:
        parameter = parameters[one.name]
        if parameter.choices:
            places = [(place + 0.5) / len(one.values) for place in range(len(one.values))]
        else:
            places = [parameter.position(value) for value in one.values]
        xs = [round(MARGIN + (WIDTH - 2 * MARGIN) * place, 1) for place in places]
        points = [f"{x},{y(value)}" for x, value in zip(xs, one.change_pct, strict=True)]
        upper = [f"{x},{y(value)}" for x, value in zip(xs, one.high_pct, strict=True)]
        lower = [f"{x},{y(value)}" for x, value in zip(xs, one.low_pct, strict=True)]
        bars = tuple(
            Bar(x, y(middle), y(below), y(above))
            for x, middle, below, above in zip(xs, one.change_pct, one.low_pct, one.high_pct, strict=True)
        )
        is_choice = bool(parameter.choices)
        found.append(
            Picture(
                name=one.name,
                summary="; ".join(_told(one, place) for place in range(len(one.values))),
                ends=tuple(map(_text, one.values if is_choice else (one.values[0], one.values[-1]))),
                zero_y=y(0.0),
                line="" if is_choice else " ".join(points),
                band="" if is_choice else " ".join([*upper, *reversed(lower)]),
                bars=bars if is_choice else (),
                configs=one.configs,
            )
        )
    return found


def _told(one: Effect, place: int) -> str:
    low, middle, high = (_pct(values[place]) for values in (one.low_pct, one.change_pct, one.high_pct))
    return f"{_text(one.values[place])}: {middle} [{low}, {high}]"


def _text(value: Value) -> str:
    return figure_text(value, 3) if isinstance(value, float) else value_text(value)


def _pct(value: float) -> str:
    return f"{'+' if value > 0 else '−' if value < 0 else ''}{abs(value):.1f} %"
