"""The text report of ApacheBench. Its times are whole milliseconds, its Kbytes are 1024 bytes."""

from __future__ import annotations

import re
from dataclasses import replace

from agents.drivers.base.unusable import judged, refused
from agents.formats.report_lines import Lines
from agents.results.report import LatencySummary, LoadErrors, LoadReport

FORMAT = "ab-text"
MAX_LINES_BEFORE = 20_000
NO_ANSWER = "no byte came back: the server closed the connections without an answer, which ab counts as completed"

_COUNT = r"([0-9]{1,18})"
_NUMBER = r"([0-9]{1,15}\.[0-9]{1,6})"
_TITLE = re.compile(r"This is ApacheBench, Version \S{1,40} .*")
_GAVE_UP = re.compile(r".*?((?:apr_[a-z_]{1,60}(?:\(\))?|ab|SSL \w{1,40} failed.{0,40}?): \S.{0,300})")
_SERVER = re.compile(r"Server Software: *(.{0,300})")
_HOST = re.compile(r"Server Hostname: +(\S{1,300})")
_PORT = re.compile(r"Server Port: +([0-9]{1,5})", re.ASCII)
_TLS = re.compile(r"(?:SSL/TLS Protocol|Server Temp Key|TLS Server Name): +(.{1,300})")
_PATH = re.compile(r"Document Path: +(\S{1,8192})")
_LENGTH = re.compile(r"Document Length: +(?:Variable|[0-9]{1,18} bytes)", re.ASCII)
_CONCURRENCY = re.compile(rf"Concurrency Level: +{_COUNT}", re.ASCII)
_TIME = re.compile(rf"Time taken for tests: +{_NUMBER} seconds", re.ASCII)
_COMPLETE = re.compile(rf"Complete requests: +{_COUNT}", re.ASCII)
_FAILED = re.compile(rf"Failed requests: +{_COUNT}", re.ASCII)
_KINDS = re.compile(rf"   \(Connect: {_COUNT}, Receive: {_COUNT}, Length: {_COUNT}, Exceptions: {_COUNT}\)", re.ASCII)
_WRITE = re.compile(rf"Write errors: +{_COUNT}", re.ASCII)
_STATUS = re.compile(rf"Non-2xx responses: +{_COUNT}", re.ASCII)
_KEPT = re.compile(rf"Keep-Alive requests: +{_COUNT}", re.ASCII)
_BYTES = re.compile(rf"Total transferred: +{_COUNT} bytes", re.ASCII)
_SENT = re.compile(rf"Total body sent: +{_COUNT}", re.ASCII)
_BODY = re.compile(rf"HTML transferred: +{_COUNT} bytes", re.ASCII)
_RATE = re.compile(rf"Requests per second: +{_NUMBER} \[#/sec\] \(mean\)", re.ASCII)
_MEAN = re.compile(rf"Time per request: +{_NUMBER} \[ms\] \(mean\)", re.ASCII)
_MEAN_ALL = re.compile(rf"Time per request: +{_NUMBER} \[ms\] \(mean, across all concurrent requests\)", re.ASCII)
_TRANSFER = re.compile(rf"Transfer rate: +{_NUMBER} \[Kbytes/sec\] received", re.ASCII)
_TRANSFER_SENT = re.compile(r" +[0-9.]{1,20} kb/s (?:sent|total)", re.ASCII)
_TIMES = re.compile(r"Connection Times \(ms\)")
_TIMES_COLUMNS = re.compile(r" +min +(?:mean\[\+/-sd\] +median|avg) +max")
_TIMES_ROW = re.compile(r"(?:Connect|Processing|Waiting): +[0-9. ]{1,80}", re.ASCII)
_TOTAL = re.compile(rf"Total: +{_COUNT} +{_COUNT} +([0-9]{{1,15}}\.[0-9]) +{_COUNT} +{_COUNT}", re.ASCII)
_TOTAL_SHORT = re.compile(rf"Total: +{_COUNT} +{_COUNT} +{_COUNT} *", re.ASCII)
_WARNING = re.compile(r"(?:WARNING|ERROR): The median and mean .*| {8}(?:These results|apart\.).*")
_SERVED = re.compile(r"Percentage of the requests served within a certain time \(ms\)")
_PERCENTILE = re.compile(r" (?: ([0-9]{2})% +([0-9]{1,15})|(100)% +([0-9]{1,15}) \(longest request\))", re.ASCII)


