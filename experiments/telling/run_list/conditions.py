"""Further conditions on the list of runs: `throughput_rps__gte=1000`, `finished_at__lte=...`, `state__in=lost`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from django.utils import timezone
from django.utils.dateparse import parse_datetime

from experiments.registry.errors import RequestError

FIGURES = (
    "throughput_rps",
    "latency_p50_ms",
    "latency_p99_ms",
    "errors_total",
    "sut_cpu_ratio",
    "driver_cpu_ratio",
)
TIMES = ("queued_at", "started_at", "finished_at")
CHOICES = ("state", "outcome", "validity", "recipe", "workload", "application", "sut", "driver")
_NAMED = ("recipe", "workload", "application", "sut", "driver")
MAX_IN = 200


@dataclass(frozen=True)
class Condition:
    """`lookup` in Django's words, and the value that it is held against."""

    lookup: str
    value: float | datetime | tuple[int, ...] | tuple[str, ...]


def read_conditions(given: Mapping[str, str]) -> tuple[Condition, ...]:
    """The conditions in a query string; keys that are none are left alone. RequestError names the key."""
    found = []
    for name, value in given.items():
        text = str(value).strip()
        field, _, operation = name.partition("__")
        if not text or operation not in ("gte", "lte", "in"):
            continue
        if operation == "in" and field in CHOICES:
            part = "drivers__hosts" if field == "driver" else field
            path = f"{part}__name__in" if field in _NAMED else name
            found.append(Condition(path, tuple(parts_of(text, name))))
        elif operation == "in" and field in ("number", "experiment"):
            path = "experiment_id__in" if field == "experiment" else name
            found.append(Condition(path, tuple(_whole(part, name) for part in parts_of(text, name))))
        elif operation != "in" and field in TIMES:
            found.append(Condition(name, parse_time(text, name)))
        elif operation != "in" and field in (*FIGURES, "number"):
            found.append(Condition(name, _number(text, name)))
    return tuple(found)


def parse_time(text: str, name: str) -> datetime:
    """A date or date and time in ISO form; without an offset it is UTC. RequestError names the field."""
    try:
        found = parse_datetime(text) or parse_datetime(f"{text}T00:00:00")
        if found is not None and timezone.is_aware(found):
            found = found.astimezone(UTC)  # an offset can carry the first or the last day out of the calendar
    except (ValueError, OverflowError):
        found = None
    if found is None:
        raise RequestError(f"{name} must be a time such as 2026-01-31 or 2026-01-31T12:00:00Z.", field=name)
    return found if timezone.is_aware(found) else timezone.make_aware(found, UTC)


def parts_of(text: str, name: str) -> list[str]:
    """The values in a text with commas between; `name` is the field of a RequestError."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if len(parts) > MAX_IN or "\0" in text:
        raise RequestError(f"{name} takes at most {MAX_IN} values with commas between.", field=name)
    return parts


def _whole(text: str, name: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise RequestError(f"{name} takes whole numbers with commas between, not {text[:40]!r}.", field=name)
    return int(text)


def _number(text: str, name: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise RequestError(f"{name} must be a number, not {text[:40]!r}.", field=name)
    return found
