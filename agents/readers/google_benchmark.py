"""Google Benchmark: JSON, CSV and console. Rows that it computed over repetitions are no repetitions.

Source: Google Benchmark 1.7.1, src/json_reporter.cc, csv_reporter.cc, console_reporter.cc.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from agents.base.errors import ParseError
from agents.readers.base.json_node import Node, has_keys, load_json
from agents.readers.base.named_result import NamedResult, Readout, Repetitions
from agents.readers.base.numbers import count, mean, number, times
from agents.readers.base.result_reader import MAX_CHARS, ResultForm, ResultReader, Source, nothing_in
from agents.readers.base.table import Row, read_table

TOOL = "google-benchmark"
_NS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
_CONTEXT = ("host_name", "num_cpus", "mhz_per_cpu", "cpu_scaling_enabled", "library_build_type")
_OWN = {
    "name", "run_name", "run_type", "family_index", "per_family_instance_index", "repetitions", "repetition_index",
    "threads", "iterations", "real_time", "cpu_time", "time_unit", "label", "error_occurred", "error_message",
    "skipped", "skip_message", "aggregate_name", "aggregate_unit", "big_o", "cpu_coefficient", "real_coefficient",
    "rms", "bytes_per_second", "items_per_second", "allocs_per_iter", "max_bytes_used", "total_allocated_bytes",
    "net_heap_growth",
}  # fmt: skip
_SHORTEST_ROW = 10
"""A row with an error ends behind its message, in front of the counters."""
_NO_MATCH = re.compile(r"^Failed to match any benchmarks against regex: .{0,500}", re.MULTILINE)
_AGGREGATE = re.compile(r"(.{1,2000})_(mean|median|stddev|cv|min|max)")
_ALWAYS = ("mean", "median", "stddev")
_RATES = (("bytes_per_second", "bytes_per_s"), ("items_per_second", "items_per_s"))
_OURS = frozenset(ours for _, ours in _RATES)
_CSV_HEAD = "name,iterations,real_time,cpu_time,time_unit"
_N = r"(-?[0-9]{1,15}(?:\.[0-9]{1,9})?(?:e[+-]?[0-9]{1,3})?)"
_CONSOLE_HEAD = re.compile(r"^Benchmark +Time +CPU +Iterations\b", re.MULTILINE)
_ROW = re.compile(rf"(\S.{{0,500}}?) +{_N} (ns|us|ms|s|%) +{_N} (ns|us|ms|s|%) +([0-9]{{1,15}})(?: (.{{0,4000}}))?")
_BROKEN = re.compile(r"(\S.{0,500}?) +(?:ERROR OCCURRED|SKIPPED): '(.{0,2000})'")
_COUNTER = re.compile(rf"([^\s=]{{1,200}})={_N}([kMGTPEZYmunpfa]?)(i?)(/s|s)?")
_POWERS = {"": 0, "k": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6, "Z": 7, "Y": 8, "m": -1, "u": -2, "n": -3, "p": -4}


@dataclass
class _Benchmark:
    """All rows of one name."""

    rows: list[dict[str, object]] = field(default_factory=list)
    aggregates: dict[str, dict[str, object]] = field(default_factory=dict)
    params: dict[str, object] = field(default_factory=dict)
    rates: dict[str, object] = field(default_factory=dict)
    repetitions: int = 1
    why: str = ""


def read_json(source: Source) -> Readout:
    """The rows of --benchmark_format=json. Raises ParseError."""
    if (no_match := _NO_MATCH.search(source.text)) is not None:
        return Readout(TOOL, "google-benchmark-json", (), None, {"error": no_match[0].rstrip()}, "no benchmark ran")
    document, _ = load_json(source.text, "Google Benchmark")
    found: dict[str, _Benchmark] = {}
    complexity = []
    rows = document.at("benchmarks").elements()
    computed = _computed([row.at("name").text() for row in rows if "run_type" not in row])
    for row in rows:
        name = row.known_text("run_name") or row.at("name").text()
        if "run_type" not in row and name in computed:  # before 1.5
            _take_old_aggregate(found, *computed[name], row)
            continue
        if "big_o" in row or "rms" in row:
            complexity.append({key: value.value for key, value in row.items() if key in _OWN})
            continue
        one = found.setdefault(name, _Benchmark())
        if "threads" in row:
            one.params["threads"] = row.known_count("threads")
        one.repetitions = max(one.repetitions, row.known_count("repetitions") or 1)
        _take_json(one, row)
    context = document.find("context") or Node({})
    beside: dict[str, object] = {"context": {key: _plain(context.find(key)) for key in _CONTEXT if key in context}}
    if complexity:
        beside["complexity"] = complexity
    return _readout("google-benchmark-json", found, context.known_text("library_version"), beside)


def _computed(names: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Row -> the benchmark and the kind of aggregate that it is: of a name that stands there itself, or that has a
    mean, a median and a standard deviation.
    """
    there = set(names)
    found = {}
    for name in there:
        match = _AGGREGATE.fullmatch(name)
        if match and (match[1] in there or {f"{match[1]}_{kind}" for kind in _ALWAYS} <= there):
            found[name] = (match[1], match[2])
    return found


