"""The JSON report of vegeta: nanoseconds; status 0 is a request without a response."""

from __future__ import annotations

import re
from dataclasses import replace

from agents.drivers.base.error_kinds import bad_statuses, kind_of
from agents.drivers.base.histogram_bars import spectrum
from agents.drivers.base.unusable import judged
from agents.formats.json_document import JsonObject, read_object
from agents.results.report import Histogram, LatencySummary, LoadErrors, LoadReport

FORMAT = "vegeta-json"
PERCENTILES = {"50th": "50", "90th": "90", "95th": "95", "99th": "99"}


def read_json(text: str) -> LoadReport:
    """The report in the JSON of `vegeta report -type=json`. Raises ParseError."""
    report = read_object(text, "vegeta")
    sent, codes = report.count("requests"), report.counts("status_codes")
    messages = report.texts("errors")
    if sum(codes.values()) != sent:
        raise report.error("status_codes", f"the status of each of the {sent} requests")
    lost = codes.get("0", 0)
    duration_s = (report.number("duration") + report.number("wait")) / 1e9
    bytes_in = report.object("bytes_in")
    throughput = report.number("throughput")
    found = LoadReport(
        "vegeta",
        FORMAT,
        "open",
        "response_time",
        duration_s=round(duration_s, 9),
        requests=sent - lost,
        # vegeta's throughput counts good statuses only; here a response is a response, as everywhere.
        throughput_rps=throughput if sent == lost or not duration_s else round((sent - lost) / duration_s, 6),
        body_bytes=bytes_in.count("total"),
        status_codes=codes,
        errors=_errors(lost, codes, messages),
        details={
            "success_rate": report.number("success"),
            "rate_rps": report.number("rate"),
            "requests_sent": sent,
            "throughput_success_rps": throughput,
        },
        started_or_written_at=report.text("earliest"),
    )
    latencies = report.object("latencies")
    latency = _latency(latencies, report) if found.requests else None
    return judged(replace(found, latency=latency))


def _errors(lost: int, codes: dict[str, int], messages: list[str]) -> LoadErrors:
    """vegeta lists each message once, so lost requests have a kind only when all messages are of one kind."""
    kinds = {kind_of(message) for message in messages if not re.match(r"[1-5][0-9]{2} ", message, re.ASCII)}
    status = bad_statuses(codes)
    if not lost:
        return LoadErrors(0, 0, 0, 0, status, 0)
    kind = kinds.pop() if len(kinds) == 1 else "other"
    return replace(LoadErrors(status=status), **{kind: lost})


def _latency(latencies: JsonObject, report: JsonObject) -> LatencySummary:
    named = {name: latencies.known_number(key) for key, name in PERCENTILES.items()}
    smallest = latencies.known_number("min")
    largest_ms = latencies.number("max") / 1e6
    return LatencySummary(
        latencies.number("mean") / 1e6,
        min_ms=None if smallest is None else smallest / 1e6,
        max_ms=largest_ms,
        percentiles_ms={name: ns / 1e6 for name, ns in named.items() if ns is not None},
        histogram=_histogram(report.object("buckets"), largest_ms) if "buckets" in report else None,
    )


def _histogram(buckets: JsonObject, largest_ms: float) -> Histogram | None:
    """A bucket is named by its lower bound; it reaches up to the next one, the last to the maximum."""
    if wrong := [name for name in buckets.names() if not re.fullmatch(r"[0-9]{1,18}", name, re.ASCII)]:
        raise buckets.error(wrong[0], "a bucket named by its nanoseconds")
    bounds = sorted((int(name), buckets.count(name)) for name in buckets.names())
    uppers = [lower / 1e6 for lower, _ in bounds[1:]]
    bars = [(min(upper, largest_ms), count) for upper, (_, count) in zip([*uppers, largest_ms], bounds, strict=True)]
    return spectrum(bars, 1)
