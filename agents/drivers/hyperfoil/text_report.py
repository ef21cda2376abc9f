"""The text of Hyperfoil's wrk and wrk2 commands: wrk's report with other units, and errors at the end."""

from __future__ import annotations

import re
from dataclasses import replace

from agents.drivers.base.unusable import judged, refused
from agents.formats.report_lines import Lines
from agents.results.report import Histogram, HistogramRow, LatencySummary, LoadErrors, LoadReport, ThreadRates

FORMAT = "hyperfoil-wrk-text"
MAX_LINES_AROUND = 20_000

_TIME = r"([0-9]{1,15}(?:\.[0-9]{2})?) ?(ns|[μµu?]s|ms|s) *"
_SIZE = r"([0-9]{1,15}\.[0-9]{2})(GB|MB|kB|B) *"
_NUMBER = r"([0-9]{1,15}\.[0-9]{1,6}|NaN)"
_RUNNING = re.compile(r"Running ([0-9]{1,9})(s|m|h)(?: ?[0-9]{1,9}s?)? test @ (\S{1,8192})", re.ASCII)
_THREADS = re.compile(r"  ([0-9]{1,9}) threads and ([0-9]{1,9}) connections", re.ASCII)
_TITLE = re.compile(r"  Thread Stats +Avg +Stdev +Max +\+/- Stdev")
_LATENCY = re.compile(rf" +Latency +{_TIME}{_TIME}{_TIME} *(?:{_NUMBER})%")
_REQ_SEC = re.compile(rf" +Req/Sec +{_NUMBER} +{_NUMBER} +{_NUMBER} +{_NUMBER}%?", re.ASCII)
_DISTRIBUTION = re.compile(r"  Latency Distribution")
_PERCENTILE = re.compile(rf" +([0-9]{{1,3}}\.[0-9]{{3}})% +{_TIME}")
_SPECTRUM = re.compile(r"  Detailed Percentile Spectrum")
_COLUMNS = re.compile(r" +Value +Percentile +TotalCount +1/\(1-Percentile\)")
_ROW = re.compile(
    r" *([0-9]{1,15}\.[0-9]{1,9}) +([01]\.[0-9]{6,15}) +([0-9]{1,18})(?: +(?:[0-9]{1,18}\.[0-9]{2}|inf|Infinity))?",
    re.ASCII,
)
_MEAN = re.compile(rf"#\[Mean += *{_NUMBER}, StdDeviation += *{_NUMBER}\]", re.ASCII)
_MAX = re.compile(rf"#\[Max += *{_NUMBER}, Total count += *([0-9]{{1,18}})\]", re.ASCII)
_BUCKETS = re.compile(r"#\[Buckets += *[0-9]{1,9}, SubBuckets += *[0-9]{1,9}\]", re.ASCII)
_RULE = re.compile(r"-{10,100}")
_TOTAL = re.compile(rf"  ([0-9]{{1,18}}) requests in ([0-9]{{1,9}}\.[0-9]{{1,6}})s, +{_SIZE}read")
_RATE = re.compile(r"Requests/sec: +([0-9]{1,15}\.[0-9]{2})", re.ASCII)
_TRANSFER = re.compile(rf"Transfer/sec: +{_SIZE}")
_SOCKET = re.compile(r"Socket errors: connectionErrors ([0-9]{1,18}), requestTimeouts ([0-9]{1,18})", re.ASCII)
_STATUS = re.compile(r"Non-2xx or 3xx responses: ([0-9]{1,18})", re.ASCII)
_REFUSAL = re.compile(r"(?:ERROR: .*|Failed to .*|.*wrk2?\.sh: .*not found.*|Error: .*|Exception in thread .*)")
_ESCAPES = re.compile(r"\x1b\[[0-9;]{0,20}[A-Za-z]")
_S_PER = {"s": 1, "m": 60, "h": 3600}
_BYTES_PER = {"B": 1, "kB": 2**10, "MB": 2**20, "GB": 2**30}


