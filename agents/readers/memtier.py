"""memtier_benchmark's JSON file and table. Source: memtier_benchmark 2.0, run_stats.cpp; JSON_handler.cpp."""

from __future__ import annotations

import re

from agents.base.errors import ParseError
from agents.readers.base.json_node import Node, load_json
from agents.readers.base.named_result import NamedResult, Readout, Repetitions
from agents.readers.base.numbers import known_number, over, percentile_name, times
from agents.readers.base.result_reader import MAX_CHARS, ResultForm, ResultReader, Source, nothing_in

TOOL = "memtier"
_ALL = "ALL STATS"
_AVERAGE = "AGGREGATED AVERAGE RESULTS"
_PERCENTILE = re.compile(r"p([0-9]{1,3}(?:\.[0-9]{1,6})?)", re.ASCII)
_COLUMN = re.compile(r"(?:p[0-9.]{1,9} Latency|Avg\. Latency|[A-Z]\S{1,20})(?=\s|$)")
_CONFIGURED = re.compile(
    r"\s{0,10}([0-9]{1,9})\s{1,20}(Threads|Connections per thread|Requests per client|Seconds)\s{0,9}"
)
_PARAM = {"Threads": "threads", "Connections per thread": "connections_per_thread"}
KIB = 1024
"""The KB of memtier_benchmark: bytes by 1024."""


def read_json(source: Source) -> Readout:
    """The operations of --json-out-file: the average where there are several runs. Raises ParseError."""
    document, _ = load_json(source.text, "memtier_benchmark")
    names = [name for name, _ in document.items()]
    section = next((name for name in names if name.startswith(_AVERAGE)), _ALL)
    stats = document.at(section)
    run = document.find("run information") or Node({})
    params = {
        "threads": run.known_count("Threads") or document.known_count("configuration", "threads"),
        "connections_per_thread": run.known_count("Connections per thread")
        or document.known_count("configuration", "clients"),
    }
    results = [
        _operation(name, values, stats.find("Runtime"), params)
        for name, values in stats.items()
        if isinstance(values.value, dict) and "Ops/sec" in values
    ]
    runs = _runs(document, names)
    return _readout("memtier-json", [_with_runs(one, runs) for one in results])


def _operation(name: str, values: Node, runtime: Node | None, params: dict[str, int | None]) -> NamedResult:
    figures: dict[str, object] = {
        "throughput_ops_per_s": values.at("Ops/sec").number(),
        "requests": values.known_count("Count"),
        "hits_per_s": values.known("Hits/sec"),
        "misses_per_s": values.known("Misses/sec"),
        "bytes_per_s": times(values.known("KB/sec"), KIB),
        "latency_mean_ms": values.known("Average Latency") if "Average Latency" in values else values.known("Latency"),
        "latency_min_ms": values.known("Min Latency"),
        "latency_max_ms": values.known("Max Latency"),
    }
    found = values.find("Percentile Latencies")
    for key, value in found.items() if found is not None else []:
        if match := _PERCENTILE.fullmatch(key):
            figures[f"latency_{percentile_name(float(match[1]))}_ms"] = value.number()
    if "Connection Errors" in values:
        figures["errors_connect"] = values.known_count("Connection Errors")
    if name == "Totals" and runtime is not None:
        figures["duration_s"] = over(runtime.known("Total duration"), 1e3)
    return _judged(name, figures, params)


def _runs(document: Node, names: list[str]) -> list[Node]:
    return [document.at(name) for name in names if re.fullmatch(r"RUN #[0-9]{1,6} RESULTS", name)]


def _with_runs(result: NamedResult, runs: list[Node]) -> NamedResult:
    """The same with one value for each run, where the file has all runs (--print-all-runs)."""
    values = [value for run in runs if (value := run.known(str(result.benchmark), "Ops/sec")) is not None]
    if len(runs) < 2 or len(values) != len(runs):
        return result
    figure = "throughput_ops_per_s"
    repetitions = Repetitions("run", len(values), figure, {figure: values})
    return NamedResult(result.benchmark, result.figures, result.params, repetitions, why=result.why)


def read_text(source: Source) -> Readout:
    """The table of the text: the last one, which is the average where there were several runs. Raises ParseError."""
    if len(source.text) > MAX_CHARS:
        raise ParseError(f"the text has {len(source.text)} characters; a report of memtier has far fewer", line=1)
    lines = [line.rsplit("\r", 1)[-1].rstrip() for line in source.text.split("\n")]
    heads = [place for place, line in enumerate(lines) if _is_head(line)]
    if not heads:
        raise nothing_in("table", "memtier_benchmark")
    params: dict[str, int | None] = {}
    for line in lines[: heads[-1]]:
        if len(line) < 200 and (match := _CONFIGURED.fullmatch(line)) and match[2] in _PARAM:
            params[_PARAM[match[2]]] = int(match[1])
    columns = _COLUMN.findall(lines[heads[-1]][:2000])
    results: list[NamedResult] = []
    for place, line in enumerate(lines[heads[-1] + 1 :], heads[-1] + 2):
        cells = line[:2000].split()
        if line.startswith("---"):
            continue
        if len(cells) != len(columns):
            break
        results.append(_row(cells, columns, params, place))
    return _readout("memtier-text", results)


def _row(cells: list[str], columns: list[str], params: dict[str, int | None], place: int) -> NamedResult:
    said = {
        name: known_number(cell, f"{name} of {cells[0]}", place)
        for name, cell in zip(columns[1:], cells[1:], strict=True)
    }
    figures: dict[str, object] = {
        "throughput_ops_per_s": said.get("Ops/sec"),
        "hits_per_s": said.get("Hits/sec"),
        "misses_per_s": said.get("Misses/sec"),
        "bytes_per_s": times(said.get("KB/sec"), KIB),
        "latency_mean_ms": said.get("Avg. Latency", said.get("Latency")),
    }
    for name, value in said.items():
        if match := _PERCENTILE.match(name):
            figures[f"latency_{percentile_name(float(match[1]))}_ms"] = value
    return _judged(cells[0], figures, params)


def _judged(name: str, figures: dict[str, object], params: dict[str, int | None]) -> NamedResult:
    idle = not figures["throughput_ops_per_s"]
    return NamedResult(name, figures, params, why="there was no such operation" if idle else "", optional=idle)


def _readout(form: str, results: list[NamedResult]) -> Readout:
    if not results:
        raise nothing_in("operation", "memtier_benchmark")
    why = "no operation was done" if all(one.why for one in results) else ""
    return Readout(TOOL, form, tuple(results), None, {}, why)


def _is_head(line: str) -> bool:
    return line.lstrip().startswith("Type ") and "Ops/sec" in line and "KB/sec" in line


def _is_text(head: str) -> bool:
    return any(_is_head(line) for line in head.split("\n"))


def _is_json(head: str) -> bool:
    known = '"ALL STATS"' in head or f'"{_AVERAGE}' in head
    return head.lstrip()[:1] == "{" and (known or ('"configuration"' in head and '"run information"' in head))


MEMTIER = ResultReader(
    TOOL,
    "memtier_benchmark",
    (ResultForm("memtier-json", _is_json, read_json), ResultForm("memtier-text", _is_text, read_text)),
    ("throughput_ops_per_s",),
)
