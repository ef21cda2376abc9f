"""JMH's JSON: a fork is a repetition, an iteration is none. Source: JMH 1.37, results/format/JSONResultFormat.java."""

from __future__ import annotations

import re

from agents.base.errors import ParseError
from agents.readers.base.json_node import Node, first_names, load_json
from agents.readers.base.named_result import NamedResult, Readout, Repetitions
from agents.readers.base.numbers import mean, percentile_name, times
from agents.readers.base.result_reader import ResultForm, ResultReader, Source
from agents.readers.base.table import Row, read_table

TOOL = "jmh"
_NS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9, "min": 6e10, "hr": 3.6e12, "day": 8.64e13}
_PERCENTILE = re.compile(r"(?:.*:)?·?p[0-9.]{1,12}")
_RANK = re.compile(r"(?:.*·)?p([01]\.[0-9]{1,10})")
_RANKED = "percentile "
_PARAM = "Param: "
_ERROR = "Score Error (99.9%)"


def read_json(source: Source) -> Readout:
    """Every benchmark of -rf json; an empty file says that none ran. Raises ParseError."""
    if not source.text.strip():
        return Readout(TOOL, "jmh-json", (), None, {}, "no benchmark ran")
    document, _ = load_json(source.text, "JMH")
    entries = document.elements()
    results = tuple(_entry(entry) for entry in entries)
    version = entries[0].known_text("jmhVersion") if entries else None
    return Readout(TOOL, "jmh-json", results, version, {}, "" if results else "no benchmark ran")


def _entry(entry: Node) -> NamedResult:
    mode, primary = entry.at("mode").text(), entry.at("primaryMetric")
    unit = primary.at("scoreUnit").text()
    figure, factor = _in_our_unit(unit)
    figures: dict[str, object] = {
        "score": primary.known("score"),
        "score_error": primary.known("scoreError"),
        "score_unit": unit,
    }
    if figure:
        figures[figure] = times(primary.known("score"), factor)
    if mode == "sample":
        found = primary.find("scorePercentiles")
        for key, value in found.items() if found is not None else []:
            figures[f"{_percentile(figure, key, value)}"] = times(value.known(), factor)
        figures["samples"] = _samples(primary)
    secondary = entry.find("secondaryMetrics")
    others = {
        name: {"score": one.known("score"), "error": one.known("scoreError"), "unit": one.known_text("scoreUnit")}
        for name, one in (secondary.items() if secondary is not None else [])
        if not (mode == "sample" and _PERCENTILE.fullmatch(name))
    }
    if others:
        figures["secondary"] = others
    params: dict[str, object] = {
        "mode": mode,
        "threads": entry.known_count("threads"),
        "forks": entry.known_count("forks"),
    }
    given = entry.find("params")
    for name, value in given.items() if given is not None else []:
        params[f"param {name}" if name in params else name] = value.text()
    why = "" if figures["score"] is not None else "it has no score"
    return NamedResult(entry.at("benchmark").text(), figures, params, _repetitions(primary, figure, factor), why=why)


def _in_our_unit(unit: str) -> tuple[str, float]:
    """The figure that a unit such as ops/ms or us/op becomes, and the factor to it; "" for other units."""
    above, _, below = unit.partition("/")
    if above == "ops" and below in _NS:
        return "ops_per_s", 1e9 / _NS[below]
    if below == "op" and above in _NS:
        return "time_per_op_ns", _NS[above]
    return "", 1.0


def _percentile(figure: str, key: str, value: Node) -> str:
    try:
        return f"{figure.removesuffix('_ns')}_{percentile_name(float(key))}_ns"
    except ValueError:
        raise value.wrong("named by a percentile") from None


def _samples(primary: Node) -> int | None:
    forks = primary.find("rawDataHistogram")
    if forks is None:
        return None
    bars = (bar for fork in forks.elements() for iteration in fork.elements() for bar in iteration.elements())
    return sum(bar.at(1).count() for bar in bars)