def read_text(text: str) -> LoadReport:
    """The report in the text. Raises ParseError."""
    lines = Lines(_ESCAPES.sub("", text).replace("\r", ""))
    base = LoadReport("hyperfoil", FORMAT, "closed", "service_time")
    error = lines.seek(
        lambda line: _RUNNING.fullmatch(line) or _TITLE.fullmatch(line),
        _REFUSAL,
        "Hyperfoil",
        max_lines=MAX_LINES_AROUND,
    )
    if error is not None:
        return refused(base, error)
    if running := lines.take(_RUNNING):
        size = lines.expect(_THREADS, "'N threads and M connections'")
        base = replace(
            base,
            duration_nominal_s=float(int(running[1]) * _S_PER[running[2]]),
            url=running[3],
            threads=int(size[1]),
            connections=int(size[2]),
        )
    lines.skip_blank()
    lines.expect(_TITLE, "'Thread Stats'")
    row = lines.expect(_LATENCY, "the 'Latency' row of Thread Stats")
    rates = lines.expect(_REQ_SEC, "the 'Req/Sec' row of Thread Stats")
    percentiles, histogram = _distribution(lines)
    total = lines.expect(_TOTAL, "'N requests in T, B read'")
    rate = lines.expect(_RATE, "'Requests/sec:'")
    transfer = lines.expect(_TRANSFER, "'Transfer/sec:'")
    socket, status = lines.take(_SOCKET), lines.take(_STATUS)
    lines.nothing_more(
        lambda line: _RUNNING.fullmatch(line) or _TITLE.fullmatch(line) or _RATE.fullmatch(line),
        max_lines=MAX_LINES_AROUND,
    )
    latency = LatencySummary(
        _ms(row[1], row[2]),
        _ms(row[3], row[4]),
        max_ms=_ms(row[5], row[6]),
        within_stdev_pct=_known(row[7]),
        percentiles_ms=percentiles,
        histogram=histogram,
    )
    requests = int(total[1])
    report = replace(
        base,
        duration_s=float(total[2]),
        requests=requests,
        throughput_rps=float(rate[1]),
        # Hyperfoil adds up what it sent and what it received.
        details={
            "transferred_bytes": round(float(total[3]) * _BYTES_PER[total[4]]),
            "transferred_bytes_per_s": round(float(transfer[1]) * _BYTES_PER[transfer[2]], 3),
        },
        errors=LoadErrors(
            connect=int(socket[1]) if socket else 0,
            timeout=int(socket[2]) if socket else 0,
            status=int(status[1]) if status else 0,
        ),
        thread_rates=ThreadRates(*(_known(rates[i]) for i in range(1, 5))),
        latency=latency if latency.max_ms else None,
    )
    return judged(report)


def _distribution(lines: Lines) -> tuple[dict[str, float], Histogram | None]:
    percentiles: dict[str, float] = {}
    if not lines.take(_DISTRIBUTION):
        return percentiles, None
    while row := lines.take(_PERCENTILE):
        percentiles[f"{float(row[1]):g}"] = _ms(row[2], row[3])
    lines.skip_blank()
    lines.expect(_SPECTRUM, "'Detailed Percentile Spectrum'")
    lines.expect(_COLUMNS, "the column titles of the percentile spectrum")
    lines.skip_blank()
    rows: list[HistogramRow] = []
    while row := lines.take(_ROW):
        found = HistogramRow(float(row[1]), float(row[2]), int(row[3]))
        if rows and (found.value_ms < rows[-1].value_ms or found.total_count < rows[-1].total_count):
            raise lines.error("a percentile spectrum never goes down, but the row above this line does")
        rows.append(found)
    mean = lines.expect(_MEAN, "a row of the percentile spectrum or '#[Mean'")
    top = lines.expect(_MAX, "'#[Max'")
    lines.expect(_BUCKETS, "'#[Buckets'")
    lines.expect(_RULE, "the rule below the spectrum")
    count = int(top[2])
    if not count:
        return {}, None
    if not rows or rows[-1].total_count != count:
        raise lines.error(f"the percentile spectrum above does not end with all {count} samples")
    return percentiles, Histogram(tuple(rows), _known(mean[1]), _known(mean[2]), _known(top[1]), count)


def _ms(number: str, unit: str) -> float:
    per = {"ns": 1e-6, "ms": 1.0, "s": 1e3}.get(unit, 1e-3)
    return round(float(number) * per, 9)


def _known(text: str) -> float | None:
    return None if text == "NaN" else float(text)
