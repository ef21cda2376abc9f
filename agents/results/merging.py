"""Putting together what several load tools report of one phase of load. Percentiles are never averaged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from agents.base.errors import PlanError
from agents.results.merging_latency import latency_of_all, sum_known, total_known
from agents.results.merging_requests import requests_of_all
from agents.results.report import LoadErrors, LoadReport, OwnMetric

Same = TypeVar("Same")

SAME_WINDOW_RATIO = 0.02
"""By how much the durations may differ for the throughputs to be of one window."""

NO_OWN_METRICS = "no {}: how such figures are put together is not known; they stand with each tool"


def merge(reports: Sequence[LoadReport], ahead_s: Sequence[float] = ()) -> LoadReport:
    """The report of all load tools together; all loaded the same server in the same window with the same tool.

    Rates and counts are summed. Percentiles come from the histograms, or are left out and `notes` says so. `ahead_s`
    is by how much the clock of each tool's host is ahead of that of the first's, none = they agree. PlanError when
    there is no report, or the tools or their kinds of load differ.
    """
    if not reports:
        raise PlanError("there is no report to put together", hint="Did no load tool run?")
    first = reports[0]
    if len(reports) == 1:
        return first
    for name in ("tool", "format", "load_model", "latency_basis"):
        if len(found := {str(getattr(report, name)) for report in reports}) > 1:
            raise PlanError(
                f"the reports of the load tools differ in {name}: {', '.join(sorted(found))}",
                hint="Run the same tool with the same kind of load each time.",
            )
    notes: list[str] = []
    latency = latency_of_all([report.latency for report in reports], [report.requests for report in reports], notes)
    uncorrected = latency_of_all(
        [report.uncorrected_latency for report in reports], [report.requests for report in reports], []
    )
    own = _own_metrics(reports, notes)
    more = requests_of_all(reports, notes, ahead_s)
    durations = [report.duration_s for report in reports if report.duration_s is not None]
    why = _why(reports, durations)
    return LoadReport(
        first.tool,
        first.format,
        first.load_model,
        first.latency_basis,
        complete=all(report.complete for report in reports),
        error=next((report.error for report in reports if report.error), None),
        usable=why is None,
        why=why,
        url=_same([report.url for report in reports]),
        threads=sum_known([report.threads for report in reports]),
        connections=sum_known([report.connections for report in reports]),
        users=sum_known([report.users for report in reports]),
        offered_rate_rps=total_known([report.offered_rate_rps for report in reports]),
        duration_nominal_s=_same([report.duration_nominal_s for report in reports]),
        duration_s=max(durations, default=None),
        requests=sum_known([report.requests for report in reports]),
        throughput_rps=total_known([report.throughput_rps for report in reports]),
        bytes_read=sum_known([report.bytes_read for report in reports]),
        bytes_per_s=total_known([report.bytes_per_s for report in reports]),
        body_bytes=sum_known([report.body_bytes for report in reports]),
        status_codes=_counts([report.status_codes for report in reports]),
        error_messages=_counts([report.error_messages for report in reports]),
        errors=_errors([report.errors for report in reports]),
        latency=latency,
        uncorrected_latency=uncorrected,
        own_metrics=own,
        notes=tuple(dict.fromkeys([*notes, *(note for report in reports for note in report.notes)])),
        more=more,
    )


def _own_metrics(reports: Sequence[LoadReport], notes: list[str]) -> tuple[OwnMetric, ...]:
    """The rates that every tool has, added up; a note names the other figures."""
    found: dict[str, list[OwnMetric]] = {}
    for report in reports:
        for metric in report.own_metrics:
            found.setdefault(metric.name, []).append(metric)
    whole = {
        name: each
        for name, each in found.items()
        if len(each) == len(reports) and all(one.adds and one.unit == each[0].unit for one in each)
    }
    if others := [name for name in found if name not in whole]:
        notes.append(NO_OWN_METRICS.format(", ".join(others)))
    return tuple(replace(each[0], value=sum(one.value for one in each)) for each in whole.values())


def _why(reports: Sequence[LoadReport], durations: Sequence[float]) -> str | None:
    """Why the figures must not enter a comparison: a tool's own reason, or that the windows differ."""
    bad = [report.why or report.error or "no reason is known" for report in reports if not report.usable]
    if bad:
        return f"{len(bad)} of {len(reports)} load tools: {bad[0]}"
    if durations and max(durations) - min(durations) > SAME_WINDOW_RATIO * max(durations):
        return f"the load tools loaded for {min(durations):g} s to {max(durations):g} s, so their rates do not add up"
    return None


def _same(values: Sequence[Same | None]) -> Same | None:
    return values[0] if all(value == values[0] for value in values) else None


def _counts(counted: Sequence[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for counts in counted:
        total.update(counts)
    return dict(total)


def _errors(errors: Sequence[LoadErrors]) -> LoadErrors:
    """What one host counted is counted, so that no error gets lost because another host cannot name its kind."""
    kinds = ("connect", "read", "write", "timeout", "status", "other")
    found = {kind: [n for one in errors if (n := getattr(one, kind)) is not None] for kind in kinds}
    return LoadErrors(**{kind: sum(counts) for kind, counts in found.items() if counts})
