"""Criterion (Rust): estimates, samples and names of a benchmark, the console, and the messages of cargo-criterion.

Source: criterion 0.5, src/report.rs, src/measurement.rs (units of the console), src/estimate.rs; cargo-criterion 1.1,
src/message_formats/json.rs.
"""

from __future__ import annotations

import re

from agents.base.errors import ParseError
from agents.readers.base.json_node import Node, decode, has_keys, line_of, load_json
from agents.readers.base.named_result import NamedResult, Readout, Repetitions
from agents.readers.base.numbers import mean, number, over
from agents.readers.base.result_reader import MAX_CHARS, ResultForm, ResultReader, Source, nothing_in

TOOL = "criterion"
_PATH = re.compile(r"(?:^|[/\\])criterion[/\\](.+)[/\\](?:new|base|change)[/\\][a-z]+\.json$")
_ESTIMATES = ("mean", "median", "slope")
_NS = {"ps": 1e-3, "ns": 1.0, "µs": 1e3, "μs": 1e3, "us": 1e3, "ms": 1e6, "s": 1e9}
_BYTES = {
    "B/s": 1.0, "KiB/s": 2.0**10, "MiB/s": 2.0**20, "GiB/s": 2.0**30, "TiB/s": 2.0**40,
    "KB/s": 1e3, "kB/s": 1e3, "MB/s": 1e6, "GB/s": 1e9, "TB/s": 1e12,
}  # fmt: skip
_ELEMENTS = {"elem/s": 1.0, "Kelem/s": 1e3, "Melem/s": 1e6, "Gelem/s": 1e9}
_N = r"(-?[0-9]{1,15}(?:\.[0-9]{1,9})?)"
_RANGE = rf"\[{_N} (\S{{1,9}}) {_N} (\S{{1,9}}) {_N} (\S{{1,9}})\]"
_TIME = re.compile(rf"(.{{0,500}}?)\s*time:   {_RANGE}\s*")
_THROUGHPUT = re.compile(rf"\s+thrpt:  {_RANGE}\s*")
_CHANGE = re.compile(
    r"\s*change:\s*(?:\[([-+−0-9.]{1,20})% ([-+−0-9.]{1,20})% ([-+−0-9.]{1,20})%\] \(p = ([0-9.]{1,9}) .{1,20}\))?"
)
_WITH_COMMAS = r"([0-9][0-9,]{0,20}(?:\.[0-9]{1,9})?)"
_BENCHER = re.compile(
    rf"test (\S.{{0,500}}?) +\.\.\. bench: +{_WITH_COMMAS} (ns|us|µs|ms|s)/iter \(\+/- {_WITH_COMMAS}\)"
    rf"(?: = {_WITH_COMMAS} MB/s)?"
)
_IS_BENCHER = re.compile(r"^test .{1,500}? \.\.\. bench: ", re.MULTILINE)
_OTHER = re.compile(r"(?:Benchmarking |Found |  [0-9]|running |test |Gnuplot|WARNING|Warning|warning|\s).*|")


def _name(source: Source) -> str | None:
    """The name that the path of a file gives: target/criterion/NAME/new/estimates.json."""
    match = _PATH.search(source.file_name)
    return match[1].replace("\\", "/") if match else None


def read_estimates(source: Source) -> Readout:
    """new/estimates.json, in nanoseconds. Raises ParseError."""
    document, _ = load_json(source.text, "Criterion")
    figures: dict[str, object] = {}
    for estimate in _ESTIMATES:
        found = document.find(estimate)
        bounds = found.find("confidence_interval") if found is not None else None
        figures[f"time_{estimate}_ns"] = found.at("point_estimate").number() if found is not None else None
        if bounds is not None:
            figures[f"time_{estimate}_lower_ns"] = bounds.known("lower_bound")
            figures[f"time_{estimate}_upper_ns"] = bounds.known("upper_bound")
    figures["time_stdev_ns"] = document.known("std_dev", "point_estimate")
    figures["time_mad_ns"] = document.known("median_abs_dev", "point_estimate")
    if figures["time_mean_ns"] is None:
        raise document.at("mean").wrong("an estimate")
    return _one("criterion-estimates", NamedResult(_name(source), figures))


