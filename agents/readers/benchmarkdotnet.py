"""BenchmarkDotNet's JSON (full or brief), nanoseconds: a launch is a repetition, an iteration inside it is none.

Source: BenchmarkDotNet 0.13, Exporters/Json/JsonExporterBase.cs, and its documentation of the JSON exporters.
"""

from __future__ import annotations

from agents.readers.base.json_node import Node, has_keys, load_json
from agents.readers.base.named_result import NamedResult, Readout, Repetitions
from agents.readers.base.numbers import mean, percentile_name
from agents.readers.base.result_reader import ResultForm, ResultReader, Source

FORMAT = "benchmarkdotnet-json"
_FIGURES = (
    ("time_mean_ns", "Mean"),
    ("time_median_ns", "Median"),
    ("time_stdev_ns", "StandardDeviation"),
    ("time_min_ns", "Min"),
    ("time_max_ns", "Max"),
    ("time_standard_error_ns", "StandardError"),
)
_KEPT = {"Actual", "Result"}


def read(source: Source) -> Readout:
    """Every benchmark of a report. Raises ParseError."""
    document, _ = load_json(source.text, "BenchmarkDotNet")
    results = tuple(_benchmark(one) for one in document.at("Benchmarks").elements())
    version = document.known_text("HostEnvironmentInfo", "BenchmarkDotNetVersion")
    why = "no benchmark ran" if not results else results[0].why if all(one.why for one in results) else ""
    return Readout("benchmarkdotnet", FORMAT, results, version, {}, why)


def _benchmark(one: Node) -> NamedResult:
    name = ".".join(part for key in ("Namespace", "Type", "Method") if (part := one.known_text(key)))
    params: dict[str, object] = {}
    for pair in (one.known_text("Parameters") or "").split("&"):
        option, equals, chosen = pair.strip().partition("=")
        if equals:
            params[option] = chosen
    if (job := (one.known_text("DisplayInfo") or "").partition(": ")[2].partition(" [")[0]) and job != "DefaultJob":
        params["job"] = job
    name = name or one.at("FullName").text()
    stats = one.find("Statistics")
    if stats is None:
        return NamedResult(name, {"time_mean_ns": None}, params, why="it has no statistics: it failed or did not run")
    stats.at("Mean").number()
    figures: dict[str, object] = {ours: stats.known(theirs) for ours, theirs in _FIGURES}
    found = stats.find("Percentiles")
    for key, value in found.items() if found is not None else []:
        if key[:1] == "P" and key[1:].isascii() and key[1:].isdigit():
            figures[f"time_{percentile_name(int(key[1:4]))}_ns"] = value.known()
    memory = one.find("Memory")
    if memory is not None:
        figures["alloc_bytes_per_op"] = memory.known("BytesAllocatedPerOperation")
        for generation in (0, 1, 2):
            figures[f"gc_gen{generation}_collections"] = memory.known_count(f"Gen{generation}Collections")
    return NamedResult(name, figures, params, _launches(one))


def _launches(one: Node) -> Repetitions | None:
    """The mean of the result stage of every launch, which is a process; None without measurements (the brief form)."""
    measurements = one.find("Measurements")
    launches: dict[str, dict[int, list[float]]] = {}
    for single in measurements.elements() if measurements is not None else []:
        stage = single.known_text("IterationStage") or ""
        if (single.known_text("IterationMode") or "Workload") in ("Workload", "MainTarget", "Result") and (
            stage in _KEPT or "IterationStage" not in single
        ):
            operations = single.at("Operations").number()
            if operations <= 0:
                raise single.at("Operations").wrong("a number above 0")
            time_ns = single.at("Nanoseconds").number() / operations
            launches.setdefault(stage, {}).setdefault(single.at("LaunchIndex").count(), []).append(time_ns)
    kept = launches.get("Result") or launches.get("Actual") or launches.get("")
    if not kept:
        return None
    figure = "time_per_op_ns"
    values = [mean(each) for _, each in sorted(kept.items())]
    return Repetitions("launch", len(values), figure, {figure: values}, [len(each) for _, each in sorted(kept.items())])


BENCHMARKDOTNET = ResultReader(
    "benchmarkdotnet",
    "BenchmarkDotNet",
    (ResultForm(FORMAT, lambda head: has_keys(head, "HostEnvironmentInfo", "BenchmarkDotNetCaption"), read),),
    ("time_mean_ns",),
)
