"""Numbers as they stand in sentences: grouped digits, a real minus sign, no more digits than anybody reads."""

from __future__ import annotations

MINUS = "\N{MINUS SIGN}"


def figure_text(value: float, digits: int = 4) -> str:
    """The value with four significant digits, or all before the point: 41.23, 154,479. Its unit stands beside it."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.{digits}g}"


def one_decimal(value: float) -> str:
    """The value with one decimal and a real minus sign, never a negative zero. Its unit stands beside it."""
    text = f"{abs(value):.1f}"
    return f"{MINUS}{text}" if value < 0 and text != "0.0" else text


def signed_percent(value_pct: float) -> str:
    """A relative change: +3.2 %."""
    return f"{'+' if round(value_pct, 1) > 0 else ''}{one_decimal(value_pct)} %"


def percent_with_interval(value_pct: float, ci95_pct: tuple[float, float] | None) -> str:
    """A relative change, and its interval where it has one: +3.2 % [−1.0, 7.5]."""
    text = signed_percent(value_pct)
    return text if ci95_pct is None else f"{text} [{one_decimal(ci95_pct[0])}, {one_decimal(ci95_pct[1])}]"
