"""sysbench's text: cpu, memory, fileio, threads, mutex and the Lua scripts.

Source: sysbench 1.0.20 and 0.4.12, src/tests and src/lua/internal/sysbench.lua.
"""

from __future__ import annotations

import re

from agents.base.errors import ParseError
from agents.readers.base.named_result import NamedResult, Readout
from agents.readers.base.numbers import number, percentile_name, times
from agents.readers.base.result_reader import MAX_CHARS, ResultForm, ResultReader, Source, nothing_in

FORMAT = "sysbench-text"
MIB = 1048576
_N = r"([0-9]{1,15}(?:\.[0-9]{1,10})?)"
_LINES: tuple[tuple[re.Pattern[str], tuple[str, ...], float], ...] = tuple(
    (re.compile(rf"\s{{0,20}}{pattern}\s{{0,20}}", re.ASCII), names, factor)
    for pattern, names, factor in (
        (rf"total time:\s+{_N}s", ("duration_s",), 1),
        (rf"total number of events:\s+{_N}", ("events",), 1),
        (rf"events per second:\s+{_N}", ("events_per_s",), 1),
        (rf"transactions:\s+{_N}\s+\({_N} per sec\.\)", ("transactions", "transactions_per_s"), 1),
        (rf"queries:\s+{_N}\s+\({_N} per sec\.\)", ("queries", "queries_per_s"), 1),
        (rf"ignored errors:\s+{_N}\s+\({_N} per sec\.\)", ("errors_ignored", "errors_ignored_per_s"), 1),
        (rf"reconnects:\s+{_N}\s+\({_N} per sec\.\)", ("reconnects", "reconnects_per_s"), 1),
        (rf"read:\s+{_N}", ("queries_read",), 1),
        (rf"write:\s+{_N}", ("queries_write",), 1),
        (rf"other:\s+{_N}", ("queries_other",), 1),
        (rf"total:\s+{_N}", ("queries_total",), 1),
        (rf"Total operations: {_N} \({_N} per second\)", ("operations", "operations_per_s"), 1),
        (rf"{_N} MiB transferred \({_N} MiB/sec\)", ("bytes", "bytes_per_s"), MIB),
        (rf"reads/s:\s+{_N}", ("reads_per_s",), 1),
        (rf"writes/s:\s+{_N}", ("writes_per_s",), 1),
        (rf"fsyncs/s:\s+{_N}", ("fsyncs_per_s",), 1),
        (rf"read, MiB/s:\s+{_N}", ("read_bytes_per_s",), MIB),
        (rf"written, MiB/s:\s+{_N}", ("written_bytes_per_s",), MIB),
        (rf"min:\s+{_N}(?:ms)?", ("latency_min_ms",), 1),
        (rf"avg:\s+{_N}(?:ms)?", ("latency_mean_ms",), 1),
        (rf"max:\s+{_N}(?:ms)?", ("latency_max_ms",), 1),
        (rf"sum:\s+{_N}", ("latency_sum_ms",), 1),
        # 0.4 and 0.5
        (rf"deadlocks:\s+{_N}\s+\({_N} per sec\.\)", ("errors_deadlock", "errors_per_s"), 1),
        (rf"read/write requests:\s+{_N}\s+\({_N} per sec\.\)", ("queries", "queries_per_s"), 1),
        (rf"Operations performed: {_N} \({_N} ops/sec\)", ("operations", "operations_per_s"), 1),
        (rf"{_N} MB transferred \({_N} MB/sec\)", ("bytes", "bytes_per_s"), MIB),
        (rf"{_N} Requests/sec executed", ("operations_per_s",), 1),
    )
)
_PERCENTILE = re.compile(
    rf"\s{{0,20}}(?:approx\.\s+)?([0-9]{{1,3}})(?:th)? percentile:\s+{_N}(?:ms)?\s{{0,20}}", re.ASCII
)
_INTERVAL = re.compile(rf"\[ ?{_N}s ?\] (.{{1,400}})", re.ASCII)
_THREADS = re.compile(r"Number of threads: ([0-9]{1,6})\s{0,20}", re.ASCII)
_VERSION = re.compile(r"sysbench ([0-9][\w.-]{0,40})(?: .{0,80})?", re.ASCII)
_FATAL = re.compile(r"FATAL: (.{1,2000})")
_KINDS = (
    ("cpu", re.compile(r"^CPU speed:|^Prime numbers limit:", re.MULTILINE)),
    ("memory", re.compile(r"^Running memory speed test", re.MULTILINE)),
    ("fileio", re.compile(r"^File operations:|^Extra file open flags:", re.MULTILINE)),
)
_EACH = (
    ("threads", re.compile(r"thds: ([0-9]{1,6})"), 1.0),
    ("transactions_per_s", re.compile(rf"\btps: {_N}"), 1.0),
    ("queries_per_s", re.compile(rf"\bqps: {_N}"), 1.0),
    ("events_per_s", re.compile(rf"\beps: {_N}"), 1.0),
    ("errors_per_s", re.compile(rf"\berr/s: {_N}"), 1.0),
    ("read_bytes_per_s", re.compile(rf"\breads: {_N} MiB/s"), MIB),
    ("written_bytes_per_s", re.compile(rf"\bwrites: {_N} MiB/s"), MIB),
    ("fsyncs_per_s", re.compile(rf"\bfsyncs: {_N}/s"), 1.0),
    ("bytes_per_s", re.compile(rf"^{_N} MiB/sec"), MIB),
)
_EACH_LATENCY = re.compile(rf"\blat(?:ency)? \(ms,([0-9]{{1,3}})%\): {_N}")


