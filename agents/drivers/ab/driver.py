"""ab (ApacheBench): closed-loop load from one thread."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar, Literal

from pydantic import Field, model_validator

from agents.base.command import Command
from agents.base.rights import Rights
from agents.drivers.ab.text_report import FORMAT, read_text
from agents.drivers.base.command_line import CommandGrammar, Grammar
from agents.drivers.base.driver import Target
from agents.drivers.base.http_options import (
    BODY_NAME,
    MARGIN_S,
    Binary,
    Body,
    Headers,
    Method,
    Timeout,
    checked_url,
    header_options,
    only_program,
    whole_seconds,
)
from agents.drivers.base.http_tool import HttpTool
from agents.formats.report_format import ReportFormat, only
from agents.results.report import LatencyBasis, LoadModel, LoadReport


class Ab(HttpTool):
    """ab. It has one thread, so a fast server is often not the limit: watch the CPU of the driver host.

    `max_requests` bounds a phase too: ab keeps a record of each request in memory.
    """

    load_model: ClassVar[LoadModel] = "closed"
    latency_basis: ClassVar[LatencyBasis] = "service_time"
    formats: ClassVar[tuple[ReportFormat, ...]] = only(FORMAT, read_text)
    grammar: ClassVar[CommandGrammar | None] = Grammar(
        ("ab",),
        {"-c": "connections", "-t": "duration"},
        frozenset(("-n", "-s", "-b", "-B", "-p", "-u", "-T", "-v", "-x", "-C", "-H", "-A", "-P", "-X")),
    )
    rate_option: ClassVar[str] = ""
    concurrency_option: ClassVar[str] = "connections"
    divided: ClassVar[Mapping[str, str]] = {"connections": "connections"}
    version_argument: ClassVar[str] = "-V"
    version_pattern: ClassVar[re.Pattern[str]] = re.compile(r"This is ApacheBench, Version (\S{1,40})", re.ASCII)
    install: ClassVar[str] = "install the package apache2-utils"

    rights: ClassVar[Rights] = only_program("ab", data=("headers", "body", "content_type"))

    kind: Literal["ab"] = "ab"
    connections: int = Field(ge=1, le=20_000)
    keep_alive: bool = True
    """Without it each request opens a connection of its own, as ab does unless it is told otherwise."""
    max_requests: int = Field(10_000_000, ge=1, le=100_000_000)
    method: Method = "GET"
    headers: Headers = Field(default_factory=dict)
    body: Body = ""
    content_type: str = Field("text/plain", pattern=r"^[A-Za-z0-9][A-Za-z0-9/;=. +_-]{0,100}$")
    timeout_s: Timeout = 30
    binary: Binary = "ab"

    @model_validator(mode="after")
    def _body_has_a_method(self) -> Ab:
        if self.body and self.method not in ("POST", "PUT"):
            raise ValueError("ab sends a body with POST and PUT only")
        if self.connections > self.max_requests:
            raise ValueError("max_requests must be at least the number of connections")
        return self

    def command(self, target: Target, duration_s: float) -> Command:
        """The command line. PlanError when the duration is not whole seconds or the URL is not HTTP."""
        seconds = whole_seconds(self.kind, duration_s)
        # -t sets 50,000 requests, so -n comes after it. -l: pages may differ in length. -r: a reset is no end.
        argv = [self.binary, "-q", "-l", "-r", "-t", str(seconds), "-n", str(self.max_requests)]
        argv += ["-c", str(self.connections), "-s", str(self.timeout_s)]
        if self.keep_alive:
            argv.append("-k")
        if self.body:
            argv += ["-p" if self.method == "POST" else "-u", BODY_NAME, "-T", self.content_type]
        elif self.method == "HEAD":
            argv.append("-i")
        elif self.method != "GET":
            argv += ["-m", self.method]
        argv += [*header_options(self.headers), checked_url(target)]
        return Command(tuple(argv), timeout_s=seconds + self.timeout_s + MARGIN_S)

    def parse(self, output: str) -> LoadReport:
        report = read_text(output)
        return replace(report, connections=self.connections) if report.connections is None else report