def read_change(source: Source) -> Readout:
    """change/estimates.json: relative changes since the last run, which are no result. Raises ParseError."""
    document, _ = load_json(source.text, "Criterion")
    figures: dict[str, object] = {}
    for estimate in ("mean", "median"):
        found = document.at(estimate)
        figures[f"change_{estimate}_ratio"] = found.at("point_estimate").number()
        figures[f"change_{estimate}_lower_ratio"] = found.known("confidence_interval", "lower_bound")
        figures[f"change_{estimate}_upper_ratio"] = found.known("confidence_interval", "upper_bound")
    why = "a change since another run is no result"
    return _one("criterion-change", NamedResult(_name(source), figures, why=why))


def read_benchmark(source: Source) -> Readout:
    """new/benchmark.json: the name and its parts; the figures are in estimates.json beside it. Raises ParseError."""
    document, _ = load_json(source.text, "Criterion")
    throughput = document.find("throughput")
    params: dict[str, object] = {
        "group": document.known_text("group_id"),
        "function": document.known_text("function_id"),
        "value": document.known_text("value_str"),
    }
    if throughput is not None:
        params["throughput"] = {name: value.number() for name, value in throughput.items()}
    return _one("criterion-benchmark-json", NamedResult(document.at("full_id").text(), {}, params))


def read_sample(source: Source) -> Readout:
    """new/sample.json: the time of each sample by its iterations. Raises ParseError."""
    document, _ = load_json(source.text, "Criterion")
    values = _samples(document.at("iters"), document.at("times"))
    figure = "time_per_op_ns"
    result = NamedResult(
        _name(source),
        {"time_mean_ns": mean(values)},
        {"sampling_mode": document.known_text("sampling_mode")},
        Repetitions("sample", len(values), figure, {figure: values}),
    )
    return _one("criterion-sample-json", result)


def _samples(iterations: Node, times: Node) -> list[float]:
    iters, spent = iterations.numbers(), times.numbers()
    if len(iters) != len(spent) or not iters or min(iters) <= 0:
        raise iterations.wrong("one positive count for each time")
    return [time / count for time, count in zip(spent, iters, strict=True)]


def read_messages(source: Source) -> Readout:
    """The messages of cargo criterion --message-format=json, a line each. Raises ParseError."""
    if len(source.text) > MAX_CHARS:
        raise ParseError(f"the text has {len(source.text)} characters; at most {MAX_CHARS} are read", line=1)
    results, at = [], 0
    for line in source.text.split("\n"):
        if line.startswith("{"):
            value, _ = decode(source.text, at, "cargo-criterion")
            message = Node(value, f"line {line_of(source.text, at)}")
            if message.known_text("reason") == "benchmark-complete":
                results.append(_message(message))
        at += len(line) + 1
    return Readout(TOOL, "cargo-criterion-messages", tuple(results), None, {}, "" if results else "no benchmark ran")


def _message(message: Node) -> NamedResult:
    figures: dict[str, object] = {}
    for estimate in ("typical", "mean", "median", "slope", "median_abs_dev"):
        found = message.find(estimate)
        if found is None:
            figures[f"time_{estimate}_ns"] = None
            continue
        factor = _factor(found.known_text("unit") or "ns", found.path)
        for key, end in (("estimate", "ns"), ("lower_bound", "lower_ns"), ("upper_bound", "upper_ns")):
            figures[f"time_{estimate}_{end}"] = found.at(key).number() * factor
    throughput = message.find("throughput")
    for one in throughput.elements() if throughput is not None else []:
        unit = one.known_text("unit") or "units"
        figures[f"{unit if unit in ('bytes', 'elements') else 'units'}_per_iteration"] = one.known("per_iteration")
    values = _samples(message.at("iteration_count"), message.at("measured_values"))
    factor = _factor(message.known_text("unit") or "ns", message.path)
    figure = "time_per_op_ns"
    repetitions = Repetitions("sample", len(values), figure, {figure: [value * factor for value in values]})
    return NamedResult(message.at("id").text(), figures, {}, repetitions)


