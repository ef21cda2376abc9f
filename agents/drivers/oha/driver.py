"""oha: load over HTTP/1.1 or HTTP/2, closed-loop unless it has a rate."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar, Literal

from pydantic import Field, model_validator

from agents.base.command import Command
from agents.base.rights import Rights
from agents.drivers.base.command_line import CommandGrammar, Grammar
from agents.drivers.base.driver import Habits, Target
from agents.drivers.base.http_options import (
    BODY_NAME,
    MARGIN_S,
    Binary,
    Body,
    Connections,
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
from agents.drivers.oha import reports as oha_reports
from agents.formats.json_document import has_no_object, has_object
from agents.formats.report_format import ReportFormat
from agents.results.report import LatencyBasis, LoadModel, LoadReport


class Oha(HttpTool):
    """oha. With `offered_rate_rps` requests follow a schedule.

    With `latency_correction` their latency counts from when they were due, without it from when they were sent.
    """

    formats: ClassVar[tuple[ReportFormat, ...]] = (
        ReportFormat(oha_reports.JSON_FORMAT, has_object, oha_reports.read_json),
        ReportFormat(oha_reports.TEXT_FORMAT, has_no_object, oha_reports.read_text),
    )
    grammar: ClassVar[CommandGrammar | None] = Grammar(
        ("oha",),
        {"-c": "connections", "-z": "duration", "-q": "rate"},
        frozenset(
            (
                "-n",
                "-p",
                "-m",
                "-H",
                "-t",
                "-A",
                "-d",
                "-D",
                "-T",
                "-a",
                "-x",
                "--output-format",
                "--redirect",
                "--host",
                "-o",
            )
        ),
        corrected_with="--latency-correction",
    )
    rate_option: ClassVar[str] = "offered_rate_rps"
    concurrency_option: ClassVar[str] = "connections"
    divided: ClassVar[Mapping[str, str]] = {"connections": "connections", "offered_rate_rps": "requests/s"}
    habits: ClassVar[Habits] = Habits(queues_due=True)
    version_pattern: ClassVar[re.Pattern[str]] = re.compile(r"^oha (\S{1,40})", re.ASCII | re.MULTILINE)
    install: ClassVar[str] = "install it with cargo install oha"

    rights: ClassVar[Rights] = only_program("oha", data=("headers", "body"))

    kind: Literal["oha"] = "oha"
    connections: Connections
    offered_rate_rps: Rate | None = None
    latency_correction: bool = True
    """Counts only with a rate."""
    http_version: Literal["1.1", "2"] = "1.1"
    streams: int = Field(1, ge=1, le=100_000)
    """Requests under way at once on each HTTP/2 connection."""
    keep_alive: bool = True
    insecure: bool = False
    """Accept any certificate."""
    method: Method = "GET"
    headers: Headers = Field(default_factory=dict)
    body: Body = ""
    timeout_s: Timeout = 30
    binary: Binary = "oha"

    @model_validator(mode="after")
    def _streams_need_http2(self) -> Oha:
        if self.http_version == "1.1" and self.streams > 1:
            raise ValueError("HTTP/1.1 has one stream per connection; use http_version 2 for more")
        return self

    @property
    def load_model(self) -> LoadModel:
        return "open" if self.offered_rate_rps else "closed"

    @property
    def latency_basis(self) -> LatencyBasis:
        return "response_time" if self.offered_rate_rps and self.latency_correction else "service_time"

    def command(self, target: Target, duration_s: float) -> Command:
        """The command line. PlanError when the duration is not whole seconds or the URL is not HTTP."""
        seconds = whole_seconds(self.kind, duration_s)
        argv = [self.binary, "--no-tui", "--output-format", "json", "-z", f"{seconds}s", "-c", str(self.connections)]
        argv += ["-m", self.method, "-t", f"{self.timeout_s}s", "--redirect", "0"]
        if self.offered_rate_rps:
            argv += ["-q", str(self.offered_rate_rps), *(["--latency-correction"] if self.latency_correction else [])]
        if self.http_version == "2":
            argv += ["--http2", "-p", str(self.streams)]
        if not self.keep_alive:
            argv.append("--disable-keepalive")
        if self.insecure:
            argv.append("--insecure")
        if self.body:
            argv += ["-D", BODY_NAME]
        argv += [*header_options(self.headers), checked_url(target)]
        return Command(tuple(argv), timeout_s=seconds + self.timeout_s + MARGIN_S)

    def parse(self, output: str) -> LoadReport:
        return replace(
            self.read(output),
            connections=self.connections,
            load_model=self.load_model,
            latency_basis=self.latency_basis,
            offered_rate_rps=None if self.offered_rate_rps is None else float(self.offered_rate_rps),
        )
