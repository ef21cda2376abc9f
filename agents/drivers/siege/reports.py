"""The reports of siege, JSON and text: the same twelve figures, seconds with two decimals."""

from __future__ import annotations

import re
from collections.abc import Mapping

from agents.drivers.base.unusable import judged, refused
from agents.formats.json_document import JsonObject, read_object
from agents.formats.report_lines import Lines
from agents.results.report import LatencySummary, LoadErrors, LoadReport

JSON_FORMAT = "siege-json"
TEXT_FORMAT = "siege-text"
MAX_LINES_AROUND = 100_000

_NUMBER = r"([0-9]{1,15}\.[0-9]{2})"
_COUNT = r"([0-9]{1,15})"
_ROWS = {
    "transactions": re.compile(rf"Transactions:\s+{_COUNT} hits", re.ASCII),
    "availability": re.compile(rf"Availability:\s+{_NUMBER} %", re.ASCII),
    "elapsed_time": re.compile(rf"Elapsed time:\s+{_NUMBER} secs", re.ASCII),
    "data_transferred": re.compile(rf"Data transferred:\s+{_NUMBER} MB", re.ASCII),
    "response_time": re.compile(rf"Response time:\s+{_NUMBER} secs", re.ASCII),
    "transaction_rate": re.compile(rf"Transaction rate:\s+{_NUMBER} trans/sec", re.ASCII),
    "throughput": re.compile(rf"Throughput:\s+{_NUMBER} MB/sec", re.ASCII),
    "concurrency": re.compile(rf"Concurrency:\s+{_NUMBER}", re.ASCII),
    "successful_transactions": re.compile(rf"Successful transactions:\s+{_COUNT}", re.ASCII),
    "failed_transactions": re.compile(rf"Failed transactions:\s+{_COUNT}", re.ASCII),
    "longest_transaction": re.compile(rf"Longest transaction:\s+{_NUMBER}", re.ASCII),
    "shortest_transaction": re.compile(rf"Shortest transaction:\s+{_NUMBER}", re.ASCII),
}
_REFUSAL = re.compile(r".{0,40}\b(siege: .{1,300}|ERROR: .{1,300}|siege aborted.{0,300})")


def read_json(text: str) -> LoadReport:
    """The report in the JSON of `siege -j`. Raises ParseError."""
    found = read_object(text, "siege")
    whole = ("transactions", "successful_transactions", "failed_transactions")
    return _report(JSON_FORMAT, {name: _figure(found, name, name in whole) for name in _ROWS})


def read_text(text: str) -> LoadReport:
    """The report in the text of siege. Raises ParseError."""
    lines = Lines(text)
    refusal = None
    for _ in range(MAX_LINES_AROUND):
        if lines.ended or _ROWS["transactions"].fullmatch(lines.peek()):
            break
        if refusal is None and len(lines.peek()) < 2000 and (match := _REFUSAL.fullmatch(lines.peek())):
            refusal = match[1].strip()
        lines.skip()
    if lines.ended and refusal is not None:
        return refused(LoadReport("siege", TEXT_FORMAT, "closed", "service_time"), refusal)
    figures = {name: float(lines.expect(row, f"'{name.replace('_', ' ')}'")[1]) for name, row in _ROWS.items()}
    lines.nothing_more(_ROWS["transactions"].fullmatch, max_lines=MAX_LINES_AROUND)
    return _report(TEXT_FORMAT, figures)


def _figure(found: JsonObject, name: str, whole: bool) -> float:
    return float(found.count(name)) if whole else found.number(name)


def _report(name: str, figures: Mapping[str, float]) -> LoadReport:
    transactions, succeeded = int(figures["transactions"]), int(figures["successful_transactions"])
    failed = int(figures["failed_transactions"])
    latency = LatencySummary(figures["response_time"] * 1000, max_ms=round(figures["longest_transaction"] * 1000, 3))
    report = LoadReport(
        "siege",
        name,
        "closed",
        "service_time",
        duration_s=figures["elapsed_time"],
        requests=transactions,
        throughput_rps=figures["transaction_rate"],
        # A 4xx is a transaction without success; what siege calls failed is a 5xx or a broken connection.
        errors=LoadErrors(status=max(0, transactions - succeeded), other=failed),
        latency=latency if transactions else None,
        details={
            "requests_succeeded": succeeded,
            "errors_total": failed,
            "availability_pct": figures["availability"],
            "concurrency_mean": figures["concurrency"],
            "transferred_mib": figures["data_transferred"],
        },
    )
    return judged(report)
