"""The text report of hey: seconds with four decimals."""

from __future__ import annotations

import re
from dataclasses import replace

from agents.base.errors import ParseError
from agents.drivers.base.error_kinds import bad_statuses, counted
from agents.drivers.base.histogram_bars import spectrum
from agents.drivers.base.unusable import judged, refused
from agents.formats.report_lines import Lines
from agents.results.report import Histogram, LatencySummary, LoadReport

FORMAT = "hey-text"
MAX_RECORDED = 1_000_000
"""hey keeps latency and status of the first million responses only, and counts all."""
MAX_ROWS = 10_000

_SECONDS = r"([0-9]{1,12}\.[0-9]{4}| ?NaN)"
_SUMMARY = re.compile(r"Summary:")
_FIGURE = r"  {}:\t{}"
_TOTAL = re.compile(_FIGURE.format("Total", r"([0-9]{1,12}\.[0-9]{4}) secs"), re.ASCII)
_SLOWEST = re.compile(_FIGURE.format("Slowest", _SECONDS + " secs"), re.ASCII)
_FASTEST = re.compile(_FIGURE.format("Fastest", _SECONDS + " secs"), re.ASCII)
_AVERAGE = re.compile(_FIGURE.format("Average", _SECONDS + " secs"), re.ASCII)
_RATE = re.compile(_FIGURE.format("Requests/sec", r"([0-9]{1,15}\.[0-9]{4})"), re.ASCII)
_BYTES = re.compile(r"  Total data:\t([0-9]{1,18}) bytes", re.ASCII)
_SIZE = re.compile(r"  Size/request:\t[0-9]{1,18} bytes", re.ASCII)
_HISTOGRAM = re.compile(r"Response time histogram:")
_BAR = re.compile(r"  ([0-9]{1,9}\.[0-9]{3}) \[([0-9]{1,12})\]\t\|■*", re.ASCII)
_DISTRIBUTION = re.compile(r"Latency distribution:")
_PERCENTILE = re.compile(r"  ([0-9]{1,2})% in ([0-9]{1,12}\.[0-9]{4}) secs", re.ASCII)
_DETAILS = re.compile(r"Details \(average, fastest, slowest\):")
_DETAIL = re.compile(r"  [A-Za-z+ -]{1,20}:\t.{1,120}")
_STATUSES = re.compile(r"Status code distribution:")
_STATUS = re.compile(r"  \[([0-9]{3})\]\t([0-9]{1,12}) responses", re.ASCII)
_ERRORS = re.compile(r"Error distribution:")
_ERROR = re.compile(r"  \[([0-9]{1,12})\]\t(.{1,4000})", re.ASCII)
_REFUSAL = re.compile(r"(?:Usage: hey .*|.*\bhey: .*|-[a-z] cannot be .*|invalid .*|.*unsupported protocol scheme.*)")


def read_text(text: str) -> LoadReport:
    """The report in hey's text. Raises ParseError."""
    lines = Lines(text)
    base = LoadReport("hey", FORMAT, "closed", "service_time")
    if (error := lines.seek(_SUMMARY.fullmatch, _REFUSAL, "hey", max_lines=MAX_ROWS)) is not None:
        return refused(base, error)
    lines.skip()
    duration_s = float(lines.expect(_TOTAL, "'Total:'")[1])
    slowest, fastest, average = (
        _known_ms(lines.expect(pattern, f"'{name}:'")[1])
        for pattern, name in ((_SLOWEST, "Slowest"), (_FASTEST, "Fastest"), (_AVERAGE, "Average"))
    )
    rate = float(lines.expect(_RATE, "'Requests/sec:'")[1])
    lines.skip_blank()
    size = lines.take(_BYTES)
    if size:
        lines.expect(_SIZE, "'Size/request:'")
    latency = _latency(lines, average, fastest, slowest)
    codes = _statuses(lines)
    messages = _messages(lines)
    lines.nothing_more(_SUMMARY.fullmatch, max_lines=MAX_ROWS)
    requests, failed = sum(codes.values()), sum(messages.values())
    if requests >= MAX_RECORDED:
        requests = max(requests, round(rate * duration_s) - failed)
    elif abs(rate * duration_s - requests - failed) > 2 + 0.0001 * (rate + duration_s):
        raise lines.error(f"the status codes and errors are of {requests + failed} requests, the rate is not")
    notes: tuple[str, ...] = ()
    if requests > MAX_RECORDED:
        notes = (f"hey keeps the first {MAX_RECORDED:,} responses only: latency and status codes are of those",)
    report = replace(
        base,
        duration_s=duration_s,
        requests=requests,
        # Requests/sec counts requests that got no answer too.
        throughput_rps=rate if not failed or not duration_s else round(requests / duration_s, 4),
        bytes_read=int(size[1]) if size else None,
        status_codes=codes,
        error_messages=messages,
        errors=counted(messages, bad_statuses(codes)),
        latency=latency if requests else None,
        details={"errors_total": failed},
        notes=notes,
    )
    return judged(report)


def _known_ms(text: str) -> float | None:
    return None if "NaN" in text else round(float(text) * 1000, 4)


def _latency(lines: Lines, mean: float | None, smallest: float | None, largest: float | None) -> LatencySummary | None:
    lines.skip_blank()
    lines.expect(_HISTOGRAM, "'Response time histogram:'")
    histogram = _histogram(lines)
    lines.skip_blank()
    lines.expect(_DISTRIBUTION, "'Latency distribution:'")
    percentiles: dict[str, float] = {}
    while row := lines.take(_PERCENTILE):
        percentiles[str(int(row[1]))] = round(float(row[2]) * 1000, 4)
    lines.skip_blank()
    lines.expect(_DETAILS, "'Details (average, fastest, slowest):'")
    for _ in range(5):
        lines.expect(_DETAIL, "the details of a request")
    if mean is None:
        return None
    return LatencySummary(mean, None, smallest, largest, percentiles_ms=percentiles, histogram=histogram)


def _histogram(lines: Lines) -> Histogram | None:
    lines.skip_blank()
    bars: list[tuple[float, int]] = []
    while row := lines.take(_BAR):
        bars.append((round(float(row[1]) * 1000, 3), int(row[2])))
    return spectrum(bars, lines.number - 1)


def _statuses(lines: Lines) -> dict[str, int]:
    lines.skip_blank()
    lines.expect(_STATUSES, "'Status code distribution:'")
    codes: dict[str, int] = {}
    while row := lines.take(_STATUS):
        if row[1] in codes:
            raise ParseError(f"status {row[1]} is counted twice", line=lines.number - 1)
        codes[row[1]] = int(row[2])
    return codes


def _messages(lines: Lines) -> dict[str, int]:
    lines.skip_blank()
    messages: dict[str, int] = {}
    if lines.take(_ERRORS):
        while row := lines.take(_ERROR):
            messages[row[2]] = messages.get(row[2], 0) + int(row[1])
        if not messages:
            raise lines.error("expected the errors")
        if lines.ended:
            raise lines.error("the last error has no end of line; is it cut off")
    return messages