def read_text(source: Source) -> Readout:
    """The console: [lower typical upper] of each benchmark. Raises ParseError."""
    if len(source.text) > MAX_CHARS:
        raise ParseError(f"the text has {len(source.text)} characters; at most {MAX_CHARS} are read", line=1)
    found: list[tuple[str, dict[str, object]]] = []
    above, in_change = "", False
    for place, line in enumerate(source.text.split("\n"), 1):
        line = line.rsplit("\r", 1)[-1]
        if len(line) > 4000:
            continue
        if (match := _CHANGE.fullmatch(line)) and found:
            in_change = True
            _take_change(match, found[-1][1], place)
        elif match := _TIME.fullmatch(line):
            name = match[1].strip() or above
            if not name:
                raise ParseError("the name of this benchmark is missing", line=place)
            found.append((name, _times(match, place)))
            in_change = False
        elif (match := _THROUGHPUT.fullmatch(line)) and found and not in_change:
            found[-1][1].update(_throughput(match, place))
        if not _OTHER.fullmatch(line):
            above = line.strip()
    if not found:
        raise nothing_in("line with 'time:'", "cargo bench with Criterion")
    return Readout(TOOL, "criterion-text", tuple(NamedResult(name, figures) for name, figures in found), None)


def _times(match: re.Match[str], place: int) -> dict[str, object]:
    values = [number(match[at], "time", place) * _factor(match[at + 1], f"line {place}") for at in (2, 4, 6)]
    return dict(zip(("time_lower_ns", "time_typical_ns", "time_upper_ns"), values, strict=True))


def _throughput(match: re.Match[str], place: int) -> dict[str, object]:
    unit = match[4]
    if unit in _BYTES:
        return {"bytes_per_s": number(match[3], "throughput", place) * _BYTES[unit]}
    if unit in _ELEMENTS:
        return {"elements_per_s": number(match[3], "throughput", place) * _ELEMENTS[unit]}
    return {}


def _take_change(match: re.Match[str], figures: dict[str, object], place: int) -> None:
    if match[1] is None:
        return
    for at, name in ((1, "lower"), (2, "mean"), (3, "upper")):
        value = number(match[at].replace("−", "-"), "change", place)
        figures[f"change_{name}_ratio"] = over(value, 100)
    figures["change_p"] = number(match[4], "p", place)


def read_bencher(source: Source) -> Readout:
    """The lines of --output-format=bencher, which Rust's own harness writes, too. Raises ParseError."""
    if len(source.text) > MAX_CHARS:
        raise ParseError(f"the text has {len(source.text)} characters; at most {MAX_CHARS} are read", line=1)
    results = []
    for place, line in enumerate(source.text.split("\n"), 1):
        if len(line) <= 4000 and (match := _BENCHER.fullmatch(line.rstrip())):
            unit = _factor(match[3], f"line {place}")
            figures: dict[str, object] = {
                "time_per_op_ns": number(match[2].replace(",", ""), "the time", place) * unit,
                "time_range_ns": number(match[4].replace(",", ""), "its range", place) * unit,
            }
            if match[5]:
                figures["bytes_per_s"] = number(match[5].replace(",", ""), "the rate", place) * 1e6
            results.append(NamedResult(match[1], figures))
    if not results:
        raise nothing_in("line with 'bench:'", "cargo bench -- --output-format=bencher")
    return Readout(TOOL, "cargo-bench-text", tuple(results), None)


def _factor(unit: str, what: str) -> float:
    if unit not in _NS:
        raise ParseError(f"{what}: the unit should be one of time, but it is {unit[:20]!r}")
    return _NS[unit]


def _one(form: str, result: NamedResult) -> Readout:
    return Readout(TOOL, form, (result,), None, {}, result.why)


def _has_estimates(head: str) -> bool:
    return has_keys(head, "confidence_interval", "point_estimate", "standard_error")


CRITERION = ResultReader(
    TOOL,
    "Criterion",
    (
        ResultForm("criterion-estimates", lambda head: _has_estimates(head) and '"std_dev"' in head, read_estimates),
        ResultForm("criterion-change", lambda head: _has_estimates(head) and '"std_dev"' not in head, read_change),
        ResultForm("criterion-benchmark-json", lambda head: has_keys(head, "group_id", "full_id"), read_benchmark),
        ResultForm(
            "criterion-sample-json", lambda head: has_keys(head, "sampling_mode", "iters", "times"), read_sample
        ),
        ResultForm(
            "cargo-criterion-messages",
            lambda head: '"reason":"benchmark-complete"' in head or '"reason":"group-complete"' in head,
            read_messages,
        ),
        ResultForm("criterion-text", lambda head: re.search(rf"time:   {_RANGE}", head) is not None, read_text),
        ResultForm("cargo-bench-text", lambda head: _IS_BENCHER.search(head) is not None, read_bencher),
    ),
    ("time_typical_ns", "time_slope_ns", "time_mean_ns", "time_per_op_ns"),
)
