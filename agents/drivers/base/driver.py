"""What every load tool must offer: a command line, and a parser for its output. No SSH here."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, TypeVar
from urllib.parse import urlsplit

from pydantic import ValidationError

from agents.base.command import Command
from agents.base.errors import PlanError
from agents.base.model import first_problem
from agents.base.rights import Guarded
from agents.drivers.base.command_line import CommandGrammar
from agents.formats.report_format import ReportFormat, form_of
from agents.results.report import Direction, LatencyBasis, LoadModel, LoadReport

Reaches = Literal["http", "tcp", "own host"]
"""What a tool's load goes to: pages of a server, the port of a server, or the host that the tool itself is on."""


@dataclass(frozen=True)
class Target:
    """Where the load goes. `url` is complete: scheme, address, port and path; tcp://address:port where no HTTP is."""

    url: str

    @property
    def host(self) -> str:
        """The address alone, of IPv6 without its brackets."""
        return self._host_and_port[0]

    @property
    def port(self) -> str:
        """The port as it is written, "" where there is none: the page of a workload shows SUT:PORT."""
        return self._host_and_port[1]

    @property
    def _host_and_port(self) -> tuple[str, str]:
        netloc = urlsplit(self.url).netloc
        host, colon, port = netloc.rpartition(":")
        if not colon or netloc.endswith("]"):
            host, port = netloc, ""
        return host.removeprefix("[").removesuffix("]"), port


@dataclass(frozen=True)
class Habits:
    """What is known of a tool from its source that decides how far its figures can be trusted.

    `queues_due`: it sends late what it could not send in time; others drop it or open another connection.
    `back_to_back`: each of its connections always waits for one answer, so it asks for all that the server can give.
    `omits_late_answers`: answers that come after its timeout are missing from its latency.
    `thread_rate_sample_ms`: how long it counts for one sample of a thread's rate; None where it has no such samples.
    `timeouts_note`: what its count of timeouts counts, as a sentence, where that is not requests.
    """

    queues_due: bool = False
    back_to_back: bool = False
    omits_late_answers: bool = False
    thread_rate_sample_ms: float | None = None
    timeouts_note: str = ""


@dataclass(frozen=True)
class DerivedFile:
    """A file that `command` makes of the results in the tool's directory, when measuring is over."""

    command: Command
    file: str
    media_type: str


class Driver(Guarded, ABC):
    """A load tool and its options. Registered in `agents.drivers.AnyDriver`."""

    formats: ClassVar[tuple[ReportFormat, ...]]
    """The forms of report that can be read, first the one that `command` makes; none where a reader of files does."""
    grammar: ClassVar[CommandGrammar | None]
    """What reads its command line, where that says what the report does not; None = nothing does."""
    rate_option: ClassVar[str]
    """The option that is the rate of its schedule; "" = it cannot offer a rate of requests."""
    rate_is_per_connection: ClassVar[bool] = False
    concurrency_option: ClassVar[str]
    """The option that says how much it does at once, whose name is the unit as well; "" = something else decides."""
    divided: ClassVar[Mapping[str, str]]
    """The options that make up the load, so that several driver hosts divide them, with their units.

    Threads are none of them: each driver host has CPUs of its own. Nor is what only bounds the tool.
    """
    habits: ClassVar[Habits] = Habits()
    result_file: ClassVar[str] = ""
    """The file, in the command's working directory, that holds the results of a tool that does not print them."""

    kind: str

    @classmethod
    def read(cls, text: str) -> LoadReport:
        """The report in `text`, whichever of its forms it has. Raises ParseError."""
        return form_of(cls.formats, text).read(text)

    @classmethod
    def kind_behind(cls, text: str, command: str) -> str:
        """The kind of the tool that printed a text that was given as this one's: another one may have its name."""
        return str(cls.model_fields["kind"].default)

    @classmethod
    def least_asked_s(cls, nominal_s: float) -> float:
        """The shortest duration that its report calls so many seconds."""
        return nominal_s

    def why_no_rate(self) -> str:
        """Why `rate_option` means nothing with these options, as a sentence; "" when it does."""
        return ""

    def why_no_concurrency(self) -> str:
        """Why `concurrency_option` means nothing with these options, as a sentence; "" when it does."""
        return ""

    def why_indivisible(self) -> str:
        """Why several driver hosts cannot divide the load that these options make; "" when they can."""
        return ""

    def headlines(self) -> Sequence[str]:
        """The figures, by their names in the report, that stand for a run with these options, the first one first."""
        return ("throughput_rps",)

    def own_metrics(self) -> Iterable[tuple[str, str, Direction]]:
        """Name, unit and direction of the figures of its author's own that each report will have."""
        return ()

    @property
    def may_end_early(self) -> bool:
        """Whether the load is an amount of work, so that the phase's duration is only its upper bound."""
        return False

    @property
    def reaches(self) -> Reaches:
        """What its load goes to, with these options; the address of a run is made for that."""
        return "http"

    @property
    def form(self) -> str:
        """The name of the form of report that `command` makes."""
        return self.formats[0].name

    @property
    def prepares(self) -> bool:
        """Whether each warm-up phase begins with the making of its data, so that there must be one."""
        return False

    @property
    def late_start_s(self) -> float:
        """By how much the span from the first request to the last answer may fall short of the phase's duration."""
        return 0.0

    @property
    def max_result_bytes(self) -> int:
        """How large the result file may become."""
        return 0

    def is_progress(self, line: str) -> bool:
        """Whether a line that the tool prints is worth showing while it runs."""
        return False

    def with_option(self, name: str, value: Any, *, refusal: str) -> Self:
        """The tool with another value of an option; PlanError, with `refusal`, when the others do not go with it."""
        try:
            return type(self).model_validate({**self.model_dump(by_alias=True), name: value})
        except ValidationError as error:
            raise PlanError(f"{self.kind} {refusal}: {first_problem(error)[1]}") from error

    def warming_up(self) -> Driver:
        """The tool as it warms the server up; most do it as they measure."""
        return self

    @property
    @abstractmethod
    def load_model(self) -> LoadModel:
        """Whether requests follow a schedule (open) or wait for earlier answers (closed), with these options."""

    @property
    @abstractmethod
    def latency_basis(self) -> LatencyBasis:
        """Whether latency counts from when a request was due (response time) or from when it was sent."""

    @abstractmethod
    def version_command(self) -> Command:
        """Prints the tool's version; used by preflight too: a missing tool fails here and names the package."""

    @abstractmethod
    def parse_version(self, output: bytes) -> str:
        """The version from the output (stdout and stderr) of `version_command`. ParseError when it is another tool."""

    @abstractmethod
    def command(self, target: Target, duration_s: float) -> Command:
        """The command line that puts load on `target` for `duration_s`. Affinity and limits are the launcher's."""

    def files(self) -> dict[str, str]:
        """Files that the command needs in its working directory: relative name -> text."""
        return {}

    @abstractmethod
    def parse(self, output: str) -> LoadReport:
        """The report in `output`, completed by what only the options know (threads, connections, offered rate).

        Raises ParseError when the text is not a whole report of this tool.
        """

    def byproduct(self) -> DerivedFile | None:
        """What is made of the results for people to look at; no figure is read from it."""
        return None

    def parse_results(self, path: Path, printed: LoadReport, on_progress: Callable[[int, int], None]) -> LoadReport:
        """The report in the fetched result file; `printed` is what `parse` made of the output.

        `on_progress` gets the bytes read and the bytes in all; what it raises ends the reading. Raises ParseError.
        """
        return printed


AnyTool = TypeVar("AnyTool", bound=Driver)
