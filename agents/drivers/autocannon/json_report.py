"""The JSON report of autocannon. Its latency is whole milliseconds, its minimum leaves zeros out."""

from __future__ import annotations

from agents.drivers.base.unusable import judged
from agents.formats.json_document import JsonObject, read_object
from agents.results.report import LatencySummary, LoadErrors, LoadReport

FORMAT = "autocannon-json"
PERCENTILES = (
    "0.001",
    "0.01",
    "0.1",
    "1",
    "2.5",
    "10",
    "25",
    "50",
    "75",
    "90",
    "97.5",
    "99",
    "99.9",
    "99.99",
    "99.999",
)


def read_json(text: str) -> LoadReport:
    """The report in the JSON. Raises ParseError."""
    report = read_object(text, "autocannon")
    requests, throughput = report.object("requests"), report.object("throughput")
    total, errors, timeouts = requests.count("total"), report.count("errors"), report.count("timeouts")
    codes = {}
    if "statusCodeStats" in report:
        stats = report.object("statusCodeStats")
        codes = {code: stats.object(code).count("count") for code in stats.names()}
    found = LoadReport(
        "autocannon",
        FORMAT,
        "closed",
        "service_time",
        url=report.text("url"),
        connections=report.count("connections"),
        duration_s=report.number("duration"),
        requests=total,
        throughput_rps=requests.number("average"),
        bytes_read=throughput.count("total"),
        bytes_per_s=throughput.number("average"),
        status_codes=codes,
        # `errors` counts timeouts too.
        errors=LoadErrors(
            timeout=timeouts, status=report.count("4xx") + report.count("5xx"), other=max(0, errors - timeouts)
        ),
        latency=_latency(report.object("latency")) if total else None,
        details={
            "throughput_stdev_rps": requests.number("stddev"),
            "requests_sent": requests.count("sent"),
            "errors_total": errors,
        },
        started_or_written_at=report.text("start"),
    )
    return judged(found)


def _latency(latency: JsonObject) -> LatencySummary:
    named = {name: latency.known_number(f"p{name.replace('.', '_')}") for name in PERCENTILES}
    return LatencySummary(
        latency.number("mean"),
        latency.number("stddev"),
        max_ms=latency.number("max"),
        percentiles_ms={name: value for name, value in named.items() if value is not None},
    )
