"""The text report of wrk and wrk2: one grammar, as both come from one program.

Whatever a Lua script prints before "Running ..." and after "Transfer/sec" is passed over; inside the report nothing is.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Literal

from agents.base.errors import ParseError
from agents.drivers.base.unusable import ERROR_PAGES, NO_REQUEST
from agents.drivers.wrk import hdr_block
from agents.drivers.wrk.units import (
    BYTES,
    DURATION,
    PERCENT,
    RATE,
    duration_ms,
    percent,
    rate,
    read_percentiles,
    size_bytes,
)
from agents.formats.report_lines import Lines
from agents.results.report import LatencySummary, LoadErrors, LoadReport, ThreadRates

Tool = Literal["wrk", "wrk2"]

MAX_LINES_AROUND = 20_000
REFUSAL_LINES = 20
WRK_TIMEOUT_MS = 2000.0
BACKLOG = 5
MOST_CONNECTIONS = 65_000
"""More than one address has ports for; where the report does not say how many there were."""

_RUNNING = re.compile(r"Running ([0-9]{1,9})(s|m|h) test @ (\S{1,8192})", re.ASCII)
_SIZE = re.compile(r"  ([0-9]{1,9}) threads and ([0-9]{1,9}) connections", re.ASCII)
_CALIBRATION = re.compile(
    r"  Thread calibration: mean lat\.: \S{1,40}ms, rate sampling interval: [0-9]{1,18}ms", re.ASCII
)
_STATS = re.compile(r"  Thread Stats +Avg +Stdev +Max +\+/- Stdev")
_LATENCY = re.compile(rf" +Latency +({DURATION}) +({DURATION}) +({DURATION}) +({PERCENT})", re.ASCII)
_REQ_SEC = re.compile(rf" +Req/Sec +({RATE}) +({RATE}) +({RATE}) +({PERCENT})", re.ASCII)
_OF_WRK2 = re.compile(r"  Latency Distribution \(HdrHistogram - (?:Recorded|Uncorrected) Latency", re.ASCII)
_DISTRIBUTION = re.compile(r"  Latency Distribution(?: \(HdrHistogram - (Recorded|Uncorrected) Latency.*\))?")
_PERCENTILE = re.compile(rf" +([0-9]{{1,3}}(?:\.[0-9]{{1,6}})?)% +({DURATION})", re.ASCII)
_TOTAL = re.compile(rf"  ([0-9]{{1,18}}) requests in ({DURATION}), ({BYTES}) read", re.ASCII)
_SOCKET = re.compile(
    r"  Socket errors: connect ([0-9]{1,18}), read ([0-9]{1,18}), write ([0-9]{1,18}), timeout ([0-9]{1,18})", re.ASCII
)
_STATUS = re.compile(r"  Non-2xx or 3xx responses: ([0-9]{1,18})", re.ASCII)
_THROUGHPUT = re.compile(r"Requests/sec: +([0-9]{1,15}\.[0-9]{2})", re.ASCII)
_TRANSFER = re.compile(rf"Transfer/sec: +({BYTES})", re.ASCII)

_REPORT_LINE = re.compile(
    r"Running .* test @|  Thread Stats |  [0-9]+ requests in |Requests/sec:|Transfer/sec:", re.ASCII
)
_REFUSAL = re.compile(
    r"unable to (?:connect to|resolve|create thread|record) .*"
    r"|invalid URL: .*|number of connections must be >= threads.*|.*[Tt]hroughput MUST be specified.*"
    r"|Usage: wrk <options> <url>|wrk: (?:invalid|unrecognized|option|unknown) .*|.*: option requires an argument.*"
    r"|PANIC: unprotected error in call to Lua API .*|\S+\.lua: cannot open .*|\S+\.lua:[0-9]+: .*"
    r"|.*\bwrk2?: (?:command )?not found|.*\bwrk2?: (?:Permission denied|No such file or directory|cannot execute.*)",
    re.ASCII,
)
_S_PER = {"s": 1, "m": 60, "h": 3600}


def is_of_wrk2(text: str) -> bool:
    """Whether wrk2 printed the text: it calibrates, its histograms are HdrHistograms, or it counted a backlog.

    A backlog is a mean latency that would need more than BACKLOG times the connections that there are, with a longest
    one beyond wrk's timeout, after which wrk does not count an answer's latency.
    """
    lines = text.splitlines()[:MAX_LINES_AROUND]
    if any(_CALIBRATION.fullmatch(line) or _OF_WRK2.match(line) for line in lines):
        return True
    size, row, throughput = (
        next((found for line in lines if (found := pattern.fullmatch(line))), None)
        for pattern in (_SIZE, _LATENCY, _THROUGHPUT)
    )
    if row is None or throughput is None:
        return False
    mean_ms, longest_ms = duration_ms(row[1]) or 0.0, duration_ms(row[3]) or 0.0
    connections = int(size[2]) if size else MOST_CONNECTIONS
    return longest_ms > WRK_TIMEOUT_MS and float(throughput[1]) * mean_ms / 1000 > BACKLOG * connections


def read_text(text: str, tool: Tool) -> LoadReport:
    """The report in what `tool` printed.

    A tool that did not start gives a report that is not complete. Raises ParseError for everything else that is not
    exactly one whole report.
    """
    lines = Lines(text)
    if (refusal := _refusal(lines, tool)) is not None:
        return refusal
    base = _header(lines, tool)
    lines.expect(_STATS, "'Thread Stats'")
    latency = _latency_row(lines)
    rates = _rates_row(lines)
    latency, uncorrected = _distributions(lines, tool, latency)
    total = lines.expect(_TOTAL, "'N requests in T, B read'")
    requests, duration = int(total[1]), duration_ms(total[2])
    errors = _errors(lines)
    throughput = lines.expect(_THROUGHPUT, "'Requests/sec:'")
    transfer = lines.expect(_TRANSFER, "'Transfer/sec:'")
    lines.nothing_more(_REPORT_LINE.match, max_lines=MAX_LINES_AROUND)
    why = why_unusable(tool, requests, errors, latency)
    return replace(
        base,
        usable=why is None,
        why=why,
        duration_s=None if duration is None else duration / 1000,
        requests=requests,
        throughput_rps=float(throughput[1]),
        bytes_read=round(size_bytes(total[3])),
        bytes_per_s=round(size_bytes(transfer[1]), 3),
        errors=errors,
        thread_rates=rates,
        latency=latency,
        uncorrected_latency=uncorrected,
    )


def _report(tool: Tool) -> LoadReport:
    if tool == "wrk2":
        return LoadReport("wrk2", "wrk2-text", "open", "response_time")
    return LoadReport("wrk", "wrk-text", "closed", "service_time")


def _refusal(lines: Lines, tool: Tool) -> LoadReport | None:
    """The report of a tool that did not start, and the cursor before the first line of a report otherwise."""
    refusal = ""
    first = None
    filled = 0
    for _ in range(MAX_LINES_AROUND):
        if lines.ended:
            break
        line = lines.peek()
        if _REPORT_LINE.match(line):
            return None
        if line:
            filled += 1
            first = first or lines.number
        if not refusal and filled <= REFUSAL_LINES and _REFUSAL.fullmatch(line):
            refusal = line.strip()
        lines.skip()
    if refusal:
        why = f"the tool did not start: {refusal}"
        return replace(_report(tool), complete=False, error=refusal, usable=False, why=why)
    problem = (
        "the text is empty" if first is None else f"no report of {tool} in the text (no 'Running ... test @' line)"
    )
    raise ParseError(problem, hint=f"Give the whole standard output of {tool}.", line=first or 1)


def _header(lines: Lines, tool: Tool) -> LoadReport:
    base = _report(tool)
    if running := lines.take(_RUNNING):
        size = lines.expect(_SIZE, "'N threads and M connections'")
        base = replace(
            base,
            duration_nominal_s=float(int(running[1]) * _S_PER[running[2]]),
            url=running[3],
            threads=int(size[1]),
            connections=int(size[2]),
        )
    calibrated = 0
    while lines.take(_CALIBRATION):
        calibrated += 1
    if calibrated and tool == "wrk":
        raise lines.error("this is the report of wrk2 (it has calibration lines)", hint="Read it as wrk2.")
    return replace(base, calibrated_threads=calibrated or None)


def _latency_row(lines: Lines) -> LatencySummary | None:
    row = lines.expect(_LATENCY, "the 'Latency' row of Thread Stats")
    largest = duration_ms(row[3])
    if not largest:
        # Nothing was recorded: a real response takes at least 1 us, and the zeros printed beside it mean nothing.
        return None
    return LatencySummary(duration_ms(row[1]), duration_ms(row[2]), None, largest, percent(row[4]))


def _rates_row(lines: Lines) -> ThreadRates:
    row = lines.expect(_REQ_SEC, "the 'Req/Sec' row of Thread Stats")
    return ThreadRates(rate(row[1]), rate(row[2]), rate(row[3]), percent(row[4]))


def _distributions(
    lines: Lines, tool: Tool, latency: LatencySummary | None
) -> tuple[LatencySummary | None, LatencySummary | None]:
    """`latency` with its percentiles, and the uncorrected latency that wrk2 -U adds."""
    uncorrected = None
    seen: set[str] = set()
    while title := lines.take(_DISTRIBUTION):
        which = title[1] or "plain"
        if which in seen:
            raise lines.error(f"a second latency distribution ({which})")
        if (which == "plain") != (tool == "wrk"):
            other = "wrk" if tool == "wrk2" else "wrk2"
            raise lines.error(f"this is the latency distribution of {other}", hint=f"Read it as {other}.")
        seen.add(which)
        if which == "plain":
            percentiles = _plain_percentiles(lines)
            latency = replace(latency, percentiles_ms=percentiles) if latency else None
        elif which == "Recorded":
            block = hdr_block.read_block(lines)
            if latency and block:
                latency = replace(latency, percentiles_ms=block.percentiles_ms, histogram=block.histogram)
        else:
            uncorrected = hdr_block.read_block(lines)
    return latency, uncorrected


def _plain_percentiles(lines: Lines) -> dict[str, float]:
    percentiles = read_percentiles(lines, _PERCENTILE)
    if not percentiles:
        raise lines.error("expected the percentiles of the latency distribution")
    return percentiles


def _errors(lines: Lines) -> LoadErrors:
    """wrk prints no line for counts that are all zero, so a missing line is a zero."""
    socket = lines.take(_SOCKET)
    connect, read, write, timeout = (int(n) for n in socket.groups()) if socket else (0, 0, 0, 0)
    status = lines.take(_STATUS)
    return LoadErrors(connect, read, write, timeout, int(status[1]) if status else 0)


def why_unusable(tool: Tool, requests: int, errors: LoadErrors, latency: LatencySummary | None) -> str | None:
    """Why the figures must not enter a comparison, in plain words; None when they may."""
    if requests == 0:
        return NO_REQUEST
    if errors.status is not None and errors.status >= requests:
        return ERROR_PAGES
    if latency is None and tool == "wrk":
        return "every response came after the timeout; no latency was recorded"
    if latency is None:
        return (
            "no response was recorded after the 10 s of calibration: the server fell silent or the phase is too short"
        )
    return None
