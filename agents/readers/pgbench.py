"""pgbench's text and its two kinds of log, the times of which are microseconds.

Source: PostgreSQL 15, src/bin/pgbench/pgbench.c (printResults, doLog) and its documentation of the logs.
"""

from __future__ import annotations

import math
import re

from agents.base.errors import ParseError
from agents.readers.base.named_result import NamedResult, Readout
from agents.readers.base.numbers import count, mean, number, over
from agents.readers.base.result_reader import MAX_CHARS, ResultForm, ResultReader, Source, nothing_in
from agents.results.report import nearest_rank

TOOL = "pgbench"
US_PER_MS = 1e3
_N = r"([0-9]{1,15}(?:\.[0-9]{1,9})?)"
_PARAMS = (
    ("scale", re.compile(r"scaling factor: ([0-9]{1,9})")),
    ("clients", re.compile(r"number of clients: ([0-9]{1,9})")),
    ("threads", re.compile(r"number of threads: ([0-9]{1,9})")),
    ("max_tries", re.compile(r"maximum number of tries: ([0-9]{1,9})")),
)
_LINES = tuple(
    (re.compile(pattern, re.ASCII), names)
    for pattern, names in (
        (rf"duration: {_N} s", ("duration_s",)),
        (rf"number of transactions actually processed: {_N}(?:/[0-9]{{1,15}})?", ("transactions",)),
        (rf"number of failed transactions: {_N} \(.{{1,20}}%\)", ("transactions_failed",)),
        (rf"number of serialization failures: {_N} \(.{{1,20}}%\)", ("errors_serialization",)),
        (rf"number of deadlock failures: {_N} \(.{{1,20}}%\)", ("errors_deadlock",)),
        (rf"number of transactions retried: {_N} \(.{{1,20}}%\)", ("transactions_retried",)),
        (rf"total number of retries: {_N}", ("retries",)),
        (rf"number of transactions skipped: {_N} \(.{{1,20}}%\)", ("transactions_skipped",)),
        (rf"number of transactions above the {_N} ms latency limit: {_N}/.{{1,60}}", ("", "transactions_late")),
        (rf"latency average = {_N} ms(?: \(including failures\))?", ("latency_mean_ms",)),
        (rf"latency stddev = {_N} ms", ("latency_stdev_ms",)),
        (rf"rate limit schedule lag: avg {_N} \(max {_N}\) ms", ("schedule_lag_mean_ms", "schedule_lag_max_ms")),
        (rf"initial connection time = {_N} ms", ("connect_ms",)),
        (rf"average connection time = {_N} ms", ("connect_mean_ms",)),
        (
            rf"tps = {_N} \((?:without initial connection time|excluding connections establishing)\)",
            ("transactions_per_s",),
        ),
        (rf"tps = {_N} \((?:including reconnection times)\)", ("transactions_per_s",)),
        (rf"{_N} transactions \(.{{1,20}}% of total(?:, tps = {_N})\)", ("transactions", "transactions_per_s")),
    )
)
_SCRIPT = re.compile(r"SQL script ([0-9]{1,6}): (.{1,500})")
_WEIGHT = re.compile(r" - weight: ([0-9]{1,9}) .{0,80}")
_STATEMENT = re.compile(rf"\s+{_N}(?:\s+([0-9]{{1,12}}))?(?:\s+([0-9]{{1,12}}))?  (\S.*)", re.ASCII)
_PROGRESS = re.compile(rf"progress: {_N} s, {_N} tps, lat (\S{{1,20}}) ms stddev ([^\s,]{{1,20}})(.{{0,200}})")
_PROBLEM = re.compile(r"pgbench: (?:error|fatal): .{1,2000}|pgbench:.{0,200} aborted .{1,2000}")
_ABORTED = "Run was aborted; the above results are incomplete."
_VERSION = re.compile(r"pgbench \(([0-9][\w.]{0,30}).{0,200}\)")


def read_text(source: Source) -> Readout:
    """The summary, a result for each script when there are several, and the progress. Raises ParseError."""
    if len(source.text) > MAX_CHARS:
        raise ParseError(f"the text has {len(source.text)} characters; a report of pgbench has far fewer", line=1)
    whole = _Summary()
    for place, line in enumerate(source.text.split("\n"), 1):
        if len(line) <= 4000:
            whole.take(line.rstrip(), place)
    return whole.readout()


