"""The report of a counted result file: JMeter's own way of counting, exact percentiles, every label and code."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from agents.base.errors import ParseError
from agents.drivers.jmeter.jtl.form import ACTIVE, BYTES, CODE, ELAPSED, LABEL, MESSAGE, SENT, SUCCESS
from agents.drivers.jmeter.jtl.frames import pl
from agents.drivers.jmeter.jtl.pauses import pauses_of, told
from agents.drivers.jmeter.jtl.tally import (
    COUNT,
    END,
    ERRORS,
    INSIDE,
    SERIAL,
    SPANS,
    START,
    STEP,
    TOTAL,
    Tally,
    has_threads,
    merged,
)
from agents.results.elapsed_counts import ElapsedCounts
from agents.results.report import LoadErrors, LoadReport
from agents.results.request_figures import Course, Failure, LabelFigures, RequestFigures, bounded

MAX_POINTS = 7200
BACK_LIMIT_MS = 5000
INSIDE_LIMIT = 0.9

_CONNECT = ("ConnectException", "ConnectTimeoutException", "UnknownHost", "NoRouteToHost", "HttpHostConnect")


def report(tally: Tally, form: str, notes: Sequence[str] = (), whys: Sequence[str] = ()) -> LoadReport:
    """The report. `form` names the format, `whys` are reasons not to compare it. ParseError when there is no result."""
    if not tally.rows:
        raise ParseError("there is no result in this file", line=1)
    rows, parts = _requests(tally.groups())
    spans = rows.filter(pl.col(SPANS))
    requests = rows.filter(~pl.col(SPANS))
    notes = list(notes)
    if not requests.height:
        requests, spans = spans, spans.head(0)
        notes.append("only transactions were saved, so they are counted as the requests")
    count, errors = _sum(requests, COUNT), _sum(requests.filter(~pl.col(SUCCESS)), COUNT)
    started_ms, ended_ms = _min(requests, START), _max(requests, END)
    duration_s = (ended_ms - started_ms) / 1000
    whys = [*whys, *_doubts(tally, requests, count, errors, duration_s)]
    bytes_read = _sum(requests, BYTES) if BYTES in rows.columns else None
    figures = RequestFigures(
        started_ms=started_ms,
        ended_ms=ended_ms,
        errors=errors,
        error_pct=100 * errors / count,
        rows=tally.rows + tally.parts,
        parts=tally.parts + parts,
        response_codes=_codes(requests),
        labels=bounded(dict(_labels(requests, spans))),
        failures=_failures(tally),
        sent_bytes=_sum(requests, SENT) if SENT in rows.columns else None,
        max_active_threads=_max(tally.course(), ACTIVE) if has_threads(tally.course()) else None,
        course=_course(tally),
    )
    if tally.failures_cut:
        notes.append("there are more kinds of failures than are listed")
    if tally.course_cut:
        notes.append("the times are spread too far for a course over time")
    return LoadReport(
        tool="jmeter",
        format=form,
        load_model="closed",
        latency_basis="response_time",
        usable=not whys,
        why="; ".join(whys) or None,
        duration_s=duration_s,
        requests=count,
        throughput_rps=count / duration_s if duration_s > 0 else None,
        bytes_read=bytes_read,
        bytes_per_s=bytes_read / duration_s if bytes_read is not None and duration_s > 0 else None,
        errors=_errors(requests),
        latency=_elapsed(requests).latency(histogram=True),
        notes=tuple(notes),
        more=figures,
    )


def _doubts(tally: Tally, requests: pl.DataFrame, count: int, errors: int, duration_s: float) -> Iterator[str]:
    if errors == count:
        yield "every request failed"
    if tally.back_ms > BACK_LIMIT_MS:
        yield (
            f"time goes back by {tally.back_ms / 1000:.1f} s between two results: the driver host's clock was set, "
            "or files were joined"
        )
    course = tally.course()
    if course.height:
        yield from told(pauses_of(course), _min(course, STEP))
    if _min(requests, ELAPSED) < 0:
        yield "some results took less than no time: the driver host's clock was set"
    if duration_s <= 0:
        yield "all results ended in the millisecond in which the first began, which gives no rate"


def _requests(groups: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """What counts, and how many rows are parts of others.

    A label `P-N` is one of parts when (almost) all its rows lie inside a row of P and P is no transaction: what a
    transaction spans are requests.
    """
    spanning = set(groups.filter(pl.col(SPANS))[LABEL].to_list())
    inside = groups.filter(pl.col(INSIDE))
    all_of = dict(groups.group_by(LABEL).agg(pl.col(COUNT).sum()).iter_rows())
    of_parts = [
        label
        for label, count in inside.group_by(LABEL).agg(pl.col(COUNT).sum()).iter_rows()
        if (match := SERIAL.fullmatch(label)) and match[1] not in spanning and count >= INSIDE_LIMIT * all_of[label]
    ]
    is_part = pl.col(INSIDE) & pl.col(LABEL).is_in(of_parts)
    return groups.filter(~is_part), _sum(groups.filter(is_part), COUNT)


def _labels(requests: pl.DataFrame, spans: pl.DataFrame) -> Iterator[tuple[str, LabelFigures]]:
    taken: set[str] = set()
    for frame, transaction in ((requests, False), (spans, True)):
        for (label,), rows in sorted(frame.group_by(LABEL), key=lambda item: str(item[0][0])):
            name = f"{label} (transaction)" if label in taken else str(label)
            taken.add(name)
            count, duration_s = _sum(rows, COUNT), (_max(rows, END) - _min(rows, START)) / 1000
            elapsed = _elapsed(rows)
            yield (
                name,
                LabelFigures(
                    requests=count,
                    errors=_sum(rows.filter(~pl.col(SUCCESS)), COUNT),
                    latency=elapsed.latency(),
                    throughput_rps=count / duration_s if duration_s > 0 else None,
                    bytes_read=_sum(rows, BYTES) if BYTES in rows.columns else None,
                    transaction=transaction,
                    duration_s=duration_s,
                    elapsed=elapsed,
                ),
            )


def _elapsed(rows: pl.DataFrame) -> ElapsedCounts:
    """The count of each millisecond."""
    table = rows.group_by(ELAPSED).agg(pl.col(COUNT).sum()).sort(ELAPSED)
    return ElapsedCounts.of(table[ELAPSED].to_list(), table[COUNT].to_list())


def _codes(requests: pl.DataFrame) -> dict[str, int]:
    if CODE not in requests.columns:
        return {}
    table = requests.group_by(CODE).agg(pl.col(COUNT).sum()).sort(COUNT, CODE, descending=[True, False])
    return {code or "": count for code, count in table.iter_rows()}


def _errors(requests: pl.DataFrame) -> LoadErrors:
    """Failed requests by kind. A response that came but was called bad (status, assertion) is one of status."""
    failed = requests.filter(~pl.col(SUCCESS))
    if CODE not in requests.columns:
        return LoadErrors(other=_sum(failed, COUNT))
    found = {"connect": 0, "read": 0, "timeout": 0, "status": 0}
    for code, count in failed.group_by(CODE).agg(pl.col(COUNT).sum()).iter_rows():
        found[_kind(code or "")] += count
    return LoadErrors(**found)


def _kind(code: str) -> str:
    if not code.startswith("Non HTTP response code"):
        return "status"
    if any(word in code for word in _CONNECT):
        return "connect"
    return "timeout" if "Timeout" in code else "read"


def _failures(tally: Tally) -> tuple[Failure, ...]:
    table = tally.failures()
    if table is None:
        return ()
    words = [name for name in (LABEL, CODE, MESSAGE) if name in table.columns]
    ordered = table.sort(COUNT, *words, descending=[True, *(False for _ in words)])
    rows: Iterable[dict[str, Any]] = ordered.iter_rows(named=True)
    return tuple(
        Failure(row[LABEL] or "", row.get(CODE) or "", (row.get(MESSAGE) or "")[:500], row[COUNT]) for row in rows
    )


def _course(tally: Tally) -> Course | None:
    """At most MAX_POINTS steps of a whole number of seconds."""
    table = tally.course()
    if not table.height:
        return None
    step_s = max(1, math.ceil((_max(table, STEP) - _min(table, STEP) + 1) / MAX_POINTS))
    step = (pl.col(STEP) // step_s * step_s).alias(STEP)
    coarse = merged([table.with_columns(step)], (STEP,)).sort(STEP)
    threads = coarse[ACTIVE].fill_null(0).to_list() if has_threads(coarse) else None
    return Course(
        step_s=float(step_s),
        ended_unix_s=tuple(float(at) for at in coarse[STEP]),
        requests=tuple(coarse[COUNT]),
        errors=tuple(coarse[ERRORS]),
        latency_mean_ms=tuple((coarse[TOTAL] / coarse[COUNT]).round(3)),
        active_threads=tuple(threads) if threads is not None else None,
    )


def _sum(frame: pl.DataFrame, name: str) -> int:
    return int(frame[name].sum())


def _min(frame: pl.DataFrame, name: str) -> int:
    return int(frame[name].min() or 0)  # type: ignore[arg-type]


def _max(frame: pl.DataFrame, name: str) -> int:
    return int(frame[name].max() or 0)  # type: ignore[arg-type]