def read_text(text: str) -> LoadReport:
    """The report in ab's text; one that is not complete when ab stopped at an error. Raises ParseError."""
    lines = Lines(text)
    base = LoadReport("ab", FORMAT, "closed", "service_time")
    if (error := _find_server(lines)) is not None:
        return refused(base, error, started="70007" in error)
    details: dict[str, float | str] = _server(lines)
    base = replace(base, connections=int(lines.expect(_CONCURRENCY, "'Concurrency Level:'")[1]))
    duration_s = float(lines.expect(_TIME, "'Time taken for tests:'")[1])
    requests = int(lines.expect(_COMPLETE, "'Complete requests:'")[1])
    errors = _errors(lines, details)
    kept = lines.take(_KEPT)
    details["keepalive_requests"] = int(kept[1]) if kept else 0
    bytes_read = int(lines.expect(_BYTES, "'Total transferred:'")[1])
    lines.take(_SENT)
    body_bytes = int(lines.expect(_BODY, "'HTML transferred:'")[1])
    rate = float(lines.expect(_RATE, "'Requests per second:'")[1])
    mean_ms = float(lines.expect(_MEAN, "'Time per request:'")[1]) if requests else None
    if requests:
        lines.expect(_MEAN_ALL, "the second 'Time per request:'")
    transfer = float(lines.expect(_TRANSFER, "'Transfer rate:'")[1])
    while lines.take(_TRANSFER_SENT):
        pass
    latency = _latency(lines, mean_ms) if mean_ms is not None else None
    lines.nothing_more(lambda line: _TITLE.fullmatch(line) or _SERVER.fullmatch(line), max_lines=MAX_LINES_BEFORE)
    report = replace(
        base,
        duration_s=duration_s,
        requests=requests,
        throughput_rps=rate,
        bytes_read=bytes_read,
        bytes_per_s=round(transfer * 1024, 3),
        body_bytes=body_bytes,
        errors=errors,
        latency=latency if bytes_read else None,
        details=details,
    )
    failed = (errors.connect or 0) + (errors.read or 0) + (errors.other or 0)
    silent = requests and not bytes_read and not errors.total
    return judged(report, failed=failed, why=NO_ANSWER if silent else None)


def _find_server(lines: Lines) -> str | None:
    """Go to the line before 'Server Software:'; the error that ab stopped with when there is none."""
    titled, error = False, None
    for _ in range(MAX_LINES_BEFORE):
        if lines.ended:
            break
        line = lines.peek()
        if _SERVER.fullmatch(line):
            if not titled:
                raise lines.error("expected 'This is ApacheBench' above")
            return None
        titled = titled or _TITLE.fullmatch(line) is not None
        if error is None and len(line) < 2000 and (match := _GAVE_UP.fullmatch(line)):
            error = match[1].strip()
        lines.skip()
    if error is None:
        raise lines.error("expected 'Server Software:'", hint="Give the whole output of ab.")
    return error


def _server(lines: Lines) -> dict[str, float | str]:
    details: dict[str, float | str] = {}
    if software := lines.expect(_SERVER, "'Server Software:'")[1]:
        details["server_software"] = software
    details["host"] = lines.expect(_HOST, "'Server Hostname:'")[1]
    details["port"] = int(lines.expect(_PORT, "'Server Port:'")[1])
    while lines.take(_TLS):
        pass
    lines.skip_blank()
    details["path"] = lines.expect(_PATH, "'Document Path:'")[1]
    lines.expect(_LENGTH, "'Document Length:'")
    lines.skip_blank()
    return details


def _errors(lines: Lines, details: dict[str, float | str]) -> LoadErrors:
    """ab prints no line for counts that are zero. A body of another length is no error: pages may be dynamic."""
    details["errors_failed"] = failed = int(lines.expect(_FAILED, "'Failed requests:'")[1])
    kinds = lines.take(_KINDS)
    if failed and not kinds:
        raise lines.error("expected the kinds of the failed requests")
    connect, read, length, exceptions = (int(n) for n in kinds.groups()) if kinds else (0, 0, 0, 0)
    if length:
        details["other_lengths"] = length
    write = lines.take(_WRITE)
    status = lines.take(_STATUS)
    # A broken connection is an exception as well as a failed read, so only the exceptions beyond are other errors.
    return LoadErrors(
        connect, read, int(write[1]) if write else 0, None, int(status[1]) if status else 0, max(0, exceptions - read)
    )


def _latency(lines: Lines, mean_ms: float) -> LatencySummary:
    lines.skip_blank()
    lines.expect(_TIMES, "'Connection Times (ms)'")
    lines.expect(_TIMES_COLUMNS, "the columns of the connection times")
    for name in ("Connect", "Processing", "Waiting"):
        lines.expect(_TIMES_ROW, f"the times of '{name}:'")
    total = lines.take(_TOTAL)
    # -S leaves the standard deviation and the median out, -d the percentiles.
    short = None if total else lines.expect(_TOTAL_SHORT, "the times of 'Total:'")
    while lines.take(_WARNING):
        pass
    if lines.ended:
        raise lines.error("expected the end of the line before", hint="Give the whole output of ab.")
    percentiles = _percentiles(lines)
    if total is None:
        shortest, longest = (float(short[1]), float(short[3])) if short else (None, None)
        return LatencySummary(mean_ms, None, shortest, longest, percentiles_ms=percentiles)
    return LatencySummary(mean_ms, float(total[3]), float(total[1]), float(total[5]), percentiles_ms=percentiles)


def _percentiles(lines: Lines) -> dict[str, float]:
    lines.skip_blank()
    if lines.ended:
        return {}
    lines.expect(_SERVED, "'Percentage of the requests served'")
    percentiles: dict[str, float] = {}
    while row := lines.take(_PERCENTILE):
        percentiles[row[1] or row[3]] = float(row[2] or row[4])
    if "100" not in percentiles:
        raise lines.error("expected the percentiles up to 100%")
    return percentiles
