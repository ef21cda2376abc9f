"""Numbers as they stand in sentences: grouped digits, a real minus sign, no more digits than anybody reads."""

from __future__ import annotations

import math

MINUS = "\N{MINUS SIGN}"


def figure_text(value: float, digits: int = 4) -> str:
    """The value with four significant digits, or all before the point: 41.23, 154,479. Its unit stands beside it."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.{digits}g}"


def one_decimal(value: float) -> str:
    """The value with one decimal and a real minus sign, never a negative zero. Its unit stands beside it."""
    return decimal_text(value, 1)


def decimals_for(value: float) -> int:
    """How many decimals a change needs that is not 0 so that it is not shown as 0: one, or up to four.

    `value` has the unit in which it is shown, percent for the most part. The arithmetic is ours: one decimal from
    0.05 on, else as many as the first digit that is not 0 takes.
    """
    if value == 0 or abs(value) >= 0.05:
        return 1
    return min(4, 1 - math.floor(math.log10(abs(value))))


def decimal_text(value: float, decimals: int) -> str:
    """The value with so many decimals and a real minus sign, never a negative zero. Its unit stands beside it."""
    text = f"{abs(value):.{decimals}f}"
    return f"{MINUS}{text}" if value < 0 and float(text) else text


def signed_percent(value_pct: float) -> str:
    """A relative change: +3.2 %."""
    return f"{'+' if round(value_pct, 1) > 0 else ''}{one_decimal(value_pct)} %"


def percent_with_interval(value_pct: float, ci95_pct: tuple[float, float] | None) -> str:
    """A relative change, and its interval where it has one: +3.2 % [−1.0, 7.5]."""
    text = signed_percent(value_pct)
    return text if ci95_pct is None else f"{text} [{one_decimal(ci95_pct[0])}, {one_decimal(ci95_pct[1])}]"
