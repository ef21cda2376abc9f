"""YCSB's text and JSON: a result for each operation, microseconds made milliseconds.

`READ` counts from when the client called, `Intended-READ` from when the call was due. Source: YCSB 0.17.0,
site.ycsb.measurements (OneMeasurementHdrHistogram, OneMeasurementHistogram, the exporters).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from agents.base.errors import ParseError
from agents.readers.base.json_node import Node, decode, first_names
from agents.readers.base.named_result import NamedResult, Readout
from agents.readers.base.numbers import known_number, over, percentile_name
from agents.readers.base.result_reader import MAX_CHARS, ResultForm, ResultReader, Source, nothing_in

_LINE = re.compile(r"\[([^\]\[]{1,200})\], ?(.{1,200}?), ?([^,\s]{1,60})\s{0,9}")
_STATUS = re.compile(
    r"[0-9-]{10} [0-9:.]{8,20} ([0-9]{1,9}) sec: ([0-9]{1,15}) operations;(?: (\S{1,40}) current ops/sec;)?"
)
_ERROR = re.compile(
    r"(?:Exception in thread .{0,200}? )?((?:[\w$]{1,100}\.){1,20}[\w$]{0,100}(?:Exception|Error)(?::.{0,1000})?)"
)
_VERSION = re.compile(r"YCSB Client ([0-9][\w.-]{0,40})\s{0,9}")
_LATENCY = re.compile(r"(Average|Min|Max|[0-9.]{1,9}(?:st|nd|rd|th)?Percentile)Latency\((us|ms)\)")
_MOMENT = {"Average": "mean", "Min": "min", "Max": "max"}
_INTENDED = re.compile(r"Command line: .{0,4000}\bmeasurement\.interval=intended\b")
_DUE = "from when the request was due"
_RAW = {
    "Total Operations": "operations",
    "Average": "latency_mean_ms",
    "Min": "latency_min_ms",
    "Max": "latency_max_ms",
    **{f"p{name}": f"latency_p{name}_ms" for name in ("1", "5", "50", "90", "95", "99", "99.9", "99.99")},
}
"""What measurementtype=raw calls its figures, all in microseconds."""
_CLEAN_UP = {"CLEANUP", "HdrCLEANUP", "BucketCLEANUP"}
_GOOD = {"OK", "BATCHED_OK"}


@dataclass
class _Operation:
    figures: dict[str, object] = field(default_factory=dict)
    returns: dict[str, int] = field(default_factory=dict)


class _Measured:
    """What was measured, by operation in the order of the file."""

    def __init__(self, *, intended: bool = False) -> None:
        self.intended = intended
        self.operations: dict[str, _Operation] = {}

    def take(self, operation: str, what: str, value: str, line: int | None) -> None:
        """One measurement; those of the JVM's collector and the bars of histograms are passed over."""
        name, figure = self._named(operation, what, value, line)
        if not name:
            return
        found = self.operations.setdefault(operation, _Operation())
        if name in found.figures:
            raise ParseError(
                f"[{operation}] {what} is printed twice; are these two runs?", hint="Give one run in a file.", line=line
            )
        if name.startswith("Return="):
            found.returns[name.removeprefix("Return=")] = int(figure or 0)
        else:
            found.figures[name] = figure

    def _named(self, operation: str, what: str, value: str, line: int | None) -> tuple[str, float | None]:
        about = f"[{operation}] {what}"
        if operation == "OVERALL":
            if what == "RunTime(ms)":
                return "duration_s", over(known_number(value, about, line), 1e3)
            if what == "Throughput(ops/sec)":
                return "throughput_ops_per_s", known_number(value, about, line)
            return "", None
        if what in _RAW:
            name = _RAW[what]
            value_us = known_number(value, about, line)
            return name, value_us if name == "operations" else over(value_us, 1e3)
        if what == "Operations" or what.startswith("Return="):
            count = known_number(value, about, line)
            if count is None or count < 0 or count != int(count):
                raise ParseError(f"{about} should be a whole number, but it is {value[:60]!r}", line=line)
            return ("operations" if what == "Operations" else what), int(count)
        if match := _LATENCY.fullmatch(what):
            moment = _MOMENT.get(match[1]) or percentile_name(_percent(match[1], line))
            return f"latency_{moment}_ms", over(known_number(value, about, line), 1e3 if match[2] == "us" else 1.0)
        return "", None

    def results(self) -> list[NamedResult]:
        """A result for each operation."""
        return [_result(name, operation, intended=self.intended) for name, operation in self.operations.items()]


