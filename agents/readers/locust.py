"""Locust's CSV files and --json. Source: Locust 2.47, locust/stats.py."""

from __future__ import annotations

import re

from agents.readers.base.json_node import Node, first_names, load_json
from agents.readers.base.named_result import NamedResult, Readout
from agents.readers.base.numbers import count, over, percentile_name
from agents.readers.base.result_reader import ResultForm, ResultReader, Source
from agents.readers.base.table import Row, read_table

TOOL = "locust"
_STATS = ("Type", "Name", "Request Count", "Failure Count", "Average Response Time", "Requests/s")
_HISTORY = ("Timestamp", "User Count", "Type", "Name", "Requests/s", "Failures/s", "Total Request Count")
_FAILURES = ("Method", "Name", "Error", "Occurrences")
_PERCENTILE = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,6})?)%", re.ASCII)
_TOTAL = "Aggregated"
_ASKED = (50, 66, 75, 80, 90, 95, 98, 99, 99.9, 99.99, 100)


def read_stats(source: Source) -> Readout:
    """NAME_stats.csv: a result for each name, and all together. Raises ParseError."""
    results = [_stats(row) for row in read_table(source.text, _STATS, "Locust")]
    return _readout("locust-stats-csv", results)


def _stats(row: Row) -> NamedResult:
    figures: dict[str, object] = {
        "requests": row.count("Request Count"),
        "errors_total": row.count("Failure Count"),
        "throughput_rps": row.known("Requests/s"),
        "errors_per_s": row.known("Failures/s"),
        "latency_mean_ms": row.known("Average Response Time"),
        "latency_min_ms": row.known("Min Response Time"),
        "latency_max_ms": row.known("Max Response Time"),
        "body_bytes_mean": row.known("Average Content Size"),
        **_percentiles(row),
    }
    return _judged(row.text("Name"), row.text("Type") or None, figures)


def _percentiles(row: Row) -> dict[str, float | None]:
    return {
        f"latency_{percentile_name(float(match[1]))}_ms": row.known(column)
        for column in row.cells
        if (match := _PERCENTILE.fullmatch(column))
    }


def read_history(source: Source) -> Readout:
    """NAME_stats_history.csv: the course of all requests together; it has no result. Raises ParseError."""
    rows = read_table(source.text, _HISTORY, "Locust")
    series = [
        {
            "t_s": row.count("Timestamp"),
            "users": row.count("User Count"),
            "throughput_rps": row.known("Requests/s"),
            "errors_per_s": row.known("Failures/s"),
            **{name: value for name, value in _percentiles(row).items() if re.search(r"_p(50|95|99)_", name)},
            "requests_so_far": row.count("Total Request Count"),
            "errors_so_far": row.count("Total Failure Count"),
        }
        for row in rows
        if row.text("Name") == _TOTAL
    ]
    beside = {"rows": len(rows), "names": sorted({row.text("Name") for row in rows}), "series": series}
    return Readout(TOOL, "locust-stats-history-csv", (), None, beside)


def read_failures(source: Source) -> Readout:
    """NAME_failures.csv: the errors; it has no result. Raises ParseError."""
    errors = [
        {
            "method": row.text("Method"),
            "benchmark": row.text("Name"),
            "error": row.text("Error"),
            "count": row.count("Occurrences"),
        }
        for row in read_table(source.text, _FAILURES, "Locust")
    ]
    return Readout(TOOL, "locust-failures-csv", (), None, {"errors": errors}, "requests failed" if errors else "")


def read_json(source: Source) -> Readout:
    """What --json prints: its percentiles are nearest ranks of the rounded times. Raises ParseError."""
    document, _ = load_json(source.text, "Locust")
    return _readout("locust-json", [_entry(entry) for entry in document.elements()])


def _entry(entry: Node) -> NamedResult:
    requests = entry.at("num_requests").count()
    begin_s, end_s = entry.known("start_time"), entry.known("last_request_timestamp")
    duration_s = end_s - begin_s if begin_s and end_s and end_s > begin_s else None
    failures = entry.at("num_failures").count()
    timed = requests - (entry.known_count("num_none_requests") or 0)
    figures: dict[str, object] = {
        "requests": requests,
        "errors_total": failures,
        "throughput_rps": requests / duration_s if duration_s else None,
        "errors_per_s": failures / duration_s if duration_s else None,
        "duration_s": duration_s,
        "latency_mean_ms": over(entry.known("total_response_time"), timed) if timed > 0 else None,
        "latency_min_ms": entry.known("min_response_time"),
        "latency_max_ms": entry.known("max_response_time"),
        "body_bytes_mean": over(entry.known("total_content_length"), requests) if requests else None,
        **_ranked(entry),
    }
    return _judged(entry.at("name").text(), entry.known_text("method") or None, figures)


def _ranked(entry: Node) -> dict[str, float]:
    """The percentiles of the histogram of times, by nearest rank, in ms."""
    times = sorted((count(key, "a response time"), value.count()) for key, value in entry.at("response_times").items())
    total = sum(times_seen for _, times_seen in times)
    found: dict[str, float] = {}
    seen, asked = 0, list(_ASKED)
    for value, more in times:
        seen += more
        while asked and seen >= max(1, -(-round(asked[0] / 100 * total, 6) // 1)):
            found[f"latency_{percentile_name(asked.pop(0))}_ms"] = value
    return found if total else {}


def _judged(name: str, method: str | None, figures: dict[str, object]) -> NamedResult:
    failed = figures["errors_total"] == figures["requests"]
    why = ("every request failed" if figures["requests"] else "there was no request") if failed else ""
    return NamedResult(name, figures, {"method": method}, why=why)


def _readout(form: str, results: list[NamedResult]) -> Readout:
    why = next((one.why for one in reversed(results)), "no request") if all(one.why for one in results) else ""
    return Readout(TOOL, form, tuple(results), None, {}, why)


def _headed(columns: tuple[str, ...]) -> str:
    return ",".join(columns)


LOCUST = ResultReader(
    TOOL,
    "Locust",
    (
        ResultForm("locust-stats-csv", lambda head: head.lstrip().startswith(_headed(_STATS[:4])), read_stats),
        ResultForm(
            "locust-stats-history-csv", lambda head: head.lstrip().startswith(_headed(_HISTORY[:4])), read_history
        ),
        ResultForm("locust-failures-csv", lambda head: head.lstrip().startswith(_headed(_FAILURES)), read_failures),
        ResultForm(
            "locust-json",
            lambda head: {"num_requests", "num_failures", "response_times"} <= first_names(head),
            read_json,
        ),
    ),
    ("throughput_rps", "latency_mean_ms"),
)