class _Summary:
    """What the lines of a report say."""

    def __init__(self) -> None:
        self._parts: list[tuple[str, dict[str, object], dict[str, object]]] = []
        self._intervals: list[dict[str, object]] = []
        self._statements: list[list[dict[str, object]]] = []
        self._errors: list[str] = []
        self._version: str | None = None
        self._in_statements = self._aborted = False

    def take(self, line: str, place: int) -> None:
        if self._in_statements and self._statements and (match := _STATEMENT.fullmatch(line)):
            self._statements[-1].append(_statement(match, place))
            return
        self._in_statements = "statement latencies in milliseconds" in line
        if match := _PROGRESS.fullmatch(line):
            self._intervals.append(_interval(match, place))
        elif line.startswith("transaction type: "):
            if self._parts:
                raise ParseError("a second report begins here", hint="Give one report in a file.", line=place)
            self._parts.append((line.removeprefix("transaction type: "), {}, {}))
            self._statements.append([])
        elif match := _SCRIPT.fullmatch(line):
            self._parts.append((match[2], {"script": int(match[1])}, {}))
            self._statements.append([])
        elif self._version is None and (match := _VERSION.fullmatch(line)):
            self._version = match[1]
        elif _PROBLEM.fullmatch(line) or line.endswith(_ABORTED):
            self._errors.append(line)
            self._aborted = self._aborted or line.endswith(_ABORTED)
        elif self._parts:
            self._figure(line, place)

    def _figure(self, line: str, place: int) -> None:
        _, params, figures = self._parts[-1]
        if match := _WEIGHT.fullmatch(line):
            params["weight"] = int(match[1])
            return
        if line.startswith("query mode: "):
            params["query_mode"] = line.removeprefix("query mode: ")
            return
        plain = line.removeprefix(" - ")
        for name, pattern in _PARAMS:
            if match := pattern.fullmatch(plain):
                params[name] = int(match[1])
                return
        for pattern, names in _LINES:
            if match := pattern.fullmatch(plain):
                found = {
                    name: number(value, name, place)
                    for name, value in zip(names, match.groups(), strict=True)
                    if name and value
                }
                if found.keys() & figures.keys():
                    raise ParseError(f"{plain[:60]} stands here a second time", line=place)
                figures.update(found)
                return

    def readout(self) -> Readout:
        alone = self._statements[0] if len(self._parts) == 1 else []
        said = {"intervals": self._intervals, "statements": alone, "errors": self._errors}
        beside: dict[str, object] = {name: found for name, found in said.items() if found}
        if not self._parts and self._errors:
            return Readout(TOOL, "pgbench-text", (), self._version, beside, self._errors[0])
        if not self._parts or "transactions" not in self._parts[0][2]:
            raise nothing_in("'transaction type' with its number of transactions", "pgbench")
        why = "the run was aborted; its results are incomplete" if self._aborted else ""
        results = [self._result(place, why) for place in range(len(self._parts))]
        return Readout(TOOL, "pgbench-text", tuple(results), self._version, beside, results[0].why)

    def _result(self, place: int, why: str) -> NamedResult:
        name, params, figures = self._parts[place]
        figures.setdefault("latency_stdev_ms", None)
        figures.setdefault("transactions_per_s", None)
        if place == 0:
            figures.setdefault("latency_p99_ms", None)
        idle = "" if figures.get("transactions") else "no transaction was completed"
        statements = self._statements[place] if len(self._parts) > 1 else []
        more = {"statements": statements} if statements else {}
        return NamedResult(name, figures, params, why=why or idle, more=more)


def _statement(match: re.Match[str], place: int) -> dict[str, object]:
    row: dict[str, object] = {
        "statement": match[4],
        "latency_mean_ms": number(match[1], "latency", place),
        "failures": int(match[2]) if match[2] else None,
    }
    return {**row, "retries": int(match[3])} if match[3] else row


def _interval(match: re.Match[str], place: int) -> dict[str, object]:
    def known(text: str) -> float | None:
        return None if text in ("NaN", "-nan", "nan") else number(text, "latency", place)

    row: dict[str, object] = {
        "t_s": number(match[1], "time", place),
        "transactions_per_s": number(match[2], "tps", place),
        "latency_mean_ms": known(match[3]),
        "latency_stdev_ms": known(match[4]),
    }
    for name, pattern in (
        ("failed", rf", {_N} failed"),
        ("schedule_lag_mean_ms", rf", lag {_N} ms"),
        ("skipped", rf", {_N} skipped"),
        ("retried", rf", {_N} retried"),
        ("retries", rf", {_N} retries"),
    ):
        if found := re.search(pattern, match[5]):
            row[name] = number(found[1], name, place)
    return row


def _rows(text: str, widths: tuple[int, ...], what: str) -> list[tuple[int, list[str]]]:
    """The lines of a log with their numbers; all have as many columns as the first."""
    if len(text) > MAX_CHARS:
        raise ParseError(f"the log has {len(text)} characters; at most {MAX_CHARS} are read", line=1)
    rows = [(place, line.split()) for place, line in enumerate(text.split("\n"), 1) if line.strip()]
    for place, cells in rows:
        if len(cells) not in widths or len(cells) != len(rows[0][1]):
            raise ParseError(f"line {place} is none of {what}: it has {len(cells)} columns", line=place)
    if not rows:
        raise nothing_in("line", "pgbench -l")
    return rows


