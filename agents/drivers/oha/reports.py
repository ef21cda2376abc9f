"""The reports of oha. The JSON is in seconds; the text has a unit at each figure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from agents.drivers.base.error_kinds import bad_statuses, counted
from agents.drivers.base.histogram_bars import spectrum
from agents.drivers.base.unusable import judged, refused
from agents.formats.json_document import JsonObject, read_object
from agents.formats.report_lines import Lines
from agents.results.report import Histogram, LatencySummary, LoadReport

JSON_FORMAT = "oha-json"
TEXT_FORMAT = "oha-text"
MAX_LINES_AROUND = 20_000
AT_THE_END = "aborted due to deadline"
"""Requests that were under way when the time was over: no failure of the server."""

_VALUE = r"(?:([0-9]{1,15}\.[0-9]{1,6}) (ns|us|ms|s|secs?|min|hr)|-?[Nn]a[Nn](?: \w{1,6})?)"
_SUMMARY = re.compile(r"Summary:")
_SUCCESS = re.compile(r"  Success rate:\t(?:([0-9]{1,3}\.[0-9]{2})%|-?[Nn]a[Nn]%)", re.ASCII)
_LINES = {name: re.compile(rf"  {name}:\t ?{_VALUE}", re.ASCII) for name in ("Total", "Slowest", "Fastest", "Average")}
_RATE = re.compile(r"  Requests/sec:\t([0-9]{1,15}\.[0-9]{4})", re.ASCII)
_SIZE = re.compile(r"  (?:Total data|Size/request|Size/sec):\t.{1,60}")
_HISTOGRAM = re.compile(r"Response time histogram:")
_BAR = re.compile(r"  ([0-9]{1,15}\.[0-9]{3}) (ns|us|ms|s|secs?|min|hr) \[([0-9]{1,12})\] *\|■*", re.ASCII)
_DISTRIBUTION = re.compile(r"Response time distribution:")
_PERCENTILE = re.compile(rf"  ([0-9]{{1,2}}\.[0-9]{{2}})% in {_VALUE}", re.ASCII)
_DETAILS = re.compile(r"Details \(average, fastest, slowest\)(?:,.{0,60})?:?")
_DETAIL = re.compile(r"  [A-Za-z+ -]{1,30}:\t.{1,160}")
_STATUSES = re.compile(r"Status code distribution:")
_STATUS = re.compile(r"  \[([0-9]{3})\] ([0-9]{1,12}) responses", re.ASCII)
_ERRORS = re.compile(r"Error distribution:")
_ERROR = re.compile(r"  \[([0-9]{1,12})\] (.{1,2000})", re.ASCII)
_REFUSAL = re.compile(r"(?:error: .*|Error: .*|.*\boha: .*)")
_MS_PER = {"ns": 1e-6, "us": 1e-3, "ms": 1.0, "s": 1e3, "sec": 1e3, "secs": 1e3, "min": 6e4, "hr": 3.6e6}


def read_json(text: str) -> LoadReport:
    """The report in the JSON. Raises ParseError."""
    report = read_object(text, "oha")
    summary = report.object("summary")
    codes, messages = report.counts("statusCodeDistribution"), report.counts("errorDistribution")
    requests = sum(codes.values())
    latency = None
    if requests:
        latency = LatencySummary(
            _ms(summary, "average"),
            min_ms=_ms(summary, "fastest"),
            max_ms=_ms(summary, "slowest"),
            percentiles_ms=_percentiles(report.object("latencyPercentiles")),
            histogram=_histogram(report.object("responseTimeHistogram")),
        )
    return _report(
        JSON_FORMAT,
        summary.number("total"),
        summary.number("requestsPerSec"),
        summary.known_number("successRate"),
        summary.known_count("totalData"),
        codes,
        messages,
        latency,
    )


def read_text(text: str) -> LoadReport:
    """The report in the text. Raises ParseError."""
    lines = Lines(text)
    error = lines.seek(_SUMMARY.fullmatch, _REFUSAL, "oha", max_lines=MAX_LINES_AROUND)
    if error is not None:
        return refused(LoadReport("oha", TEXT_FORMAT, "closed", "service_time"), error)
    lines.skip()
    success = lines.expect(_SUCCESS, "'Success rate:'")[1]
    figures = {name: _value(lines.expect(row, f"'{name}:'")) for name, row in _LINES.items()}
    rate = float(lines.expect(_RATE, "'Requests/sec:'")[1])
    lines.skip_blank()
    while lines.take(_SIZE):
        pass
    histogram, percentiles = _text_latency(lines)
    codes: dict[str, int] = {}
    lines.skip_blank()
    lines.expect(_STATUSES, "'Status code distribution:'")
    while row := lines.take(_STATUS):
        codes[row[1]] = codes.get(row[1], 0) + int(row[2])
    messages: dict[str, int] = {}
    lines.skip_blank()
    if lines.take(_ERRORS):
        while row := lines.take(_ERROR):
            messages[row[2]] = messages.get(row[2], 0) + int(row[1])
        if not messages:
            raise lines.error("expected the errors")
        if lines.ended:
            raise lines.error("the last error has no end of line; is it cut off")
    total_ms = figures["Total"]
    if total_ms is None:
        raise lines.error("expected a time after 'Total:'")
    counted_all = sum(codes.values()) + sum(messages.values())
    if abs(rate * total_ms / 1000 - counted_all) > 2 + 1e-6 * counted_all:
        raise lines.error(f"the status codes and errors are of {counted_all} requests, the rate is not")
    lines.nothing_more(_SUMMARY.fullmatch, max_lines=MAX_LINES_AROUND)
    latency = LatencySummary(
        figures["Average"], None, figures["Fastest"], figures["Slowest"], None, percentiles, histogram
    )
    share = None if success is None else float(success) / 100
    return _report(
        TEXT_FORMAT, round(total_ms / 1000, 9), rate, share, None, codes, messages, latency if codes else None
    )


def _report(
    name: str,
    duration_s: float,
    rate: float,
    success_ratio: float | None,
    body_bytes: int | None,
    codes: Mapping[str, int],
    messages: Mapping[str, int],
    latency: LatencySummary | None,
) -> LoadReport:
    requests = sum(codes.values())
    failures = {message: count for message, count in messages.items() if message != AT_THE_END}
    # Requests/sec counts requests that got no answer too.
    throughput = round(requests / duration_s, 4) if failures and duration_s else rate
    details: dict[str, float | str] = {"errors_total": sum(messages.values())}
    if success_ratio is not None:
        details["success_rate"] = success_ratio
    report = LoadReport(
        "oha",
        name,
        "closed",
        "service_time",
        duration_s=duration_s,
        requests=requests,
        throughput_rps=throughput,
        body_bytes=body_bytes,
        status_codes=codes,
        error_messages=messages,
        errors=counted(failures, bad_statuses(codes)),
        latency=latency,
        details=details,
    )
    return judged(report)


def _ms(summary: JsonObject, name: str) -> float | None:
    seconds = summary.known_number(name)
    return None if seconds is None else round(seconds * 1000, 9)


def _percentiles(found: JsonObject) -> dict[str, float]:
    named = {name: _ms(found, name) for name in found.names()}
    if wrong := [name for name in named if not re.fullmatch(r"p[0-9]{1,3}(?:\.[0-9]{1,4})?", name, re.ASCII)]:
        raise found.error(wrong[0], "a percentile such as p99")
    return {f"{float(name[1:]):g}": value for name, value in named.items() if value is not None}


def _histogram(found: JsonObject) -> Histogram | None:
    bars = []
    for name in found.names():
        if not re.fullmatch(r"[0-9]{1,12}(?:\.[0-9]{1,25})?(?:e-[0-9]{1,2})?", name, re.ASCII):
            raise found.error(name, "a bar named by its seconds")
        bars.append((round(float(name) * 1000, 9), found.count(name)))
    return spectrum(sorted(bars), 1)


def _text_latency(lines: Lines) -> tuple[Histogram | None, dict[str, float]]:
    lines.skip_blank()
    lines.expect(_HISTOGRAM, "'Response time histogram:'")
    bars = []
    while row := lines.take(_BAR):
        bars.append((round(float(row[1]) * _MS_PER[row[2]], 9), int(row[3])))
    lines.skip_blank()
    lines.expect(_DISTRIBUTION, "'Response time distribution:'")
    percentiles: dict[str, float] = {}
    while row := lines.take(_PERCENTILE):
        if row[2] is not None:
            percentiles[f"{float(row[1]):g}"] = round(float(row[2]) * _MS_PER[row[3]], 9)
    lines.skip_blank()
    lines.expect(_DETAILS, "'Details'")
    while lines.take(_DETAIL):
        pass
    return spectrum(bars, lines.number), percentiles


def _value(match: re.Match[str]) -> float | None:
    return None if match[1] is None else round(float(match[1]) * _MS_PER[match[2]], 9)
