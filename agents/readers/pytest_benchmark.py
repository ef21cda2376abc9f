"""pytest-benchmark's JSON: seconds; a round is a repetition.

Source: pytest-benchmark 5, src/pytest_benchmark/stats.py.
"""

from __future__ import annotations

import math

from agents.readers.base.json_node import Node, has_keys, load_json
from agents.readers.base.named_result import NamedResult, Readout, Repetitions
from agents.readers.base.result_reader import ResultForm, ResultReader, Source

FORMAT = "pytest-benchmark-json"
_FIGURES = (
    ("time_mean_s", "mean"),
    ("time_stdev_s", "stddev"),
    ("time_median_s", "median"),
    ("time_min_s", "min"),
    ("time_max_s", "max"),
    ("ops_per_s", "ops"),
    ("iqr_s", "iqr"),
)


def read(source: Source) -> Readout:
    """The tests of --benchmark-json. It does not say which of them failed afterwards. Raises ParseError."""
    document, _ = load_json(source.text, "pytest-benchmark")
    results = tuple(_test(one) for one in document.at("benchmarks").elements())
    beside = {"datetime": document.known_text("datetime")}
    version = document.known_text("version")
    return Readout("pytest-benchmark", FORMAT, results, version, beside, "" if results else "no benchmark ran")


def _test(one: Node) -> NamedResult:
    stats = one.at("stats")
    stats.at("mean").number()
    given, data, group = one.find("params"), stats.find("data"), one.known_text("group")
    values = data.numbers() if data is not None else []
    repetitions = Repetitions(
        "round",
        stats.known_count("rounds") or len(values),
        "time_s",
        {"time_s": values} if values else {},
        stats.known_count("iterations"),
        math.fsum(values) if values else stats.known("total"),
    )
    params = {name: value.value for name, value in given.items()} if given is not None else {}
    figures = {name: stats.known(theirs) for name, theirs in _FIGURES}
    return NamedResult(
        one.at("fullname").text(), figures, params, repetitions, more={"group": group} if group is not None else {}
    )


PYTEST_BENCHMARK = ResultReader(
    "pytest-benchmark",
    "pytest-benchmark",
    (
        ResultForm(
            FORMAT,
            lambda head: (
                has_keys(head, "machine_info", "commit_info") or has_keys(head, "benchmarks", "fullname", "iqr")
            ),
            read,
        ),
    ),
    ("time_mean_s",),
)
