"""The course of the load over time, from tools that record every request, as channels beside those of the monitors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agents.record import Record

Points = dict[tuple[str, str], tuple[str, list[float], list[float]]]
"""(role, channel) -> unit, seconds since measuring began, values."""


def load_points(record: Record, started_unix_s: float) -> Points:
    """The channels `load.*` of the measured phase; none for a tool that reports only totals.

    Its times are of the driver host's clock, so what is known of that clock's offset is taken off.
    """
    measured = next((report for report in record.reports.values() if report.measured), None)
    course: Mapping[str, Any] | None = measured.report.get("course") if measured else None
    if not course:
        return {}
    driver = record.facts.get("driver")
    offset_s = (driver.clock_offset_s if driver else None) or 0.0
    step_s = float(course["step_s"])
    at_s = [round(at - offset_s - started_unix_s + step_s / 2, 3) for at in course["ended_unix_s"]]
    channels = {
        "load.throughput_rps": ("requests/s", [count / step_s for count in course["requests"]]),
        "load.errors_per_s": ("errors/s", [count / step_s for count in course["errors"]]),
        "load.latency_mean_ms": ("ms", [float(value) for value in course["latency_mean_ms"]]),
    }
    if "active_threads" in course:
        channels["load.active_threads"] = ("threads", [float(value) for value in course["active_threads"]])
    return {("driver", name): (unit, at_s, values) for name, (unit, values) in channels.items()}
