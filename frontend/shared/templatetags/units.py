"""Numbers as people read them: three significant digits or so, the unit beside them, a dash for what is unknown."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django import template

register = template.Library()

DASH = "—"
_BYTES = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_BITS = ("bit", "kbit", "Mbit", "Gbit", "Tbit")


def _of_numbers(name: str | None = None) -> Callable[[Callable[..., str]], Callable[..., str]]:
    """Register a filter of numbers; None, and the "" that Django makes of an attribute of None, is a dash."""

    def decorate(function: Callable[..., str]) -> Callable[..., str]:
        @wraps(function)
        def known(value: float | str | None, *more: Any) -> str:
            return DASH if value is None or value == "" else function(value, *more)

        register.filter(name or function.__name__, known)
        return known

    return decorate


@_of_numbers()
def rps(value: float) -> str:
    """Requests per second: 154,479 · 1,234 · 98.7 · 0.52."""
    return plain(value)


@_of_numbers()
def number(value: float) -> str:
    """A count or any other number without a unit, digits grouped."""
    return plain(value)


@_of_numbers()
def ms(value_ms: float) -> str:
    """A latency: 820 µs · 4.31 ms · 43.1 ms · 1.52 s."""
    size = abs(value_ms)
    if size >= 10_000:
        return f"{value_ms / 1000:.1f} s"
    if size >= 1000:
        return f"{value_ms / 1000:.2f} s"
    if size >= 100:
        return f"{value_ms:.0f} ms"
    if size >= 10:
        return f"{value_ms:.1f} ms"
    if size >= 1 or size == 0:
        return f"{value_ms:.2f} ms"
    return f"{value_ms * 1000:.0f} µs"


@_of_numbers()
def pct(ratio: float) -> str:
    """A ratio as per cent: 0.5 is 50 %."""
    value = ratio * 100
    return f"{value:.0f} %" if abs(value) >= 10 else f"{value:.1f} %"


@_of_numbers()
def signed_pct(ratio: float) -> str:
    """A relative change: +3.2 % · −12 % · ±0 %."""
    value = ratio * 100
    text = f"{abs(value):.0f}" if abs(value) >= 100 else f"{abs(value):.1f}"
    if float(text) == 0:
        return "±0 %"
    return f"{'+' if value > 0 else '−'}{text} %"


@_of_numbers()
def percent(value_pct: float) -> str:
    """A relative change that is in per cent already: +3.2 %."""
    return signed_pct(value_pct / 100)


@_of_numbers()
def p_value(value: float) -> str:
    """A probability: 0.0123, or < 0.0001."""
    return "< 0.0001" if value < 0.0001 else f"{value:.4f}"


@_of_numbers(name="bytes")
def bytes_(value_bytes: float) -> str:
    """A size in binary units: 512 B · 1.5 KiB · 12 GiB."""
    size, unit = float(value_bytes), 0
    while abs(size) >= 1024 and unit < len(_BYTES) - 1:
        size, unit = size / 1024, unit + 1
    return f"{size:.0f} {_BYTES[unit]}" if unit == 0 or abs(size) >= 10 else f"{size:.1f} {_BYTES[unit]}"


def _bits(value: float) -> str:
    """Bits as networks count them, in decimal units: 950 bit · 1.2 kbit · 18 Gbit."""
    size, unit = float(value), 0
    while abs(size) >= 1000 and unit < len(_BITS) - 1:
        size, unit = size / 1000, unit + 1
    return f"{size:.0f} {_BITS[unit]}" if unit == 0 or abs(size) >= 100 else f"{size:.3g} {_BITS[unit]}"


@_of_numbers()
def micros(value_us: float) -> str:
    """Microseconds in a column of such: 1,204 · 43.1 · 0.52; the unit stands in its head."""
    return plain(value_us)


@_of_numbers()
def signed_micros(value_us: float) -> str:
    """A change in microseconds: +3.2 · −0.41."""
    return f"{'+' if value_us > 0 else '−' if value_us < 0 else ''}{plain(abs(value_us))}"


@_of_numbers()
def unlocalised(value: float) -> str:
    """The number as scripts read it."""
    return repr(float(value))


@_of_numbers()
def duration(value_s: float) -> str:
    """A span of time: 0.4 s · 42 s · 3 min 20 s · 2 h 05 min · 3 d 4 h."""
    if abs(value_s) < 10:
        return f"{value_s:.1f} s"
    seconds = round(value_s)
    if seconds < 60:
        return f"{seconds} s"
    minutes, seconds = divmod(seconds, 60)
    if minutes < 60:
        return f"{minutes} min {seconds:02d} s" if seconds else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes:02d} min"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h"


@_of_numbers()
def in_unit(value: float, unit: str) -> str:
    """A metric's value in the words of its unit from the registry."""
    match unit:
        case "ms":
            return ms(value)
        case "ratio":
            return pct(value)
        case "bytes":
            return bytes_(value)
        case "bytes/s":
            return f"{bytes_(value)}/s"
        case "bits/s":
            return f"{_bits(value)}/s"
        case "s":
            return duration(value)
        case "requests/s" | "count" | "":
            return plain(value)
    return f"{plain(value)} {unit}"


def plain(value: float) -> str:
    """Digits grouped; below 100 as many decimals as make three significant digits."""
    size = abs(value)
    if size >= 1000 or float(value).is_integer():
        return f"{value:,.0f}"
    if size >= 100:
        return f"{value:.0f}"
    if size >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}"
