"""The figures as wrk and wrk2 print them: always two decimals, a unit that changes at 85 % of the next one."""

from __future__ import annotations

import re

from agents.formats.report_lines import Lines

DURATION = r"(?:[0-9]{1,15}\.[0-9]{2}(?:us|ms|s|m|h)|-?nan(?:us|ms|s)?)"
RATE = r"(?:[0-9]{1,15}\.[0-9]{2}[kMGTP]?|-?nan)"
BYTES = r"[0-9]{1,15}\.[0-9]{2}[KMGTP]?B"
PERCENT = r"(?:[0-9]{1,3}\.[0-9]{2}|-?nan)%"

_NUMBER = re.compile(r"([0-9.]+)([A-Za-z]*)")
_MS_PER = {"us": 0.001, "ms": 1.0, "s": 1000.0, "m": 60_000.0, "h": 3_600_000.0}
_DECIMAL = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15}
_BINARY = {"B": 1, "KB": 2**10, "MB": 2**20, "GB": 2**30, "TB": 2**40, "PB": 2**50}


def duration_ms(text: str) -> float | None:
    """Milliseconds of "635.91us", "13.29s", "0.93m"; None for -nan. The text matches DURATION."""
    number, unit = _split(text)
    return None if number is None else round(number * _MS_PER[unit], 9)


def rate(text: str) -> float | None:
    """The number of "0.97k" (970) or "56.20k"; None for -nan. The text matches RATE."""
    number, unit = _split(text)
    return None if number is None else round(number * _DECIMAL[unit], 6)


def size_bytes(text: str) -> float:
    """Bytes of "1.58GB", in powers of 1024. The text matches BYTES."""
    number, unit = _split(text)
    return (number or 0.0) * _BINARY[unit]


def percent(text: str) -> float | None:
    """The number of "57.79%"; None for -nan%. The text matches PERCENT."""
    return _split(text.removesuffix("%"))[0]


def read_percentiles(lines: Lines, row: re.Pattern[str]) -> dict[str, float]:
    """The rows that come next, (percentile, DURATION) each: "99.9" -> milliseconds; -nan rows are left out."""
    percentiles = {}
    while match := lines.take(row):
        if (value := duration_ms(match[2])) is not None:
            percentiles[f"{float(match[1]):g}"] = value
    return percentiles


def _split(text: str) -> tuple[float | None, str]:
    match = _NUMBER.fullmatch(text)
    return (float(match[1]), match[2]) if match else (None, "")
