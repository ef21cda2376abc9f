"""The results that a file of benchmarks holds, as the reports of the runs that they become: nothing is stored."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from agents.base.errors import ParseError
from agents.drivers.command.bounds import check_bounds
from agents.drivers.command.figures import MAX_VALUE, NAME, is_known, report_of
from agents.readers.base.figure_kinds import Direction, figure_kind
from agents.readers.base.named_result import Measure, NamedResult, Readout
from agents.results.report import LatencyBasis, LoadReport, OwnMetric
from agents.steps.recipe import Value
from experiments.registry.errors import RequestError
from experiments.registry.metrics.vocabulary import METRICS

INDEPENDENT = ("fork", "launch", "process", "run")
"""What is a repetition: each began anew. Rounds, samples, counts and iterations share a process and what it learned."""
ALL = "*"
"""Stands in `directions` for every figure that it does not name."""
MAX_RUNS = 500
MAX_TEXT = 200

_DIRECTIONS: Mapping[str, Direction] = {"bigger is better": "higher", "smaller is better": "lower"}
_ERRORS, _OTHER = "errors_total", "errors_other"
_NO_UNIT = "units"
_REQUESTS = ("responses", "transactions", "operations")
"""What is counted where no requests are: errors and percentiles are seen beside it."""
_BEST: Mapping[Direction, str] = {"higher": "highest", "lower": "lowest"}


@dataclass(frozen=True)
class NamedRun:
    """A run that comes of a result: one for each of its independent repetitions, counted from 1, else one.

    `identity` is what runs of the same benchmark share. `headline` is the figure that stands for it, "" where the
    benchmark failed; `beside` are figures that no load report has.
    """

    benchmark: str
    params: Mapping[str, Value]
    identity: tuple[str, ...]
    report: LoadReport
    headline: str = ""
    beside: Mapping[str, float] = field(default_factory=dict)
    repetition: int = 1
    repetitions: int = 1

    @property
    def figure(self) -> float | None:
        """The value of the headline."""
        said = self.report.to_json()
        own = {metric.name: metric.value for metric in self.report.own_metrics}
        value = own.get(self.headline, said.get(self.headline))
        return float(value) if isinstance(value, int | float) else None

    @property
    def unit(self) -> str:
        """The unit of the headline."""
        own = {metric.name: metric.unit for metric in self.report.own_metrics}
        return own.get(self.headline) or (kind.unit if (kind := figure_kind(self.headline)) is not None else "")


@dataclass(frozen=True)
class _Own:
    """A figure that is not of BenchHub's vocabulary."""

    value: float
    unit: str
    direction: Direction


def named_runs(readout: Readout, headlines: Sequence[str], directions: Mapping[str, Direction]) -> list[NamedRun]:
    """The runs of a file. `headlines`: the figures that may stand for a result, the first that it has.

    A result without a figure is a failed run when the file says why, else none. RequestError: the file has no result
    (`text`), or does not say whether more or less of a figure is better (`directions`).
    """
    results = [one for one in readout.results if not one.optional]
    if missing := _undirected(results, headlines, directions):
        names = ", ".join(missing)
        example = json.dumps(dict.fromkeys(missing[:1], "lower"))
        raise RequestError(
            f"The file does not say whether more or less is better of {names}: give directions, such as {example}, "
            f"or {ALL} for all of them.",
            field="directions",
        )
    runs = [run for one in results for run in _runs(readout, one, headlines, directions)]
    if not runs and readout.why:
        runs = [NamedRun("", {}, (), _failed(readout, readout.why))]
    if not runs:
        raise RequestError("There is no figure in the file that stands for a result.", field="text")
    if len(runs) > MAX_RUNS:
        raise RequestError(
            f"The file holds {len(runs):,} results; at most {MAX_RUNS} runs come of one file. Give it in parts.",
            field="text",
        )
    return runs


def _undirected(
    results: Sequence[NamedResult], headlines: Sequence[str], directions: Mapping[str, Direction]
) -> list[str]:
    """The figures of which nobody knows what is better, each once."""
    if ALL in directions:
        return []
    found: dict[str, None] = {}
    for one in results:
        found |= {name: None for name, m in one.measures.items() if m.direction is None and name not in directions}
        head = _headline(one, headlines)
        if head and head not in directions and (kind := figure_kind(head)) is not None and kind.direction is None:
            found[head] = None
    return list(found)


def _runs(
    readout: Readout, result: NamedResult, headlines: Sequence[str], directions: Mapping[str, Direction]
) -> Iterator[NamedRun]:
    name, params = _text(result.benchmark or ""), _params(result)
    identity = (result.benchmark or "", result.basis, json.dumps(dict(result.params), sort_keys=True, default=str))
    known, own, headline = _figures(result, headlines, directions)
    if not headline:
        if result.why and name:
            yield NamedRun(name, params, identity, _failed(readout, result.why))
        return
    values = _repeated(result, headline)
    for number, value in enumerate(values or [None], start=1):
        figures, others = known, own
        if value is not None:  # what is said of all repetitions together is said of none of them
            figures = {headline: value} if headline in known else {}
            others = {headline: replace(own[headline], value=value)} if headline in own else {}
        beside = {} if value is not None else _beside(result)
        report = _report(readout, result, figures, others)
        yield NamedRun(name, params, identity, report, headline, beside, number, max(len(values), 1))


