"""`go test -bench`, as text or through -json: lines of one name are repetitions.

Source: Go 1.26, testing/benchmark.go.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from agents.base.errors import ParseError
from agents.readers.base.json_node import Node, decode
from agents.readers.base.named_result import NamedResult, Readout, Repetitions
from agents.readers.base.numbers import mean, number
from agents.readers.base.result_reader import MAX_CHARS, ResultForm, ResultReader, Source, nothing_in

TOOL = "go-bench"
_ROW = re.compile(r"(Benchmark\S{0,500})\s+([0-9]{1,15})\s+(\S.{0,2000})")
_PAIR = re.compile(r"(\S{1,40})\s+(\S{1,100})(?:\s+|$)")
_FAILED = re.compile(r"\s{0,40}--- FAIL: (Benchmark\S{0,500}?)(?:-[0-9]{1,6})?(?: \(.{0,40}\))?\s{0,9}")
_FAILED_PACKAGE = re.compile(r"FAIL\t(\S{1,500})(?:[\t ].{0,200})?")
_CPUS = re.compile(r"(.{1,500}?)-([0-9]{1,6})")
_UNITS = {
    "ns/op": ("time_per_op_ns", 1.0),
    "MB/s": ("bytes_per_s", 1e6),
    "B/op": ("alloc_bytes_per_op", 1.0),
    "allocs/op": ("allocs_per_op", 1.0),
}
_ABOUT = re.compile(r"(goos|goarch|cpu): (.{1,200})")


@dataclass
class _Lines:
    """The lines of one benchmark."""

    params: dict[str, object]
    iterations: list[int] = field(default_factory=list)
    values: dict[str, list[float]] = field(default_factory=dict)


class _Output:
    def __init__(self) -> None:
        self.benchmarks: dict[tuple[str, str, str], _Lines] = {}
        self.rows: list[tuple[re.Match[str], str | None, int]] = []
        self.failed: dict[str, None] = {}
        self.failed_packages: dict[str, None] = {}
        self.context: dict[str, str] = {}
        self._package: str | None = None

    def take(self, line: str, place: int) -> None:
        if match := _ROW.fullmatch(line):
            self.rows.append((match, self._package, place))
        elif line.startswith("pkg: "):
            self._package = line[5:].strip()
        elif match := _FAILED.fullmatch(line):
            self.failed[match[1]] = None
        elif match := _FAILED_PACKAGE.fullmatch(line):
            self.failed_packages[match[1]] = None
        elif match := _ABOUT.fullmatch(line):
            self.context[match[1]] = match[2].strip()

    def end(self) -> None:
        """All lines are there: a number at the end of a name is known to be one of CPUs, or of the name."""
        suffixes = _suffixes([match[1] for match, _, _ in self.rows])
        for match, package, place in self.rows:
            self._row(match, package, place, suffixes)

    def _row(self, match: re.Match[str], package: str | None, place: int, suffixes: set[int] | None) -> None:
        pairs = _PAIR.findall(match[3])
        if not pairs or "".join(a + b for a, b in pairs) != re.sub(r"\s", "", match[3]):
            return  # a log line of the benchmark's own
        name, cpus = match[1], 1
        if (suffix := _CPUS.fullmatch(name)) and (suffixes is None or int(suffix[2]) in suffixes):
            name, cpus = suffix[1], int(suffix[2])
        key = (package or "", name, str(cpus))
        if key not in self.benchmarks:
            params: dict[str, object] = {"package": package, "gomaxprocs": cpus}
            for part in name.split("/")[1:]:
                option, equals, value = part.partition("=")
                if equals and option and option not in params:
                    params[option] = value
            self.benchmarks[key] = _Lines(params)
        one = self.benchmarks[key]
        for value, unit in pairs:
            figure, factor = _UNITS.get(unit, (unit, 1.0))
            one.values.setdefault(figure, []).append(number(value, unit, place) * factor)
        one.iterations.append(int(match[2]))


def _suffixes(names: Sequence[str]) -> set[int] | None:
    """The numbers of CPUs that names end with, None = any number is one.

    Go writes none of them where it is 1, so that `size-10` may then be a name. A function's own name has no hyphen.
    """
    functions = [_CPUS.fullmatch(name) for name in names if "/" not in name]
    if functions:
        return {int(suffix[2]) for suffix in functions if suffix}
    if all(_CPUS.fullmatch(name) for name in names):
        return None
    bare = {name for name in names if not _CPUS.fullmatch(name)}
    return {int(suffix[2]) for name in names if (suffix := _CPUS.fullmatch(name)) and suffix[1] in bare}


def read_text(source: Source) -> Readout:
    """The lines of go test -bench. Raises ParseError."""
    if len(source.text) > MAX_CHARS:
        raise ParseError(f"the text has {len(source.text)} characters; at most {MAX_CHARS} are read", line=1)
    output = _Output()
    for place, line in enumerate(source.text.split("\n"), 1):
        if len(line) <= 4000:
            output.take(line.rstrip(), place)
    return _readout("go-bench-text", output)


def read_json(source: Source) -> Readout:
    """The events of go test -json -bench, put together to its text. Raises ParseError."""
    if len(source.text) > MAX_CHARS:
        raise ParseError(f"the text has {len(source.text)} characters; at most {MAX_CHARS} are read", line=1)
    said, at = [], 0
    for place, line in enumerate(source.text.split("\n"), 1):
        if line.startswith("{"):
            event = Node(decode(source.text, at, "go test -json")[0], f"line {place}")
            said.append(event.known_text("Output") or "")
        at += len(line) + 1
    output = _Output()
    for place, line in enumerate("".join(said).split("\n"), 1):
        if len(line) <= 4000:
            output.take(line.rstrip(), place)
    return _readout("go-bench-json", output)


def _readout(form: str, output: _Output) -> Readout:
    output.end()
    if not output.benchmarks and not output.failed and not output.failed_packages:
        raise nothing_in("line of a benchmark", "go test -bench")
    results = tuple(_result(name, one) for (_, name, _), one in output.benchmarks.items())
    beside: dict[str, object] = {}
    for key, found in (("failed", output.failed), ("failed_packages", output.failed_packages)):
        if found:
            beside[key] = list(found)
    if output.context:
        beside["context"] = output.context
    return Readout(TOOL, form, results, None, beside, "" if results else "no benchmark was completed")


def _result(name: str, one: _Lines) -> NamedResult:
    known = {figure for figure, _ in _UNITS.values()}
    figures: dict[str, object] = {figure: mean(values) for figure, values in one.values.items() if figure in known}
    own = {unit: mean(values) for unit, values in one.values.items() if unit not in known}
    if own:
        figures["custom"] = own
    repetitions = Repetitions("count", len(one.iterations), "", one.values, one.iterations)
    return NamedResult(name, figures, one.params, repetitions)


def _is_text(head: str) -> bool:
    return re.search(r"^Benchmark\S{0,500}\s+[0-9]{1,15}\s+\S+ ns/op", head, re.MULTILINE) is not None


GO_BENCH = ResultReader(
    TOOL,
    "go test -bench",
    (
        ResultForm("go-bench-text", _is_text, read_text),
        ResultForm(
            "go-bench-json",
            lambda head: re.search(r'^\{.{0,200}"Action": ?"', head, re.MULTILINE) is not None,
            read_json,
        ),
    ),
    ("time_per_op_ns", "bytes_per_s"),
)
