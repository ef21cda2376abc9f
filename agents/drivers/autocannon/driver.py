"""autocannon: load from Node.js, closed-loop unless it has a rate."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar, Literal

from pydantic import Field, model_validator

from agents.base.command import Command
from agents.base.rights import Rights
from agents.drivers.autocannon.json_report import FORMAT, read_json
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
    only_program,
    whole_seconds,
)
from agents.drivers.base.http_tool import HttpTool
from agents.formats.report_format import ReportFormat, only
from agents.results.report import LatencyBasis, LoadModel, LoadReport


class Autocannon(HttpTool):
    """autocannon. It never checks certificates, and its latency has no decimals: 0 means below 1 ms.

    With `offered_rate_rps` it corrects its latency for requests that could not be sent in time; a phase then takes
    about a second longer than asked.
    """

    formats: ClassVar[tuple[ReportFormat, ...]] = only(FORMAT, read_json)
    grammar: ClassVar[CommandGrammar | None] = Grammar(
        ("autocannon",),
        {
            **dict.fromkeys(("-c", "--connections"), "connections"),
            **dict.fromkeys(("-d", "--duration"), "duration"),
            **dict.fromkeys(("-w", "--workers"), "threads"),
            **dict.fromkeys(("-R", "--overallRate"), "rate"),
        },
        frozenset(
            (
                "-p",
                "-a",
                "-L",
                "-S",
                "-m",
                "-t",
                "-T",
                "-b",
                "-F",
                "-i",
                "-H",
                "--headers",
                "--har",
                "-B",
                "-M",
                "-O",
                "-D",
                "-s",
                "-E",
                "--body",
                "--method",
            )
        ),
    )
    rate_option: ClassVar[str] = "offered_rate_rps"
    concurrency_option: ClassVar[str] = "connections"
    divided: ClassVar[Mapping[str, str]] = {"connections": "connections", "offered_rate_rps": "requests/s"}
    version_pattern: ClassVar[re.Pattern[str]] = re.compile(r"^autocannon v(\S{1,40})", re.ASCII | re.MULTILINE)
    install: ClassVar[str] = "install it with npm install -g autocannon"

    rights: ClassVar[Rights] = only_program("autocannon", data=("headers", "body"))

    kind: Literal["autocannon"] = "autocannon"
    connections: int = Field(ge=1, le=100_000)
    offered_rate_rps: Rate | None = None
    pipelining: int = Field(1, ge=1, le=1000)
    workers: int = Field(0, ge=0, le=256)
    """Threads that make the load; 0 is the main thread alone."""
    method: Method = "GET"
    headers: Headers = Field(default_factory=dict)
    body: Body = ""
    timeout_s: Timeout = 10
    binary: Binary = "autocannon"

    @model_validator(mode="after")
    def _one_rate(self) -> Autocannon:
        if self.workers and self.offered_rate_rps:
            raise ValueError("autocannon gives every worker the whole rate: with offered_rate_rps, set no workers")
        return self

    @property
    def load_model(self) -> LoadModel:
        return "open" if self.offered_rate_rps else "closed"

    @property
    def latency_basis(self) -> LatencyBasis:
        return "response_time" if self.offered_rate_rps else "service_time"

    def command(self, target: Target, duration_s: float) -> Command:
        """The command line. PlanError when the duration is not whole seconds or the URL is not HTTP."""
        seconds = whole_seconds(self.kind, duration_s)
        argv = [self.binary, "--json", "--no-progress", "-c", str(self.connections), "-d", str(seconds)]
        argv += ["-t", str(self.timeout_s), "-m", self.method]
        if self.pipelining > 1:
            argv += ["-p", str(self.pipelining)]
        if self.workers:
            argv += ["-w", str(self.workers)]
        if self.offered_rate_rps:
            argv += ["-R", str(self.offered_rate_rps)]
        if self.body:
            argv += ["-i", BODY_NAME]
        for name, value in self.headers.items():
            argv += ["-H", f"{name}={value}"]
        return Command((*argv, checked_url(target)), timeout_s=seconds + self.timeout_s + MARGIN_S)

    def parse(self, output: str) -> LoadReport:
        return replace(
            read_json(output),
            connections=self.connections,
            threads=self.workers or None,
            load_model=self.load_model,
            latency_basis=self.latency_basis,
            offered_rate_rps=None if self.offered_rate_rps is None else float(self.offered_rate_rps),
        )