def _take_old_aggregate(found: dict[str, _Benchmark], name: str, kind: str, row: Node) -> None:
    factor = 1.0 if kind == "cv" else _factor(row.known_text("time_unit") or "ns", row.path)
    one = found.setdefault(name, _Benchmark())
    one.repetitions = max(one.repetitions, row.known_count("iterations") or 1)
    one.aggregates[kind] = {
        f"{what}_{'cv' if kind == 'cv' else 'ns'}": times(row.known(what), factor) for what in ("real_time", "cpu_time")
    }


def _plain(node: Node | None) -> object:
    if node is None or isinstance(node.value, bool):
        return node and node.value
    return node.text() if isinstance(node.value, str) else node.number()


def _take_json(one: _Benchmark, row: Node) -> None:
    if (message := _message(row)) is not None:
        one.why = one.why or message
        return
    factor = _factor(row.known_text("time_unit") or "ns", row.path)
    if row.known_text("run_type") == "aggregate":
        percent = row.known_text("aggregate_unit") == "percentage" or row.known_text("aggregate_name") == "cv"
        kind = row.at("aggregate_name").text()
        one.aggregates[kind] = {
            f"{what}_{'cv' if percent else 'ns'}": times(row.known(what), 1.0 if percent else factor)
            for what in ("real_time", "cpu_time")
        }
        if kind == "mean":
            one.rates = {ours: row.known(theirs) for theirs, ours in _RATES if theirs in row}
        return
    figures: dict[str, object] = {
        "real_time_ns": times(row.at("real_time").number(), factor),
        "cpu_time_ns": times(row.at("cpu_time").number(), factor),
    }
    figures |= {ours: row.known(theirs) for theirs, ours in _RATES if theirs in row}
    figures["iterations"] = row.known_count("iterations")
    counters = {
        key: value.number()
        for key, value in row.items()
        if key not in _OWN and isinstance(value.value, int | float) and not isinstance(value.value, bool)
    }
    if counters:
        figures["counters"] = counters
    one.rows.append(figures)


def _message(row: Node) -> str | None:
    error, skipped = row.find("error_occurred"), row.find("skipped")
    if (error is not None and error.value is True) or (skipped is not None and skipped.value):
        return row.known_text("error_message") or row.known_text("skip_message") or "an error occurred"
    return None


def _factor(unit: str, what: str) -> float:
    if unit not in _NS:
        raise ParseError(f"{what}: the time unit should be ns, us, ms or s, but it is {unit[:20]!r}")
    return _NS[unit]


def read_csv(source: Source) -> Readout:
    """The rows of --benchmark_format=csv. Raises ParseError."""
    start = source.text.find(_CSV_HEAD)
    if start < 0:
        raise nothing_in("head line of the CSV", "Google Benchmark", line=1)
    rows = read_table(
        source.text[start:],
        tuple(_CSV_HEAD.split(",")),
        "Google Benchmark",
        after=source.text.count("\n", 0, start),
        shortest=_SHORTEST_ROW,
    )
    found: dict[str, _Benchmark] = {}
    computed = _computed([row.text("name") for row in rows])
    for row in rows:
        name = row.text("name")
        if name in computed:
            _take_aggregate(found.setdefault(computed[name][0], _Benchmark()), computed[name][1], row)
        elif not name.endswith(("_BigO", "_RMS")):
            _take_row(found.setdefault(name, _Benchmark()), row)
    return _readout("google-benchmark-csv", found, None, {})


