"""redis-benchmark: CSV, and text with or without -q. Source: Redis 7.0.15, src/redis-benchmark.c."""

from __future__ import annotations

import re

from agents.base.errors import ParseError
from agents.readers.base.named_result import NamedResult, Readout
from agents.readers.base.numbers import number
from agents.readers.base.result_reader import MAX_CHARS, ResultForm, ResultReader, Source, nothing_in
from agents.readers.base.table import read_table

TOOL = "redis-benchmark"
_HEAD = '"test","rps"'
_COLUMNS = (
    ("throughput_rps", "rps"),
    ("latency_mean_ms", "avg_latency_ms"),
    ("latency_min_ms", "min_latency_ms"),
    ("latency_p50_ms", "p50_latency_ms"),
    ("latency_p95_ms", "p95_latency_ms"),
    ("latency_p99_ms", "p99_latency_ms"),
    ("latency_max_ms", "max_latency_ms"),
)
_ERROR = re.compile(r"^(?:Error |ERROR|Could not connect|WARNING: AUTH|All connections|NOAUTH|NOPERM).{0,2000}")
_N = r"([0-9]{1,12}(?:\.[0-9]{1,9})?)"
_OLD_ROW = re.compile(rf'"([^"]{{1,500}})","{_N}"\s{{0,9}}', re.ASCII)
_TITLE = re.compile(r"\s{0,200}====== (.{1,500}?) ======\s{0,20}")
_QUIET = re.compile(rf"\s{{0,200}}(\S.{{0,500}}?): {_N} requests per second(?:, p50={_N} msec)?\s{{0,20}}", re.ASCII)
_LINES: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...] = tuple(
    (re.compile(rf"\s{{0,20}}{pattern}\s{{0,20}}", re.ASCII), names)
    for pattern, names in (
        (rf"{_N} requests completed in {_N} seconds", ("requests", "duration_s")),
        (rf"throughput summary: {_N} requests per second", ("throughput_rps",)),
        (rf"{_N} requests per second", ("throughput_rps",)),
        (
            r"\s+".join([_N] * 6),
            ("mean", "min", "p50", "p95", "p99", "max"),
        ),
    )
)
_PARAMS = (
    ("connections", re.compile(r"\s{0,20}([0-9]{1,9}) parallel clients\s{0,20}", re.ASCII)),
    ("payload_bytes", re.compile(r"\s{0,20}([0-9]{1,12}) bytes payload\s{0,20}", re.ASCII)),
    ("keep_alive", re.compile(r"\s{0,20}keep alive: ([01])\s{0,20}", re.ASCII)),
    ("threads", re.compile(r"\s{0,20}threads: ([0-9]{1,6})\s{0,20}", re.ASCII)),
)


def read_csv(source: Source) -> Readout:
    """The rows of --csv. Raises ParseError."""
    head = source.text.find(_HEAD)
    if head < 0:
        return _readout("redis-benchmark-csv", _old_rows(source.text), _error(source.text))
    error = _error(source.text[:head])
    results = [
        NamedResult(row.text("test"), {name: row.known(column) for name, column in _COLUMNS})
        for row in read_table(source.text[head:], ("test", "rps"), TOOL, after=source.text.count("\n", 0, head))
    ]
    return _readout("redis-benchmark-csv", results, error)


def _old_rows(text: str) -> list[NamedResult]:
    """The rows of Redis before 6.2: a name and a rate, no head line."""
    if len(text) > MAX_CHARS:
        raise ParseError(f"the text has {len(text)} characters; a report of {TOOL} has far fewer", line=1)
    unknown = dict.fromkeys((name for name, _ in _COLUMNS[1:]), None)
    return [
        NamedResult(match[1], {"throughput_rps": number(match[2], match[1][:60], place), **unknown})
        for place, line in enumerate(text.split("\n"), 1)
        if len(line) < 1000 and (match := _OLD_ROW.fullmatch(line))
    ]


def read_text(source: Source) -> Readout:
    """The blocks of the text, or the lines of -q. Progress, which ends in a carriage return, is passed over.

    Raises ParseError.
    """
    if len(source.text) > MAX_CHARS:
        raise ParseError(f"the text has {len(source.text)} characters; a report of {TOOL} has far fewer", line=1)
    results: list[NamedResult] = []
    block: _Block | None = None
    for place, line in enumerate(source.text.split("\n"), 1):
        line = line.rsplit("\r", 1)[-1]
        if len(line) > 2000:
            continue
        if title := _TITLE.fullmatch(line):
            results += block.result() if block else []
            block = _Block(title[1], place)
        elif block is not None:
            block.take(line, place)
        elif quiet := _QUIET.fullmatch(line):
            p50 = number(quiet[3], "p50", place) if quiet[3] else None
            rate = {"throughput_rps": number(quiet[2], "requests per second", place)}
            results.append(
                NamedResult(quiet[1], {**rate, "latency_p50_ms": p50, "latency_mean_ms": None, "latency_p99_ms": None})
            )
    results += block.result() if block else []
    return _readout("redis-benchmark-text", results, _error(source.text))


class _Block:
    """What stands under one title."""

    def __init__(self, title: str, line: int) -> None:
        self._title, self._line = title, line
        self._figures: dict[str, object] = {}
        self._params: dict[str, object] = {}

    def take(self, line: str, place: int) -> None:
        for name, pattern in _PARAMS:
            if match := pattern.fullmatch(line):
                self._params[name] = int(match[1])
                return
        for pattern, names in _LINES:
            if match := pattern.fullmatch(line):
                for name, value in zip(names, match.groups(), strict=True):
                    ours = name if len(names) < 6 else f"latency_{name}_ms"
                    self._figures[ours] = number(value, name, place)
                return

    def result(self) -> list[NamedResult]:
        if "throughput_rps" not in self._figures:
            raise ParseError(
                f"the block of {self._title[:60]} has no throughput", hint="Is the text cut off?", line=self._line
            )
        return [NamedResult(self._title, self._figures, self._params)]


def _error(text: str) -> str | None:
    lines = text.replace("\r", "\n").split("\n")
    return next((line.strip() for line in lines if len(line) < 4000 and _ERROR.match(line)), None)


def _readout(form: str, results: list[NamedResult], error: str | None) -> Readout:
    if not results and error is None:
        raise nothing_in("result", TOOL)
    return Readout(TOOL, form, tuple(results), None, {"error": error} if error else {}, error or "")


def _is_text(head: str) -> bool:
    if head.startswith("Could not connect to Redis at "):
        return True
    lines = [line.rsplit("\r", 1)[-1] for line in head.split("\n")]
    return any(len(line) < 1000 and (_TITLE.fullmatch(line) or _QUIET.fullmatch(line)) for line in lines)


REDIS_BENCHMARK = ResultReader(
    TOOL,
    TOOL,
    (
        ResultForm("redis-benchmark-csv", lambda head: _HEAD in head or _OLD_ROW.match(head) is not None, read_csv),
        ResultForm("redis-benchmark-text", _is_text, read_text),
    ),
    ("throughput_rps",),
)
