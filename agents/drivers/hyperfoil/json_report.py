"""The JSON of a Hyperfoil run (`export -f json`, run schema 0.6): nanoseconds, start and end in epoch milliseconds."""

from __future__ import annotations

import re
from dataclasses import replace

from agents.base.errors import ParseError
from agents.drivers.base.unusable import judged, refused
from agents.formats.json_document import JsonObject, read_object
from agents.results.report import Histogram, HistogramRow, LatencySummary, LoadErrors, LoadReport

FORMAT = "hyperfoil-json"
NOT_MEASURED = re.compile(r"(?:calibration|ramp[_-]?up|ramp[_-]?down|warm[_-]?up)(?:/.*)?", re.IGNORECASE)


def read_json(text: str) -> LoadReport:
    """The report of the one measured phase in the JSON. Raises ParseError, also when there are several."""
    report = read_object(text, "hyperfoil")
    info = report.object("info")
    base = LoadReport("hyperfoil", FORMAT, "closed", "service_time")
    stats = [found for found in report.objects("total") if not NOT_MEASURED.fullmatch(found.text("phase"))]
    messages = info.texts("errors") if "errors" in info else []
    if not stats and messages:
        return refused(base, messages[0][:300])
    if len(stats) != 1:
        names = ", ".join(f"{found.text('phase')}/{found.text('metric')}" for found in stats)[:200] or "none"
        raise ParseError(
            f"a report is of one measured phase and metric, but this run has {names}",
            hint="Percentiles of several phases cannot be put together: run or export one of them.",
            line=1,
        )
    return _report(base, stats[0], report)


def _report(base: LoadReport, stats: JsonObject, report: JsonObject) -> LoadReport:
    summary = stats.object("summary")
    start_ms, end_ms = stats.count("start"), stats.count("end")
    if end_ms <= start_ms:
        raise stats.error("end", "a time after the start")
    responses, duration_s = summary.count("responseCount"), (end_ms - start_ms) / 1000
    codes = {name: summary.known_count(f"status_{name}") or 0 for name in ("2xx", "3xx", "4xx", "5xx", "other")}
    reset, timeouts = summary.known_count("resetCount"), summary.known_count("timeouts")
    found = replace(
        base,
        duration_s=duration_s,
        requests=responses,
        throughput_rps=round(responses / duration_s, 6),
        errors=LoadErrors(
            connect=summary.known_count("connectFailureCount"),
            read=reset,
            timeout=timeouts,
            status=codes["4xx"] + codes["5xx"] + codes["other"],
        ),
        latency=_latency(summary, _histogram(report, stats)) if responses else None,
        details={
            "phase": stats.text("phase"),
            "metric": stats.text("metric"),
            "requests_sent": summary.count("requestCount"),
            "blocked": summary.known_count("blockedCount") or 0,
        },
    )
    return judged(found)


def _latency(summary: JsonObject, histogram: Histogram | None) -> LatencySummary:
    percentiles = summary.object("percentileResponseTime")
    named = {}
    for name in percentiles.names():
        if not re.fullmatch(r"[0-9]{1,3}(?:\.[0-9]{1,6})?", name, re.ASCII):
            raise percentiles.error(name, "a percentile such as 99.9")
        named[f"{float(name):g}"] = percentiles.number(name) / 1e6
    return LatencySummary(
        summary.number("meanResponseTime") / 1e6,
        min_ms=summary.number("minResponseTime") / 1e6,
        max_ms=summary.number("maxResponseTime") / 1e6,
        percentiles_ms=named,
        histogram=histogram,
    )


def _histogram(report: JsonObject, stats: JsonObject) -> Histogram | None:
    """The spectrum of the phase, where the JSON has it: phase / iteration / fork / metric."""
    node: JsonObject | None = report.object("phase") if "phase" in report else None
    name, _, rest = stats.text("phase").partition("/")
    path = [name, "iteration", *(rest.split("/")[:1] or [""]), "fork", "", "metric", stats.text("metric")]
    for step in path:
        if node is None:
            return None
        names = node.names()
        if step in node:
            node = node.object(step)
        elif step == "" and len(names) == 1:
            node = node.object(names[0])
        else:
            return None
    if node is None or "histogram" not in node or "percentiles" not in node.object("histogram"):
        return None
    rows: list[HistogramRow] = []
    for bucket in node.object("histogram").objects("percentiles"):
        row = HistogramRow(bucket.number("to") / 1e6, bucket.number("percentile"), bucket.count("totalCount"))
        if rows and (row.value_ms < rows[-1].value_ms or row.total_count < rows[-1].total_count):
            raise bucket.error("totalCount", "a count that does not go down")
        rows.append(row)
    return Histogram(tuple(rows), total_count=rows[-1].total_count) if rows else None