def _percent(name: str, line: int | None) -> float:
    try:
        percent = float(re.sub(r"(?:st|nd|rd|th)?Percentile$", "", name))
    except ValueError:
        percent = -1
    if not 0 <= percent <= 100:
        raise ParseError(f"{name[:60]} is no percentile", line=line)
    return percent


def _result(name: str, operation: _Operation, *, intended: bool) -> NamedResult:
    figures = dict(operation.figures)
    if operation.returns:
        bad = sum(count for status, count in operation.returns.items() if status not in _GOOD)
        figures |= {"returns": dict(operation.returns), "errors_total": bad}
    plain = name.removeprefix("Intended-")
    why = ""
    if name == "OVERALL" and not figures.get("throughput_ops_per_s"):
        why = "no operation was completed"
    elif plain.endswith("-FAILED"):
        why = "these operations failed"
    elif operation.returns and not any(status in _GOOD for status in operation.returns):
        why = "every operation failed"
    basis = _DUE if name != plain or (intended and name != "OVERALL") else ""
    return NamedResult(name, figures, basis=basis, why=why, optional=plain in _CLEAN_UP)


def read_text(source: Source) -> Readout:
    """The lines `[OPERATION], measurement, value`, with status lines beside them. Raises ParseError."""
    if len(source.text) > MAX_CHARS:
        raise ParseError(f"the text has {len(source.text)} characters; a report of YCSB has far fewer", line=1)
    measured = _Measured(intended=any(map(_INTENDED.match, source.head.split("\n"))))
    error = version = None
    status: list[dict[str, object]] = []
    for place, line in enumerate(source.text.split("\n"), 1):
        if match := _STATUS.match(line):
            rate = match[3]
            status.append(
                {
                    "t_s": int(match[1]),
                    "operations": int(match[2]),
                    "ops_per_s": _rate(rate) if rate else None,
                }
            )
        elif len(line) > 4000:
            continue
        elif match := _LINE.fullmatch(line):
            measured.take(match[1], match[2], match[3], place)
        elif error is None and (match := _ERROR.match(line)):
            error = match[1].strip()
        elif version is None and (match := _VERSION.fullmatch(line)):
            version = match[1]
    return _readout("ycsb-text", measured, version, status, error)


def _rate(text: str) -> float | None:
    try:
        return known_number(text, "current ops/sec")
    except ParseError:  # a locale's own number, or what the terminal made of the sign for infinity
        return None


def read_json(source: Source) -> Readout:
    """What JSONMeasurementsExporter and JSONArrayMeasurementsExporter write. Raises ParseError."""
    measured = _Measured()
    for node in _measurements(source.text):
        value = node.at("value").value if node.find("value") is not None else None
        shown = "nan" if value is None else value if isinstance(value, str) else repr(node.at("value").number())
        measured.take(node.at("metric").text(), node.at("measurement").text(), shown, None)
    return _readout("ycsb-json", measured, None, [], None)


def _measurements(text: str) -> list[Node]:
    """The objects of a list, or one after another without anything between them."""
    if len(text) > MAX_CHARS:
        raise ParseError(f"the text has {len(text)} characters; a report of YCSB has far fewer", line=1)
    found: list[Node] = []
    start = re.search(r"^[ \t]*[\[{]", text, re.MULTILINE)
    at = start.end() - 1 if start else len(text)
    while at < len(text):
        value, at = decode(text, at, "YCSB")
        node = Node(value, f"measurement {len(found) + 1}")
        found += node.elements() if isinstance(value, list) else [node]
        while at < len(text) and text[at] in " \t\r\n,":
            at += 1
    return found


def _readout(
    form: str, measured: _Measured, version: str | None, status: list[dict[str, object]], error: str | None
) -> Readout:
    overall = measured.operations.get("OVERALL")
    if (overall is None or "throughput_ops_per_s" not in overall.figures) and error is None:
        raise nothing_in("[OVERALL] throughput", "YCSB")
    beside: dict[str, object] = {"status_lines": status} if status else {}
    if error is not None:
        beside["error"] = error
    results = tuple(measured.results())
    why = next((one.why for one in results if one.benchmark == "OVERALL"), "")
    return Readout("ycsb", form, results, version, beside, (error or why) if why or not results else "")


YCSB = ResultReader(
    "ycsb",
    "YCSB",
    (
        ResultForm("ycsb-text", lambda head: "[OVERALL], " in head or "\nYCSB Client " in head[:2000], read_text),
        ResultForm(
            "ycsb-json",
            lambda head: (
                {"metric", "measurement", "value"} <= first_names(head)
                or re.match(r'\s*\{\s*"metric"\s*:\s*"OVERALL"', head) is not None
            ),
            read_json,
        ),
    ),
    ("throughput_ops_per_s", "latency_mean_ms"),
)