def read(source: Source) -> Readout:
    """The one benchmark of sysbench's text, with its lines for each interval. Raises ParseError."""
    text = source.text
    if len(text) > MAX_CHARS:
        raise ParseError(f"the text has {len(text)} characters; a report of sysbench has far fewer", line=1)
    figures: dict[str, object] = {}
    intervals: list[dict[str, object]] = []
    fatal = version = threads = None
    for place, line in enumerate(text.split("\n"), 1):
        if len(line) > 4000:
            continue
        if match := _INTERVAL.match(line):
            intervals.append(_interval(match))
        elif match := _FATAL.match(line):
            fatal = fatal or match[1].rstrip()
        elif match := _THREADS.fullmatch(line):
            threads = int(match[1])
        elif version is None and (match := _VERSION.match(line)):
            version = match[1]
        else:
            _take(line, place, figures)
    beside: dict[str, object] = {"intervals": intervals} if intervals else {}
    if fatal is not None:
        return Readout("sysbench", FORMAT, (), version, {**beside, "error": fatal}, fatal)
    if "duration_s" not in figures or "latency_mean_ms" not in figures:
        raise nothing_in("summary of a test (total time, latency)", "sysbench")
    figures.setdefault("events_per_s", None)
    kind = next((name for name, pattern in _KINDS if pattern.search(text)), None)
    why = "" if figures.get("events") else "no event was completed"
    result = NamedResult(kind, figures, {"threads": threads}, why=why)
    return Readout("sysbench", FORMAT, (result,), version, beside, why)


def _take(line: str, place: int, figures: dict[str, object]) -> None:
    """The figures of one line of the summary."""
    if match := _PERCENTILE.fullmatch(line):
        found = {f"latency_{percentile_name(int(match[1]))}_ms": number(match[2], "the percentile", place)}
    else:
        for pattern, names, factor in _LINES:
            if match := pattern.fullmatch(line):
                values = (number(value, names[0], place) for value in match.groups())
                found = {name: value * factor for name, value in zip(names, values, strict=True)}
                break
        else:
            return
    if twice := sorted(found.keys() & figures.keys()):
        raise ParseError(
            f"{twice[0]} is printed twice; are these two runs?", hint="Give one run in a file.", line=place
        )
    figures |= found


def _interval(match: re.Match[str]) -> dict[str, object]:
    row: dict[str, object] = {"t_s": number(match[1], "the time of an interval")}
    for name, pattern, factor in _EACH:
        if found := pattern.search(match[2]):
            row[name] = times(number(found[1], name), factor)
    if found := _EACH_LATENCY.search(match[2]):
        row[f"latency_{percentile_name(int(found[1]))}_ms"] = number(found[2], "latency")
    return row


def _looks_like(head: str) -> bool:
    return re.search(r"^sysbench [0-9][^\n]{0,100}$", head, re.MULTILINE) is not None


SYSBENCH = ResultReader(
    "sysbench",
    "sysbench",
    (ResultForm(FORMAT, _looks_like, read),),
    ("transactions_per_s", "events_per_s", "operations_per_s", "reads_per_s", "latency_mean_ms"),
)