def _repetitions(primary: Node, figure: str, factor: float) -> Repetitions | None:
    """One mean for each fork: of its iterations, or of all samples of a fork in mode sample."""
    raw, bars = primary.find("rawData"), primary.find("rawDataHistogram")
    if raw is not None:
        forks = [fork.elements() for fork in raw.elements()]
        values = [mean([value for one in fork if (value := one.known()) is not None]) for fork in forks]
    elif bars is not None:
        forks = [fork.elements() for fork in bars.elements()]
        values = [_mean_of_samples(fork) for fork in forks]
    else:
        return None
    name = figure or "score"
    return Repetitions(
        "fork", len(forks), name, {name: [value * factor for value in values]}, [len(fork) for fork in forks]
    )


def _mean_of_samples(fork: list[Node]) -> float:
    bars = [(bar.at(0).number(), bar.at(1).count()) for iteration in fork for bar in iteration.elements()]
    total = sum(seen for _, seen in bars)
    if not total:
        raise ParseError("a fork has no sample", hint="Give the file as JMH wrote it.")
    return sum(value * seen for value, seen in bars) / total


def read_csv(source: Source) -> Readout:
    """Every row of -rf csv; it has no single values. Raises ParseError."""
    columns = ("Benchmark", "Mode", "Threads", "Samples", "Score", "Unit")
    rows = read_table(source.text, columns, "JMH", delimiter=";" if _is_csv(source.head, ";") else ",")
    found: list[tuple[str, Row, dict[str, object]]] = []
    for row in rows:
        name, _, part = row.text("Benchmark").partition(":")
        if not (part and found and found[-1][0] == name):
            found.append((row.text("Benchmark"), row, {}))
        elif (match := _RANK.fullmatch(part)) and row.text("Mode") == "sample":
            found[-1][2][_RANKED + match[1]] = row.known("Score")
        elif not _PERCENTILE.fullmatch(part):
            found[-1][2][part] = {"score": row.known("Score"), "error": row.known(_ERROR), "unit": row.text("Unit")}
    results = tuple(_row(name, row, others) for name, row, others in found)
    return Readout(TOOL, "jmh-csv", results, None, {}, "" if results else "no benchmark ran")


def _row(name: str, row: Row, others: dict[str, object]) -> NamedResult:
    unit = row.text("Unit")
    figure, factor = _in_our_unit(unit)
    figures: dict[str, object] = {
        "score": row.known("Score"),
        "score_error": row.known(_ERROR),
        "score_unit": unit,
    }
    if figure:
        figures[figure] = times(row.known("Score"), factor)
    for ranked in [one for one in others if one.startswith(_RANKED)]:
        value = others.pop(ranked)
        percentile = percentile_name(float(ranked.removeprefix(_RANKED)) * 100)
        figures[f"{(figure or 'score').removesuffix('_ns')}_{percentile}{'_ns' if figure else ''}"] = (
            times(value, factor) if isinstance(value, int | float) else None
        )
    if others:
        figures["secondary"] = others
    params: dict[str, object] = {"mode": row.text("Mode"), "threads": row.count("Threads")}
    for column, cell in row.cells.items():
        if column.startswith(_PARAM) and cell:
            params[column.removeprefix(_PARAM)] = cell
    why = "" if figures["score"] is not None else "it has no score"
    return NamedResult(name, figures, params, why=why)


def _is_csv(head: str, delimiter: str) -> bool:
    return head.lstrip().startswith(delimiter.join(('"Benchmark"', '"Mode"', '"Threads"')))


JMH = ResultReader(
    TOOL,
    "JMH",
    (
        ResultForm("jmh-json", lambda head: {"jmhVersion", "benchmark"} <= first_names(head), read_json),
        ResultForm("jmh-csv", lambda head: any(_is_csv(head, mark) for mark in ",;"), read_csv),
    ),
    ("ops_per_s", "time_per_op_ns", "score"),
)