def _take_aggregate(one: _Benchmark, kind: str, row: Row) -> None:
    """The row of an aggregate, behind those of mean and deviation when it is a coefficient of variation."""
    factor, of = _factor(row.text("time_unit") or "ns", f"line {row.line}"), row.count("iterations")
    one.repetitions = max(one.repetitions, of)
    both = ("real_time", "cpu_time")
    if kind == "cv":
        one.aggregates[kind] = {f"{what}_cv": _variation(one, what, row.known(what), factor * of) for what in both}
    else:
        one.aggregates[kind] = {f"{what}_ns": times(row.known(what), factor) for what in both}
    if kind == "mean":
        one.rates = {ours: value for theirs, ours in _RATES if (value := row.known(theirs)) is not None}


def _variation(one: _Benchmark, what: str, written: float | None, factor: float) -> float | None:
    """A coefficient of variation; until 1.7 it is written as if it were a time of all repetitions."""
    spread, middle = (one.aggregates.get(kind, {}).get(f"{what}_ns") for kind in ("stddev", "mean"))
    if not written or not isinstance(spread, int | float) or not isinstance(middle, int | float) or not middle:
        return written
    as_time = written * factor / _NS["s"]
    return min(written, as_time, key=lambda value: abs(value - spread / middle))


def _take_row(one: _Benchmark, row: Row) -> None:
    if row.text("error_occurred").strip().lower() == "true":
        one.why = one.why or row.text("error_message") or "an error occurred"
        return
    factor = _factor(row.text("time_unit"), f"line {row.line}")
    figures: dict[str, object] = {f"{w}_ns": times(row.number(w), factor) for w in ("real_time", "cpu_time")}
    for theirs, ours in _RATES:
        if (value := row.known(theirs)) is not None:
            figures[ours] = value
    figures["iterations"] = row.count("iterations")
    counters = {key: value for key in row.cells if key not in _OWN and (value := row.known(key)) is not None}
    one.rows.append({**figures, "counters": counters} if counters else figures)


def read_console(source: Source) -> Readout:
    """The table that is printed for people, with its rounded figures. Raises ParseError."""
    text = source.text
    if len(text) > MAX_CHARS:
        raise ParseError(f"the text has {len(text)} characters; a report of Google Benchmark has far fewer", line=1)
    found: dict[str, _Benchmark] = {}
    columns: list[str] = []
    lines = [(place, line.rstrip()) for place, line in enumerate(text.split("\n"), 1) if len(line) <= 5000]
    computed = _computed([match[1] for _, line in lines if (match := _ROW.fullmatch(line))])
    for place, line in lines:
        if _CONSOLE_HEAD.match(line):
            columns = [column for column in line.split()[4:] if column != "UserCounters..."]
        elif broken := _BROKEN.fullmatch(line):
            found.setdefault(broken[1], _Benchmark()).why = broken[2] or "an error occurred"
        elif match := _ROW.fullmatch(line):
            _take_line(found, match, place, computed, columns)
    if not found:
        raise nothing_in("row of the table", "Google Benchmark")
    return _readout("google-benchmark-console", found, None, {})


def _take_line(
    found: dict[str, _Benchmark],
    match: re.Match[str],
    place: int,
    computed: Mapping[str, tuple[str, str]],
    columns: Sequence[str],
) -> None:
    name, percent = match[1], match[3] == "%"
    real, cpu = number(match[2], "Time", place), number(match[4], "CPU", place)
    if name in computed:
        one, kind = found.setdefault(computed[name][0], _Benchmark()), computed[name][1]
        pairs = (("real_time", real, match[3]), ("cpu_time", cpu, match[5]))
        one.repetitions = max(one.repetitions, count(match[6], "Iterations", place))
        one.aggregates[kind] = {
            f"{what}_{'cv' if percent else 'ns'}": value / 100 if unit == "%" else value * _NS[unit]
            for what, value, unit in pairs
        }
        if kind == "mean":
            one.rates = {
                name: value for name, value in _counters(match[7] or "", columns, place).items() if name in _OURS
            }
        return
    if percent or match[5] == "%":
        return
    figures: dict[str, object] = {
        "real_time_ns": real * _NS[match[3]],
        "cpu_time_ns": cpu * _NS[match[5]],
        "iterations": count(match[6], "Iterations", place),
    }
    said = _counters(match[7] or "", columns, place)
    figures |= {ours: said.pop(ours) for _, ours in _RATES if ours in said}
    if said:
        figures["counters"] = said
    found.setdefault(name, _Benchmark()).rows.append(figures)


