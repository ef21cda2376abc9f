"""The course of the load over time, from tools that record every request, as channels beside those of the monitors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agents.record import Record
from experiments.analysis.findings import RECORDED, Course

Points = dict[tuple[str, str], tuple[str, list[float], list[float]]]
"""(role, channel) -> unit, seconds since measuring began, values."""


MOST_LATE_S = 60.0
"""A tool that has sent nothing for that long after its phase was over did not begin late: its clock is wrong."""


def began_unix_s(record: Record) -> float:
    """When measuring began, by BenchHub's clock: seconds since 1970, 0 when no load was started.

    It is the first request of a tool that records every one, since a JVM takes seconds to start, else the tool's start.
    """
    load = next((one for one in record.loads.values() if one.measured), None)
    if load is None:
        return next((one.at_unix_s for one in record.loads.values()), 0.0)
    report = next((one.report for one in record.reports.values() if one.measured), {})
    driver = record.facts.get("driver")
    if (started_ms := report.get("started_ms")) is not None:
        first_s = float(started_ms) / 1000 - ((driver.clock_offset_s if driver else None) or 0.0)
        if load.at_unix_s <= first_s <= load.at_unix_s + load.duration_s + MOST_LATE_S:
            return first_s
    return load.at_unix_s


def course_of_report(report: Mapping[str, Any]) -> Course | None:
    """The load over time of a report that nobody saw made: it counts from the first request."""
    course: Mapping[str, Any] | None = report.get("course")
    if not course or report.get("started_ms") is None:
        return None
    step_s, began_s = float(course["step_s"]), float(report["started_ms"]) / 1000
    at_s = [at - began_s + step_s / 2 for at in course["ended_unix_s"]]
    return Course(RECORDED, at_s, [count / step_s for count in course["requests"]], step_s, complete=True)


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