def read_aggregate_log(source: Source) -> Readout:
    """pgbench_log of --aggregate-interval, added up over its lines. Raises ParseError."""
    rows = [
        [count(cell, "a column", place) for cell in cells]
        for place, cells in _rows(source.text, (6, 10, 11, 13, 15), "an aggregated log of pgbench")
    ]
    total = sum(row[1] for row in rows)
    if not total:
        raise ParseError("the log has no transaction", hint="Give the log of a run that did something.")
    busy = [row for row in rows if row[1]]
    mean_us = sum(row[2] for row in rows) / total
    figures: dict[str, object] = {
        "transactions": total,
        "latency_mean_ms": mean_us / US_PER_MS,
        "latency_stdev_ms": math.sqrt(max(0.0, sum(row[3] for row in rows) / total - mean_us**2)) / US_PER_MS,
        "latency_min_ms": min(row[4] for row in busy) / US_PER_MS,
        "latency_max_ms": max(row[5] for row in busy) / US_PER_MS,
    }
    if len(rows[0]) >= 10:
        figures |= {
            "schedule_lag_mean_ms": sum(row[6] for row in rows) / total / US_PER_MS,
            "schedule_lag_max_ms": max(row[9] for row in rows) / US_PER_MS,
        }
    columns = ("transactions_skipped", "transactions_retried", "retries", "errors_serialization", "errors_deadlock")
    kept = columns[: len(rows[0]) - 10] if len(rows[0]) > 10 else ()
    figures |= {name: sum(row[10 + at] for row in rows) for at, name in enumerate(kept)}
    intervals = [_aggregate(row) for row in rows]
    return Readout(TOOL, "pgbench-aggregate-log", (NamedResult("aggregate", figures),), None, {"intervals": intervals})


def _aggregate(row: list[int]) -> dict[str, object]:
    done = row[1]
    out: dict[str, object] = {
        "start_s": row[0],
        "transactions": done,
        "latency_mean_ms": over(row[2] / done, US_PER_MS) if done else None,
        "latency_min_ms": over(row[4], US_PER_MS) if done else None,
        "latency_max_ms": over(row[5], US_PER_MS) if done else None,
    }
    if len(row) > 10:
        out["transactions_skipped"] = row[10]
    if len(row) == 15:
        out["errors_serialization"] = row[13]
    return out


def read_transaction_log(source: Source) -> Readout:
    """pgbench_log with a line for each transaction; percentiles by nearest rank. Raises ParseError."""
    rows = _rows(source.text, (6, 7, 8), "a log of pgbench")
    times_us, clients, ends_us = [], set(), []
    failed = skipped = 0
    lags_us: list[int] = []
    for place, cells in rows:
        clients.add(count(cells[0], "the client", place))
        ends_us.append(count(cells[4], "the second", place) * 1_000_000 + count(cells[5], "the microsecond", place))
        if cells[2] == "skipped":
            skipped += 1
        elif cells[2] in ("failed", "serialization", "deadlock"):
            failed += 1
        else:
            times_us.append(count(cells[2], "the time", place))
            lags_us += [count(cells[6], "the lag", place)] if len(cells) > 6 else []
    if not times_us:
        raise ParseError("no transaction of the log was completed", hint="Give the log of a run that did something.")
    times_us.sort()
    figures: dict[str, object] = {
        "transactions": len(times_us),
        "transactions_failed": failed,
        "transactions_skipped": skipped,
        "latency_mean_ms": mean(times_us) / US_PER_MS,
        "latency_min_ms": times_us[0] / US_PER_MS,
        "latency_max_ms": times_us[-1] / US_PER_MS,
        **{
            f"latency_p{name}_ms": times_us[nearest_rank(name, len(times_us)) - 1] / US_PER_MS
            for name in (50, 90, 95, 99)
        },
        "first_us": min(ends_us),
        "last_us": max(ends_us),
    }
    if len(rows[0][1]) == 8 or (lags_us and max(lags_us) > 100):  # a seventh column may be the number of retries
        figures |= {"schedule_lag_mean_ms": mean(lags_us) / US_PER_MS, "schedule_lag_max_ms": max(lags_us) / US_PER_MS}
    result = NamedResult("transactions", figures, {"clients_seen": len(clients)})
    return Readout(TOOL, "pgbench-transaction-log", (result,), None)


def _first_line(head: str) -> list[str]:
    return head.lstrip().split("\n", 1)[0].split()


def _is_aggregate(head: str) -> bool:
    cells = _first_line(head)
    return len(cells) in (6, 10, 11, 13, 15) and all(map(_digits, cells)) and len(cells[0]) == 10


def _is_transactions(head: str) -> bool:
    cells = _first_line(head)
    numbers = [cell for at, cell in enumerate(cells) if at != 2]
    return len(cells) in (6, 7, 8) and all(map(_digits, numbers)) and len(cells[4]) == 10 and len(cells[0]) < 10


def _digits(cell: str) -> bool:
    return cell.isascii() and cell.isdigit()


def _is_text(head: str) -> bool:
    return re.search(r"^(?:transaction type: |pgbench \([0-9]|pgbench: )", head, re.MULTILINE) is not None


PGBENCH = ResultReader(
    TOOL,
    TOOL,
    (
        ResultForm("pgbench-text", _is_text, read_text),
        ResultForm("pgbench-aggregate-log", _is_aggregate, read_aggregate_log),
        ResultForm("pgbench-transaction-log", _is_transactions, read_transaction_log),
    ),
    ("transactions_per_s", "latency_mean_ms"),
)
