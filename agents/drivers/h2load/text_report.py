"""The text report of h2load. Its KB, MB and GB are powers of 1024; us, ms and s stand at each figure."""

from __future__ import annotations

import re
from dataclasses import replace

from agents.drivers.base.unusable import judged, refused
from agents.formats.report_lines import Lines
from agents.results.report import LatencySummary, LoadErrors, LoadReport

FORMAT = "h2load-text"
MAX_LINES_AROUND = 100_000

_COUNT = r"([0-9]{1,18})"
_TIME = r"([0-9]{1,12}(?:\.[0-9]{1,3})?)(us|ms|s|m|h)"
_SIZE = r"([0-9]{1,15}(?:\.[0-9]{1,3})?)(B|KB|MB|GB|TB)"
_PHASES = re.compile(
    rf"spawning thread #[0-9]{{1,9}}: {_COUNT} total client\(s\)\. "
    r"(?:Timing-based test with ([0-9]{1,9})s of warm-up time and ([0-9]{1,9})s of main duration for measurements\."
    r"|[0-9]{1,18} total requests)",
    re.ASCII,
)
_PROTOCOL = re.compile(r"Application protocol: (\S{1,40})")
_FINISHED = re.compile(rf"finished in {_TIME}, ([0-9]{{1,15}}\.[0-9]{{2}}) req/s, {_SIZE}/s", re.ASCII)
_REQUESTS = re.compile(
    rf"requests: {_COUNT} total, {_COUNT} started, {_COUNT} done, {_COUNT} succeeded, {_COUNT} failed, "
    rf"{_COUNT} errored, {_COUNT} timeout",
    re.ASCII,
)
_STATUS = re.compile(rf"status codes: {_COUNT} 2xx, {_COUNT} 3xx, {_COUNT} 4xx, {_COUNT} 5xx", re.ASCII)
_TRAFFIC = re.compile(
    rf"traffic: \S{{1,20}} \({_COUNT}\) total, \S{{1,20}} \({_COUNT}\) headers \(space savings -?[0-9.]{{1,12}}%\), "
    rf"\S{{1,20}} \({_COUNT}\) data",
    re.ASCII,
)
_UDP = re.compile(r"UDP datagram: [0-9]{1,18} sent, [0-9]{1,18} received", re.ASCII)
_COLUMNS = re.compile(r" +min +max +(?:median +p95 +p99 +)?mean +sd +\+/- sd")
_ROW = re.compile(rf"(?:time for )?request *: +((?:{_TIME} +){{4,7}})([0-9]{{1,3}}\.[0-9]{{2}})%", re.ASCII)
_OTHER_ROW = re.compile(r"(?:time for connect|connect|time to 1st byte|TTFB|req/s) *: +\S.{1,200}\.[0-9]{2}%")
_ONE_TIME = re.compile(_TIME, re.ASCII)
_REFUSAL = re.compile(r"(?:invalid URI: .*|h2load: .*|.*\bh2load: (?:not found|command not found|.*Assertion .*))")
_MS_PER = {"us": 0.001, "ms": 1.0, "s": 1000.0, "m": 60_000.0, "h": 3_600_000.0}
_BYTES_PER = {"B": 1, "KB": 2**10, "MB": 2**20, "GB": 2**30, "TB": 2**40}


def read_text(text: str) -> LoadReport:
    """The report in h2load's text. Raises ParseError."""
    lines = Lines(text)
    base = LoadReport("h2load", FORMAT, "closed", "service_time")
    found = _preamble(lines, base)
    if isinstance(found, str):
        return refused(base, found)
    base, warm_up_s = found
    finished = lines.expect(_FINISHED, "'finished in'")
    total, started, done, succeeded, failed, errored, timeout = (
        int(n) for n in lines.expect(_REQUESTS, "'requests:'").groups()
    )
    classes = [int(n) for n in lines.expect(_STATUS, "'status codes:'").groups()]
    traffic = [int(n) for n in lines.expect(_TRAFFIC, "'traffic:'").groups()]
    lines.take(_UDP)
    latency = _latency(lines)
    lines.nothing_more(
        lambda line: line.startswith(("finished in", "starting benchmark", "requests:")), max_lines=MAX_LINES_AROUND
    )
    network = max(0, errored - timeout)
    report = replace(
        base,
        duration_s=round(max(0.0, _ms(finished[1], finished[2]) / 1000 - warm_up_s), 9),
        requests=done,
        throughput_rps=float(finished[3]),
        bytes_read=traffic[0],
        bytes_per_s=round(float(finished[4]) * _BYTES_PER[finished[5]], 3),
        body_bytes=traffic[2],
        errors=LoadErrors(
            connect=0 if started else network,
            read=network if started else 0,
            timeout=timeout,
            status=classes[2] + classes[3],
        ),
        latency=latency,
        details={
            "requests_total": total,
            "requests_succeeded": succeeded,
            "errors_failed": failed,
            "errors_errored": errored,
            **{f"status_{i}xx": count for i, count in enumerate(classes, start=2)},
            **base.details,
        },
    )
    return judged(report)


def _preamble(lines: Lines, base: LoadReport) -> tuple[LoadReport, float] | str:
    """The report with what stands above 'finished in', and the seconds of warm-up; or why h2load did not start."""
    clients, threads, warm_up_s, duration_s, protocol, refusal = 0, 0, 0, None, "", None
    for _ in range(MAX_LINES_AROUND):
        if lines.ended:
            break
        line = lines.peek()
        if line.startswith("finished in"):
            details: dict[str, float | str] = {"protocol": protocol} if protocol else {}
            return replace(
                base,
                connections=clients or None,
                threads=threads or None,
                duration_nominal_s=duration_s,
                details=details,
            ), float(warm_up_s)
        if match := _PHASES.fullmatch(line):
            clients, threads = clients + int(match[1]), threads + 1
            warm_up_s, duration_s = int(match[2] or 0), float(match[3]) if match[3] else None
        elif match := _PROTOCOL.fullmatch(line):
            protocol = match[1]
        elif refusal is None and len(line) < 2000 and _REFUSAL.fullmatch(line):
            refusal = line.strip()
        lines.skip()
    if refusal is None:
        raise lines.error("expected 'finished in'", hint="Give the whole standard output of h2load.")
    return refusal


def _latency(lines: Lines) -> LatencySummary | None:
    columns = lines.expect(_COLUMNS, "the columns of the times")[0].replace("+/- sd", "").split()
    row = lines.expect(_ROW, "the times of a request")
    times = [_ms(number, unit) for number, unit in _ONE_TIME.findall(row[1])]
    for name in ("connect", "first byte", "req/s"):
        lines.expect(_OTHER_ROW, f"the row of {name}")
    if len(times) != len(columns):
        raise lines.error(f"the row of the requests has {len(times)} times for {len(columns)} columns")
    known = dict(zip(columns, times, strict=True))
    if not known["max"]:
        return None
    names = {"median": "50", "p95": "95", "p99": "99"}
    percentiles = {names[name]: value for name, value in known.items() if name in names}
    return LatencySummary(known["mean"], known["sd"], known["min"], known["max"], float(row[4]), percentiles)


def _ms(number: str, unit: str) -> float:
    return round(float(number) * _MS_PER[unit], 9)
