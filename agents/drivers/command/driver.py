"""Any benchmark with its own output: its command line, and where its figures stand in what it prints."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, ClassVar, Literal
from urllib.parse import urlsplit

from pydantic import Field, StringConstraints, model_validator

from agents.base.command import Command, script
from agents.base.errors import ParseError
from agents.base.rights import Rights
from agents.drivers.base.command_line import CommandGrammar
from agents.drivers.base.driver import Driver, Target
from agents.drivers.base.http_options import MARGIN_S, Connections, Rate, checked_url
from agents.drivers.command import figures
from agents.drivers.command.bounds import check_bounds
from agents.drivers.command.figure_source import SEARCH_S, FigureSource
from agents.formats.json_document import read_object
from agents.formats.report_format import ReportFormat, only
from agents.results.report import Direction, LatencyBasis, LoadModel, LoadReport, OwnMetric

Argument = Annotated[str, StringConstraints(max_length=4096, pattern=r"^[^\x00]*$", strip_whitespace=False)]
FileName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$")]
FileText = Annotated[str, StringConstraints(max_length=256_000, strip_whitespace=False)]
FigureName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_.]{0,59}$")]

PLACEHOLDERS = ("url", "scheme", "host", "port", "path", "duration_s", "connections", "offered_rate_rps")
_PLACEHOLDER = re.compile(r"\{([a-z_]{1,40})\}")
_VERSION = """
command -v "$1" >/dev/null || { echo "there is no program $1 on this host" >&2; exit 1; }
shift
"$@" 2>&1
"""


class CommandDriver(Driver):
    """A command of your own, run on the driver host in a directory that holds `scripts`; it needs the role admin.

    In `argv`, {url} {scheme} {host} {port} {path} {duration_s} {connections} {offered_rate_rps} are filled in.
    `figures` says where each figure stands in the output: `throughput_rps`, `requests`, `duration_s`,
    `latency_mean_ms`, `latency_p99_ms`, `errors_status`, or a name of your own with `unit` and `direction`. Without
    them the command prints one JSON object with these names itself.
    """

    formats: ClassVar[tuple[ReportFormat, ...]] = only(figures.FORMAT, figures.read_json)
    grammar: ClassVar[CommandGrammar | None] = None
    rate_option: ClassVar[str] = "offered_rate_rps"
    concurrency_option: ClassVar[str] = "connections"
    divided: ClassVar[Mapping[str, str]] = {"connections": "connections", "offered_rate_rps": "requests/s"}

    rights: ClassVar[Rights] = Rights(does="nothing", whole="it runs a command of its author on the driver host")

    kind: Literal["command"] = "command"
    argv: tuple[Argument, ...] = Field(
        min_length=1,
        max_length=200,
        description="The command line; blanks and quotation marks part its words as in a shell. Filled in: "
        + " ".join(f"{{{name}}}" for name in PLACEHOLDERS),
    )
    scripts: dict[FileName, FileText] = Field(
        default_factory=dict, max_length=50, description="Files that the command needs in its directory, name: text."
    )
    figures: dict[FigureName, FigureSource] = Field(
        default_factory=dict,
        max_length=100,
        description="Where each figure stands in the output, for example throughput_rps: {pattern: 'rate: ([0-9.]+)'} "
        "or latency_p99_ms: {json_path: latency.p99, scale: 1000}. A name of your own needs unit and direction.",
    )
    connections: Connections | None = None
    offered_rate_rps: Rate | None = None
    """It follows a schedule of this rate (open model). Without it, it waits for its answers."""
    from_due_time: bool = False
    """Its latency counts from when a request was due, not from when it was sent."""
    fixed_work: bool = False
    """It does an amount of work: the duration of a phase is only the upper bound."""
    version: tuple[Argument, ...] | None = Field(None, min_length=1, max_length=20)
    """Prints the version of the benchmark; without it the program's path stands for it."""

    @model_validator(mode="after")
    def _makes_sense(self) -> CommandDriver:
        if any(not argv[0] or argv[0].startswith("-") for argv in (self.argv, self.version or self.argv)):
            raise ValueError("the first argument is the program to run")
        names = [name for argument in self.argv for name in _PLACEHOLDER.findall(argument)]
        if unknown := [name for name in names if name not in PLACEHOLDERS]:
            known = ", ".join(f"{{{name}}}" for name in PLACEHOLDERS)
            raise ValueError(f"argv has {{{unknown[0]}}}; there are {known}. Shell text belongs into a file of scripts")
        for name in ("connections", "offered_rate_rps"):
            if name in names and getattr(self, name) is None:
                raise ValueError(f"argv has {{{name}}}, so give {name}")
        if self.from_due_time and self.offered_rate_rps is None:
            raise ValueError("from_due_time needs a schedule: give offered_rate_rps")
        for name, source in self.figures.items():
            if not figures.is_known(name) and not (source.unit and source.direction):
                raise ValueError(f"{name} is a figure of your own: give its unit and direction (higher or lower)")
            if figures.is_known(name) and (source.unit or source.direction):
                raise ValueError(f"BenchHub knows unit and direction of {name}: its unit is in its name, use scale")
        return self

    def why_no_rate(self) -> str:
        if self._tells("offered_rate_rps"):
            return ""
        return "the command cannot be told to offer a rate: its argv has no {offered_rate_rps}."

    def why_no_concurrency(self) -> str:
        if self._tells("connections"):
            return ""
        return "the command cannot be told how many connections to open: its argv has no {connections}."

    def why_indivisible(self) -> str:
        if self.connections is None and self.offered_rate_rps is None:
            return "it has neither connections nor offered_rate_rps"
        return ""

    def headlines(self) -> Sequence[str]:
        """Its throughput, or its first figure of its own where the output has no such figure."""
        if not self.figures or {"throughput_rps", "requests"} & self.figures.keys():
            return super().headlines()
        return [name for name, source in self.figures.items() if source.direction is not None][:1]

    def own_metrics(self) -> Iterable[tuple[str, str, Direction]]:
        return [
            (name, source.unit, source.direction)
            for name, source in self.figures.items()
            if source.direction is not None
        ]

    def _tells(self, option: str) -> bool:
        return any(f"{{{option}}}" in argument for argument in self.argv)

    @property
    def may_end_early(self) -> bool:
        return self.fixed_work

    @property
    def load_model(self) -> LoadModel:
        return "open" if self.offered_rate_rps else "closed"

    @property
    def latency_basis(self) -> LatencyBasis:
        return "response_time" if self.from_due_time else "service_time"

    def files(self) -> dict[str, str]:
        return dict(self.scripts)

    def version_command(self) -> Command:
        return script(_VERSION, self.argv[0], *(self.version or ("command", "-v", self.argv[0])))

    def parse_version(self, output: bytes) -> str:
        lines = output.decode("utf-8", "replace").strip().splitlines()
        if not lines:
            raise ParseError(f"{(self.version or self.argv)[0]} printed no version", line=1)
        return lines[0].strip()[:60]

    def command(self, target: Target, duration_s: float) -> Command:
        """The command line. PlanError when the URL is not HTTP."""
        url = urlsplit(checked_url(target))
        path = url.path or "/"
        values = {
            "url": target.url,
            "scheme": url.scheme,
            "host": target.host,
            "port": target.port or ("443" if url.scheme == "https" else "80"),
            "path": f"{path}?{url.query}" if url.query else path,
            "duration_s": f"{duration_s:g}",
            "connections": str(self.connections),
            "offered_rate_rps": str(self.offered_rate_rps),
        }
        argv = [_PLACEHOLDER.sub(lambda match: values[match[1]], argument) for argument in self.argv]
        return Command(tuple(argv), timeout_s=duration_s + MARGIN_S)

    def parse(self, output: str) -> LoadReport:
        return replace(
            self._found(output) if self.figures else figures.read_json(output),
            load_model=self.load_model,
            latency_basis=self.latency_basis,
            connections=self.connections,
            offered_rate_rps=None if self.offered_rate_rps is None else float(self.offered_rate_rps),
        )

    def _found(self, output: str) -> LoadReport:
        document = None
        if any(source.json_path for source in self.figures.values()):
            document = read_object(output, self.argv[0])
        text = output.replace("\r\n", "\n").replace("\r", "\n")  # progress is often one line over and over
        until_s = time.process_time() + SEARCH_S
        values: dict[str, float] = {}
        own: list[OwnMetric] = []
        for name, source in self.figures.items():
            if document is not None and source.json_path:
                value = source.find_in_json(document)
            else:
                value = source.find_in_text(text, until_s)
            if value is None and not source.optional:
                where = f"at {source.json_path}" if source.json_path else f"like {source.pattern!r}"
                raise ParseError(
                    f"there is no {name} in the output: nothing {where}",
                    hint="Did the command fail, or does it print something else? See its output under Artifacts.",
                    line=1,
                )
            if value is not None and source.direction is not None:
                check_bounds(name, value, source.unit, source.low, source.high)
                own.append(OwnMetric(name, value, source.unit, source.direction))
            elif value is not None:
                values[name] = value
        return figures.report_of(values, own)