def _headline(result: NamedResult, headlines: Sequence[str]) -> str:
    return next((name for name in headlines if _number(result.figures.get(name)) is not None), "")


def _figures(
    result: NamedResult, headlines: Sequence[str], directions: Mapping[str, Direction]
) -> tuple[dict[str, float], dict[str, _Own], str]:
    """The figures that BenchHub knows, others that have a direction, and the name of the one that stands for all."""
    known: dict[str, float] = {}
    own: dict[str, _Own] = {}
    headline = _headline(result, headlines)
    for name, said in result.figures.items():
        value, kind = _number(said), figure_kind(name)
        if value is None or kind is None or name == _ERRORS:
            continue
        if is_known(name):
            known[name] = round(value) if name == "bytes" else value  # some tools print them in MiB
        elif name not in METRICS and NAME.fullmatch(name):
            direction = kind.direction or (_chosen(name, directions) if name == headline else None)
            if direction is not None:
                own[name] = _Own(value, _unit(result, name) or kind.unit, direction)
    if (errors := _number(result.figures.get(_ERRORS))) is not None and not any(n.startswith("errors_") for n in known):
        known[_OTHER] = errors
    if "requests" not in known:
        counted = (_number(result.figures.get(name)) for name in _REQUESTS)
        if (count := next((count for count in counted if count is not None), None)) is not None:
            known["requests"] = count
    for name, measure in result.measures.items():
        direction = _DIRECTIONS[measure.direction] if measure.direction else _chosen(name, directions)
        called = _measure_name(name, measure, direction)
        own[called] = _Own(measure.value, (measure.unit or _NO_UNIT)[:20], direction)
        headline = headline or called
    return known, own, headline


def _chosen(name: str, directions: Mapping[str, Direction]) -> Direction:
    return directions.get(name) or directions[ALL]


def _unit(result: NamedResult, name: str) -> str:
    """The unit of a score, which only the file knows."""
    said = result.figures.get(f"{name}_unit")
    return said[:20] if isinstance(said, str) else ""


def _measure_name(name: str, measure: Measure, direction: Direction) -> str:
    """A metric of the team, of one unit and direction wherever it comes from.

    A measure that is called `value` in every file says by its unit what it is.
    """
    text = f"{_BEST[direction]} {measure.unit or ''}" if name == "value" else name
    called = re.sub(r"[^a-z0-9.]+", "_", text.lower()).strip("_.")[:60]
    if not NAME.fullmatch(called) or is_known(called) or called in METRICS:
        called = f"measure_{called}"[:60].rstrip("_.")
    return called


def _repeated(result: NamedResult, headline: str) -> list[float]:
    """The headline of each independent repetition; nothing where there are not two of them."""
    said = result.repetitions
    if said is None or said.of not in INDEPENDENT:
        return []
    values = list(said.values.get(headline) or said.values.get(said.figure, ()))
    return values if len(values) > 1 and all(_number(value) is not None for value in values) else []


def _beside(result: NamedResult) -> dict[str, float]:
    """Figures of BenchHub's vocabulary that a load report has no place for."""
    names = [name for name in result.figures if name in METRICS and not is_known(name) and name != _ERRORS]
    found = {name: _number(result.figures[name]) for name in names}
    return {name: value for name, value in found.items() if value is not None and value >= 0}


def _report(readout: Readout, result: NamedResult, known: Mapping[str, float], own: Mapping[str, _Own]) -> LoadReport:
    basis: LatencyBasis = "response_time" if "due" in result.basis else "service_time"
    try:
        for name, one in own.items():
            check_bounds(name, one.value, one.unit)
        metrics = [OwnMetric(name, one.value, one.unit, one.direction) for name, one in own.items()]
        report = report_of(known, metrics, latency_basis=basis)
    except ParseError as error:
        where = f"{result.benchmark}: " if result.benchmark else ""
        raise RequestError(f"{where[:MAX_TEXT]}{error.message}.", field="text") from error
    said = result.why or readout.why
    usable, why = (False, said) if said else (report.usable, report.why)
    rate = report.throughput_rps if "throughput_rps" in known else None  # requests of a disk in a second are none
    return replace(report, tool=_tool(readout), format=readout.format, usable=usable, why=why, throughput_rps=rate)


def _failed(readout: Readout, why: str) -> LoadReport:
    return LoadReport(_tool(readout), readout.format, "closed", "service_time", complete=False, error=why)


def _tool(readout: Readout) -> str:
    return readout.tool[:60]


def _params(result: NamedResult) -> dict[str, Value]:
    """What tells the result from its neighbours; what is no single value is written as JSON."""
    return {
        _text(name)[:120] or "-": said if isinstance(said, bool | int | float) else _text(_plain(said))
        for name, said in result.params.items()
        if said is not None
    }


def _plain(said: object) -> str:
    return said if isinstance(said, str) else json.dumps(said, sort_keys=True, default=str)


def _text(text: str) -> str:
    """One line that can be a label."""
    line = "".join(letter if letter.isprintable() else " " for letter in text).strip()
    return line if len(line) <= MAX_TEXT else f"{line[: MAX_TEXT - 1]}…"


def _number(said: object) -> float | None:
    if isinstance(said, bool) or not isinstance(said, int | float):
        return None
    return said if math.isfinite(said) and abs(said) <= MAX_VALUE else None
