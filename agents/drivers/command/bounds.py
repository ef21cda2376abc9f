"""What a figure of a team's own can be: the bounds that its name says, unless the benchmark declares others."""

from __future__ import annotations

from agents.base.errors import ParseError

NOT_NEGATIVE = frozenset(
    ("latency", "duration", "throughput", "rps", "rate", "requests", "responses", "errors", "count", "bytes", "pause")
)
"""A figure with one of these words in its name is at least 0; others, such as a difference of clocks, may be less."""
SHARES = ("cpu_ratio", "busy_ratio", "hit_ratio", "error_ratio")
"""What a ratio's name ends with when it is a part of a whole: between 0 and 1."""


def bounds_of(name: str, unit: str) -> tuple[float | None, float | None]:
    """The lowest and the highest value that makes sense; None = nobody knows."""
    if unit == "ratio" and name.endswith(SHARES):
        return 0.0, 1.0
    words = name.replace(".", "_").split("_")
    return (0.0 if NOT_NEGATIVE.intersection(words) else None), None


def check_bounds(name: str, value: float, unit: str, low: float | None = None, high: float | None = None) -> None:
    """ParseError names the bound that the figure breaks; `value` and what is declared (`low`, `high`) are in `unit`."""
    usual_low, usual_high = bounds_of(name, unit)
    low, high = usual_low if low is None else low, usual_high if high is None else high
    if low is not None and value < low:
        raise ParseError(f"{name} is {value:g} {unit}, below its lower bound of {low:g}; {_remedy('low')}", line=1)
    if high is not None and value > high:
        raise ParseError(f"{name} is {value:g} {unit}, above its upper bound of {high:g}; {_remedy('high')}", line=1)


def _remedy(side: str) -> str:
    return f"declare `{side}` with the figure if that may be"
