"""The load report of a tool whose output a reader of result files reads: its own units, nothing called requests/s."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from agents.readers.base.figure_kinds import FigureKind, figure_kind
from agents.readers.base.named_result import NamedResult, Readout
from agents.results.report import LatencyBasis, LatencySummary, LoadErrors, LoadModel, LoadReport, OwnMetric

_COUNTED = ("requests", "responses", "transactions", "operations", "events")
"""What a tool counts of what it does; errors and percentiles are seen beside it."""
_FAILED = ("errors_total", "transactions_failed", "errors_ignored")
"""What a tool counts of what failed, without a kind that BenchHub knows."""
_ERROR_KINDS = ("connect", "read", "write", "timeout", "status", "other")
_NAME = re.compile(r"[a-z][a-z0-9_.]{0,59}", re.ASCII)
_LATENCY = re.compile(r"latency_(?:mean|stdev|min|max|p([0-9]{1,3}(?:\.[0-9]{1,6})?))_ms", re.ASCII)
_IN_THE_REPORT = {"throughput_rps", "bytes_per_s", "duration_s", "bytes", "requests"}
"""Beside latencies and errors, the figures that have a place of their own in a report."""
_GROWS = "latency_sum_ms"
"""Of a load of a given duration it is the duration, so that neither more nor less of it is better."""


@dataclass(frozen=True)
class Part:
    """A result that is told from the others of one run by the beginning of its figures' names: `get.`."""

    name: str
    result: NamedResult


def named_report(
    readout: Readout,
    whole: NamedResult | None,
    parts: Sequence[Part],
    *,
    load_model: LoadModel,
    latency_basis: LatencyBasis,
    stops_at_failures: bool = False,
) -> LoadReport:
    """One report of all results of a run. `whole` is of all that was done; without it there are only `parts`.

    Figures keep their units (see `figure_kind`): rates in operations/s, transactions/s, IOPS or bytes/s, times in ms.
    `stops_at_failures`: a tool that ended by itself had no failure, unless it counts some.
    Source of the names: `agents.readers.base.figure_kinds`.
    """
    results = [whole] if whole is not None else [part.result for part in parts]
    if not results:
        why = readout.why or "it printed no result"
        return LoadReport(
            readout.tool, readout.format, load_model, latency_basis, complete=False, error=why, usable=False, why=why
        )
    why = next((one.why for one in results if one.why), "") or readout.why
    figures = whole.figures if whole is not None else {}
    own = list(_own(figures, ""))
    for part in parts:
        own += _own(part.result.figures, f"{part.name}.")
    counted = _counted(whole, parts)
    errors = _errors([one.figures for one in counted])
    if stops_at_failures and errors == LoadErrors() and not why:
        errors = LoadErrors(other=0)
    return LoadReport(
        readout.tool,
        readout.format,
        load_model,
        latency_basis,
        usable=not why,
        why=why or None,
        duration_s=_number(figures, "duration_s"),
        requests=_requests(counted),
        throughput_rps=_number(figures, "throughput_rps"),
        bytes_read=_count(figures, "bytes"),
        bytes_per_s=_number(figures, "bytes_per_s"),
        errors=errors,
        latency=_latency(figures),
        own_metrics=tuple(own),
    )


def name_of_part(text: str) -> str:
    """A text as the beginning of a figure's name: `MSET (10 keys)` is `mset_10_keys`."""
    name = re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")[:24].rstrip("_")
    return name if name[:1].isalpha() else f"part_{name}".rstrip("_")


def _own(figures: Mapping[str, object], prefix: str) -> Iterator[OwnMetric]:
    """The figures that a report has no place for, each with unit and direction; those of a part are all such."""
    for name, said in figures.items():
        value, kind = _plain(said), figure_kind(name)
        if value is None or kind is None or kind.direction is None or name == _GROWS:
            continue
        if not _NAME.fullmatch(prefix + name):
            continue
        if prefix or not _has_a_place(name):
            yield OwnMetric(prefix + name, value, kind.unit, kind.direction, adds=_adds(kind))


def _has_a_place(name: str) -> bool:
    return (
        name in _IN_THE_REPORT
        or name in _FAILED
        or name.removeprefix("errors_") in _ERROR_KINDS
        or _LATENCY.fullmatch(name) is not None
    )


def _adds(kind: FigureKind) -> bool:
    return kind.direction == "higher" and (kind.unit.endswith("/s") or kind.unit == "IOPS")


def _counted(whole: NamedResult | None, parts: Sequence[Part]) -> list[NamedResult]:
    """The results whose counts add up to all that was done: one that counts from another moment is no second one."""
    if whole is not None and any(name in whole.figures for name in (*_COUNTED, *_FAILED)):
        return [whole]
    return [part.result for part in parts if not part.result.basis and not part.result.why]


def _errors(results: Sequence[Mapping[str, object]]) -> LoadErrors:
    kinds = {kind: _sum([_count(one, f"errors_{kind}") for one in results]) for kind in _ERROR_KINDS}
    if all(count is None for count in kinds.values()):
        kinds["other"] = _sum([next(_known(_count(one, name) for name in _FAILED), None) for one in results])
    return LoadErrors(**kinds)


def _requests(results: Sequence[NamedResult]) -> int | None:
    return _sum([next(_known(_count(one.figures, name) for name in _COUNTED), None) for one in results])


def _sum(counts: Sequence[int | None]) -> int | None:
    """All of them together; None where one is not known, or there is none."""
    known = [count for count in counts if count is not None]
    return sum(known) if known and len(known) == len(counts) else None


def _latency(figures: Mapping[str, object]) -> LatencySummary | None:
    percentiles = {
        f"{float(match[1]):g}": value
        for name in figures
        if (match := _LATENCY.fullmatch(name)) and match[1] and (value := _number(figures, name)) is not None
    }
    mean, stdev, least, most = (_number(figures, f"latency_{name}_ms") for name in ("mean", "stdev", "min", "max"))
    found = LatencySummary(mean, stdev, least, most, percentiles_ms=percentiles)
    return None if found == LatencySummary() else found


def _known(values: Iterable[int | None]) -> Iterator[int]:
    return (value for value in values if value is not None)


def _count(figures: Mapping[str, object], name: str) -> int | None:
    """Tools print some counts in MiB, so that they are no whole numbers."""
    value = _number(figures, name)
    return None if value is None else round(value)


def _number(figures: Mapping[str, object], name: str) -> float | None:
    return _plain(figures.get(name))


def _plain(said: object) -> float | None:
    if isinstance(said, bool) or not isinstance(said, int | float):
        return None
    return float(said) if 0 <= said <= 1e18 else None