def _counters(text: str, columns: Sequence[str], place: int) -> dict[str, float]:
    """The counters behind a row, named there or, in a table, by the head line; what follows them is a label."""
    cells = text.split()
    words = [f"{column}={cell}" for column, cell in zip(columns, cells, strict=False)] if columns else cells
    found: dict[str, float] = {}
    for word in words:
        counter = _COUNTER.fullmatch(word)
        if counter is None:
            break
        of_bytes = counter[1] == "bytes_per_second"
        base = 1024 if counter[4] or (of_bytes and counter[3] not in "munpfa") else 1000
        value = number(counter[2], counter[1], place) * float(base) ** _POWERS.get(counter[3], -5)
        found[dict(_RATES).get(counter[1], counter[1])] = value
    return found


def _readout(form: str, found: dict[str, _Benchmark], version: str | None, beside: Mapping[str, object]) -> Readout:
    results = tuple(_result(name, one) for name, one in found.items())
    why = ("no benchmark ran" if not results else results[0].why) if all(one.why for one in results) else ""
    return Readout(TOOL, form, results, version, beside, why)


def _result(name: str, one: _Benchmark) -> NamedResult:
    aggregates: dict[str, object] = {"aggregates": one.aggregates} if one.aggregates else {}
    if one.why:
        figures: dict[str, object] = {"real_time_ns": None, "errors_total": 1}
        return NamedResult(name, figures, one.params, why=one.why, more=aggregates)
    if len(one.rows) == 1 and one.repetitions == 1:
        return NamedResult(name, one.rows[0], one.params, more=aggregates)
    figure = "real_time_ns"
    if not one.rows:
        only = {**(one.aggregates.get("mean") or one.aggregates.get("median") or {figure: None}), **one.rates}
        why = "" if only.get(figure) is not None else "it has no time"
        return NamedResult(
            name, only, one.params, Repetitions("repetition", one.repetitions, figure), why=why, more=aggregates
        )
    values = {
        key: [_number(row[key]) for row in one.rows]
        for key in ("real_time_ns", "cpu_time_ns", "bytes_per_s", "items_per_s")
        if all(row.get(key) is not None for row in one.rows)
    }
    repetitions = Repetitions("repetition", len(one.rows), figure, values)
    figures = {key: mean(v) for key, v in values.items()}
    if counters := _mean_counters([row.get("counters") for row in one.rows]):
        figures["counters"] = counters
    return NamedResult(name, figures, one.params, repetitions, more=aggregates)


def _mean_counters(each: Sequence[object]) -> dict[str, float]:
    """The means of the counters that every repetition has."""
    rows = [counters for counters in each if isinstance(counters, Mapping)]
    if not rows or len(rows) != len(each):
        return {}
    return {name: mean([_number(row[name]) for row in rows]) for name in rows[0] if all(name in row for row in rows)}


def _number(value: object) -> float:
    assert isinstance(value, int | float)  # noqa: S101  # rows have numbers under these names
    return value


GOOGLE_BENCHMARK = ResultReader(
    TOOL,
    "Google Benchmark",
    (
        ResultForm(
            "google-benchmark-json",
            lambda head: (
                _NO_MATCH.search(head) is not None
                or (has_keys(head, "context", "num_cpus") and '"library_build_type"' in head)
            ),
            read_json,
        ),
        ResultForm("google-benchmark-csv", lambda head: _CSV_HEAD in head, read_csv),
        ResultForm("google-benchmark-console", lambda head: _CONSOLE_HEAD.search(head) is not None, read_console),
    ),
    ("real_time_ns",),
)
