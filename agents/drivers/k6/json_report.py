"""The two JSON summaries of k6: of `--summary-export`, and of a script's `handleSummary`. Times are milliseconds."""

from __future__ import annotations

import re
from collections.abc import Mapping

from agents.drivers.base.unusable import judged
from agents.formats.json_document import JsonObject, has_object, read_object
from agents.results.report import LatencySummary, LoadErrors, LoadReport

EXPORT_FORMAT = "k6-summary-export"
SUMMARY_FORMAT = "k6-summary"
COUNTERS = ("connect", "read", "write", "timeout", "status", "other")
"""The kinds of errors that BenchHub's own script counts, in metrics `benchhub_errors_KIND`."""

_PERCENTILE = re.compile(r"p\(([0-9]{1,3}(?:\.[0-9]{1,6})?)\)", re.ASCII)


def looks_like_summary(text: str) -> bool:
    """Whether the text is the JSON of a script's `handleSummary`, which alone says how the run stands."""
    return has_object(text) and '"state"' in text


def read_json(text: str) -> LoadReport:
    """The report in either JSON summary. Raises ParseError."""
    report = read_object(text, "k6")
    metrics = report.object("metrics")
    if "state" in report:
        duration_ms = report.object("state").number("testRunDurationMs")
        return _report(SUMMARY_FORMAT, metrics, duration_ms / 1000)
    return _report(EXPORT_FORMAT, metrics, None)


def _report(name: str, metrics: JsonObject, duration_s: float | None) -> LoadReport:
    sent, rate, failed = 0, 0.0, 0
    details: dict[str, float | str] = {}
    if requests := _metric(metrics, "http_reqs", name):
        sent, rate = requests.count("count"), requests.number("rate")
    if outcome := _metric(metrics, "http_req_failed", name):
        failed = outcome.count("passes")
        details["error_rate"] = outcome.number("rate" if "rate" in outcome else "value")
    details["errors_total"] = failed
    if checks := _metric(metrics, "checks", name):
        details |= {"checks_passed": checks.count("passes"), "checks_failed": checks.count("fails")}
    users = _metric(metrics, "vus_max", name)
    if dropped := _metric(metrics, "dropped_iterations", name):
        details["dropped_iterations"] = dropped.count("count")
    details |= thresholds_told(_thresholds(metrics, name))
    received = metrics.object("data_received")
    received = received.object("values") if name == SUMMARY_FORMAT else received
    errors = _errors(metrics, name, failed)
    # Where the script did not count, `other` holds bad statuses too, which are answers.
    unanswered = 0 if errors.status is None else errors.total - errors.status
    answered = max(0, sent - unanswered)
    trend = _metric(metrics, "http_req_duration", name)
    report = LoadReport(
        "k6",
        name,
        "closed",
        "service_time",
        users=users.count("value") if users else None,
        duration_s=duration_s,
        requests=answered,
        throughput_rps=rate if answered == sent else rate * answered / sent,
        bytes_read=received.count("count"),
        bytes_per_s=received.number("rate"),
        errors=errors,
        latency=_latency(trend) if trend and answered else None,
        details=details,
    )
    return judged(report, failed=failed if errors.status is None else 0)


def thresholds_told(passed: Mapping[str, bool]) -> dict[str, float | str]:
    """k6's own limits by whether they were kept, as details; nothing when the script has none."""
    kept = "; ".join(name for name, ok in passed.items() if ok)
    broken = "; ".join(name for name, ok in passed.items() if not ok)
    return {name: text for name, text in (("thresholds_passed", kept), ("thresholds_failed", broken)) if text}


def _thresholds(metrics: JsonObject, name: str) -> dict[str, bool]:
    """Whether each limit was kept, by the metric and what it asks; the exported summary says whether it was broken."""
    found = {}
    for metric in metrics.names():
        limits = metrics.object(metric)
        if "thresholds" not in limits:
            continue
        limits = limits.object("thresholds")
        for limit in limits.names():
            ok = limits.object(limit).flag("ok") if name == SUMMARY_FORMAT else not limits.flag(limit)
            found[f"{metric} {limit}"] = ok
    return found


def _metric(metrics: JsonObject, metric: str, name: str) -> JsonObject | None:
    if metric not in metrics:
        return None
    found = metrics.object(metric)
    return found.object("values") if name == SUMMARY_FORMAT else found


def _errors(metrics: JsonObject, name: str, failed: int) -> LoadErrors:
    """The errors by kind where the script counted them; k6 itself says only how many requests failed."""
    counted = {}
    for kind in COUNTERS:
        if found := _metric(metrics, f"benchhub_errors_{kind}", name):
            counted[kind] = found.count("count")
    if not counted:
        return LoadErrors(other=failed)
    return LoadErrors(**{**dict.fromkeys(COUNTERS, 0), **counted})


def _latency(trend: JsonObject) -> LatencySummary:
    percentiles = {}
    if (median := trend.known_number("med")) is not None:
        percentiles["50"] = median
    for name in trend.names():
        if match := _PERCENTILE.fullmatch(name):
            percentiles[f"{float(match[1]):g}"] = trend.number(name)
    return LatencySummary(
        trend.known_number("avg"),
        min_ms=trend.known_number("min"),
        max_ms=trend.known_number("max"),
        percentiles_ms=percentiles,
    )
