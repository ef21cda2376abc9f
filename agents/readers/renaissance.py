"""Renaissance's JSON and CSV: the process is the repetition, what it does again inside itself is an iteration.

Source: Renaissance 0.14 to 0.16, renaissance-harness, ResultWriter.scala (format_version 5 and 6).
"""

from __future__ import annotations

import math
import statistics

from agents.base.errors import ParseError
from agents.readers.base.json_node import Node, has_keys, load_json
from agents.readers.base.named_result import NamedResult, Readout, Repetitions
from agents.readers.base.numbers import mean
from agents.readers.base.result_reader import ResultForm, ResultReader, Source
from agents.readers.base.table import read_table

TOOL = "renaissance"
NS_PER_S = 1e9


def read_json(source: Source) -> Readout:
    """The benchmarks of --json. Raises ParseError."""
    document, _ = load_json(source.text, "Renaissance")
    forced = document.known_text("environment", "vm", "termination") == "forced"
    results = []
    for name, one in document.at("data").items():
        times_s = [row.at("duration_ns").number() / NS_PER_S for row in one.at("results").elements()]
        why = "the benchmark failed" if one.known_text("termination") == "failure" else ""
        results.append(_result(name, [times_s], why or ("the process was stopped" if forced else "")))
    beside: dict[str, object] = {"format_version": document.known_count("format_version")}
    version = _version(document)
    why = "no benchmark ran" if not results else results[0].why if all(one.why for one in results) else ""
    return Readout(TOOL, "renaissance-json", tuple(results), version, beside, why)


def _version(document: Node) -> str | None:
    return document.known_text("suite", "version")


def read_csv(source: Source) -> Readout:
    """The rows of --csv, also of several processes, put together without their head lines. Raises ParseError."""
    found: dict[str, dict[str, list[float]]] = {}
    for row in read_table(source.text, ("benchmark", "duration_ns", "vm_start_unix_ms"), "Renaissance"):
        processes = found.setdefault(row.text("benchmark"), {})
        processes.setdefault(row.text("vm_start_unix_ms"), []).append(row.number("duration_ns") / NS_PER_S)
    results = tuple(_result(name, list(processes.values()), "") for name, processes in found.items())
    return Readout(TOOL, "renaissance-csv", results, None, {}, "" if results else "no benchmark ran")


def _result(name: str, processes: list[list[float]], why: str) -> NamedResult:
    times_s = [time_s for one in processes for time_s in one]
    if not times_s:
        return NamedResult(name, {"time_mean_s": None}, why=why or "it has no result")
    if min(times_s) < 0:
        raise ParseError(f"{name[:80]} has a duration below 0", hint="Give the file as Renaissance wrote it.")
    middle = mean(times_s)
    spread = math.sqrt(math.fsum((x - middle) ** 2 for x in times_s) / (len(times_s) - 1)) if len(times_s) > 1 else None
    figures: dict[str, object] = {
        "time_mean_s": middle,
        "time_stdev_s": spread,
        "time_median_s": statistics.median(times_s),
        "time_min_s": min(times_s),
        "time_max_s": max(times_s),
    }
    each = [len(one) for one in processes]
    repetitions = Repetitions("process", len(processes), "time_s", {"time_s": [mean(one) for one in processes]}, each)
    return NamedResult(name, figures, {}, repetitions, why=why)


RENAISSANCE = ResultReader(
    TOOL,
    "Renaissance",
    (
        ResultForm(
            "renaissance-json",
            lambda head: has_keys(head, "format_version", "benchmarks") or has_keys(head, "data", "duration_ns"),
            read_json,
        ),
        ResultForm(
            "renaissance-csv",
            lambda head: (
                head.lstrip().startswith("benchmark,")
                and {"duration_ns", "vm_start_unix_ms"} <= set(head.lstrip().split("\n", 1)[0].split(","))
            ),
            read_csv,
        ),
    ),
    ("time_mean_s",),
)
