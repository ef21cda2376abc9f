"""vegeta: open-loop load at an offered rate."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar, Literal

from pydantic import Field

from agents.base.command import Command, script
from agents.base.rights import Rights
from agents.drivers.base.command_line import CommandGrammar, Grammar
from agents.drivers.base.driver import Target
from agents.drivers.base.http_options import (
    BODY_NAME,
    MARGIN_S,
    Binary,
    Body,
    Headers,
    Method,
    Rate,
    Timeout,
    checked_url,
    header_options,
    only_program,
    whole_seconds,
)
from agents.drivers.base.http_tool import HttpTool
from agents.drivers.vegeta.json_report import FORMAT, read_json
from agents.formats.report_format import ReportFormat, only
from agents.results.report import LatencyBasis, LoadModel, LoadReport

# The target comes on standard input; the results are counted after the load, so that counting does not disturb it.
_ATTACK = """
vegeta=$1 buckets=$2 target=$3; shift 3
trap 'rm -f results.bin' EXIT
printf '%s\\n' "$target" | "$vegeta" attack "$@" -output=results.bin || exit
"$vegeta" report -type=json -buckets="$buckets" results.bin
"""


def _buckets() -> str:
    """Bounds that grow by 5 %, from 10 us to 60 s: a percentile read from them is at most 5 % too high."""
    bounds_us, bound = [0], 10.0
    while bound < 60e6:
        if round(bound) > bounds_us[-1]:
            bounds_us.append(round(bound))
        bound *= 1.05
    return "[" + ",".join(f"{bound}us" for bound in bounds_us) + "]"


class Vegeta(HttpTool):
    """vegeta. Requests start when they are due, with as many workers as that takes.

    `max_workers` bounds them; a request that then waits for a worker has this wait in no figure, so its latency counts
    from when it was sent.
    """

    load_model: ClassVar[LoadModel] = "open"
    formats: ClassVar[tuple[ReportFormat, ...]] = only(FORMAT, read_json)
    grammar: ClassVar[CommandGrammar | None] = Grammar(
        ("vegeta",),
        {"-rate": "rate", "--rate": "rate", "-duration": "duration", "--duration": "duration"},
        frozenset(
            (
                "-body",
                "-header",
                "-targets",
                "-timeout",
                "-connections",
                "-workers",
                "-max-workers",
                "-output",
                "-name",
                "-format",
            )
        ),
        attached=False,
    )
    rate_option: ClassVar[str] = "offered_rate_rps"
    concurrency_option: ClassVar[str] = ""
    divided: ClassVar[Mapping[str, str]] = {"offered_rate_rps": "requests/s"}
    version_argument: ClassVar[str] = "-version"
    version_pattern: ClassVar[re.Pattern[str]] = re.compile(r"^Version: v?(\S{1,40})", re.ASCII | re.MULTILINE)
    install: ClassVar[str] = "install it from its releases, version 12 or later"

    rights: ClassVar[Rights] = only_program("vegeta", data=("headers", "body"))

    kind: Literal["vegeta"] = "vegeta"
    offered_rate_rps: Rate
    connections: int = Field(10_000, ge=1, le=1_000_000)
    """Idle connections that are kept; more are opened when they are needed."""
    max_workers: int | None = Field(None, ge=1, le=1_000_000)
    http_version: Literal["1.1", "2"] = "1.1"
    keep_alive: bool = True
    insecure: bool = False
    """Accept any certificate."""
    method: Method = "GET"
    headers: Headers = Field(default_factory=dict)
    body: Body = ""
    timeout_s: Timeout = 30
    binary: Binary = "vegeta"

    @property
    def latency_basis(self) -> LatencyBasis:
        return "response_time" if self.max_workers is None else "service_time"

    def command(self, target: Target, duration_s: float) -> Command:
        """The command line. PlanError when the duration is not whole seconds or the URL is not HTTP."""
        seconds = whole_seconds(self.kind, duration_s)
        argv = [f"-rate={self.offered_rate_rps}/1s", f"-duration={seconds}s", f"-timeout={self.timeout_s}s"]
        argv += [f"-connections={self.connections}", "-redirects=-1", f"-keepalive={_flag(self.keep_alive)}"]
        argv += [f"-http2={_flag(self.http_version == '2')}", f"-insecure={_flag(self.insecure)}"]
        if self.max_workers is not None:
            argv.append(f"-max-workers={self.max_workers}")
        if self.body:
            argv.append(f"-body={BODY_NAME}")
        argv += [f"-header={header}" for header in header_options(self.headers)[1::2]]
        line = f"{self.method} {checked_url(target)}"
        timeout_s = seconds + self.timeout_s + 2 * MARGIN_S
        return replace(script(_ATTACK, self.binary, _buckets(), line, *argv), timeout_s=timeout_s)

    def parse(self, output: str) -> LoadReport:
        return replace(
            read_json(output), offered_rate_rps=float(self.offered_rate_rps), latency_basis=self.latency_basis
        )


def _flag(value: bool) -> str:
    return "true" if value else "false"
