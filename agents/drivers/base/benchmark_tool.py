"""A load tool for something else than HTTP: its output is read by the reader of its result files."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from agents.base.command import Command
from agents.base.errors import PlanError
from agents.drivers.base.command_line import CommandGrammar
from agents.drivers.base.driver import Driver, Target
from agents.drivers.base.http_options import version_in, version_script
from agents.drivers.base.named_report import Part, name_of_part, named_report
from agents.formats.report_format import ReportFormat
from agents.readers.base.figure_kinds import figure_kind
from agents.readers.base.named_result import NamedResult, Readout
from agents.readers.base.result_reader import ResultForm, ResultReader, Source
from agents.results.report import Direction, LatencyBasis, LoadModel, LoadReport

Word = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}$")]
"""A name that no tool reads as an option, a path or a connection string."""

APART = '>prepare.txt 2>&1 || { status=$?; tail -c 4000 prepare.txt >&2; exit "$status"; }'
"""Behind a command that makes data before the load: what it says is no report, and is heard only when it fails."""

_HOST = re.compile(r"[A-Za-z0-9:][A-Za-z0-9._:-]{0,252}")
_PORT = re.compile(r"[0-9]{1,5}|PORT")


class BenchmarkTool(Driver):
    """A program named by `binary`, whose output `results` reads; its kind is that of the reader.

    Its rates have the tool's own unit: transactions/s, IOPS, bytes/s. The first of the reader's `headline` figures that
    a report has stands for the run, and is watched and judged unasked.
    """

    formats: ClassVar[tuple[ReportFormat, ...]] = ()
    grammar: ClassVar[CommandGrammar | None] = None
    rate_option: ClassVar[str] = ""
    """Searches for a rate speak of requests/s, which none of these tools offers."""
    results: ClassVar[ResultReader]
    """What reads its output, first in the form that `command` makes."""
    stops_at_failures: ClassVar[bool] = False
    """It ends, or says so in its results, when something fails: without such a word nothing did."""
    version_argument: ClassVar[str] = "--version"
    version_pattern: ClassVar[re.Pattern[str]]
    """Group 1 is the version."""
    install: ClassVar[str]
    """How to get the tool, as the end of a sentence."""

    if TYPE_CHECKING:
        binary: str

    @property
    def form(self) -> str:
        return self.result_form.name

    @property
    def result_form(self) -> ResultForm:
        """The form of what `command` prints."""
        return self.results.forms[0]

    @property
    def load_model(self) -> LoadModel:
        return "closed"

    @property
    def latency_basis(self) -> LatencyBasis:
        return "service_time"

    def headlines(self) -> Sequence[str]:
        return self.results.headline[:1]

    def own_metrics(self) -> Iterable[tuple[str, str, Direction]]:
        for name in self.headlines():
            kind = figure_kind(name.rpartition(".")[2])
            if kind is not None and kind.direction is not None and name not in ("throughput_rps", "bytes_per_s"):
                yield name, kind.unit, kind.direction

    def version_command(self) -> Command:
        return version_script(self.binary, self.version_argument, self.install)

    def parse_version(self, output: bytes) -> str:
        return version_in(output, self.version_pattern, self.binary, self.kind)

    def whole_of(self, results: Sequence[NamedResult]) -> NamedResult | None:
        """The result of all that was done; None where there are only parts of it."""
        return results[0] if len(results) == 1 else None

    def part_name(self, result: NamedResult) -> str:
        """What the figures' names of a part begin with."""
        return name_of_part(result.benchmark or "")

    def parse(self, output: str) -> LoadReport:
        """The report in the tool's output. Raises ParseError when it is not whole."""
        return self.report_of(self.result_form.read(Source(self.report_in(output.replace("\r\n", "\n")))))

    def report_of(self, readout: Readout) -> LoadReport:
        """The load report of what a reader found in the tool's output or file."""
        results = [one for one in readout.results if not one.optional]
        whole = self.whole_of(results)
        report = named_report(
            readout,
            whole,
            self._parts([one for one in results if one is not whole]),
            load_model=self.load_model,
            latency_basis=self.latency_basis,
            stops_at_failures=self.stops_at_failures,
        )
        first = {name: place for place, name in enumerate(self.headlines())}
        own = sorted(report.own_metrics, key=lambda metric: first.get(metric.name, len(first)))
        return self.completed(replace(report, tool=self.kind, own_metrics=tuple(own)))

    def _parts(self, results: Sequence[NamedResult]) -> list[Part]:
        """The results with names of their own: a second one of the same name gets its number."""
        parts: list[Part] = []
        seen: Counter[str] = Counter()
        for one in results:
            name = self.part_name(one)
            seen[name] += 1
            parts.append(Part(f"{name}_{seen[name]}" if seen[name] > 1 else name, one))
        return parts

    def report_in(self, output: str) -> str:
        """The output, first what it printed to its first output, as the reader of its files takes it."""
        return output

    def completed(self, report: LoadReport) -> LoadReport:
        """The report with what only the options know."""
        return report


def server_at(target: Target) -> tuple[str, str]:
    """Address and port of the target, each as an argument of its own. PlanError: it is none that tools take."""
    if not _HOST.fullmatch(target.host) or not _PORT.fullmatch(target.port):
        raise PlanError(f"'{target.url[:200]}' has no address and port that the load tool could connect to")
    return target.host, target.port
