"""h2load: HTTP/2 (and HTTP/1.1) load with many streams on each connection."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar, Literal

from pydantic import Field, model_validator

from agents.base.command import Command
from agents.base.rights import Rights
from agents.drivers.base.command_line import CommandGrammar, Grammar
from agents.drivers.base.driver import Target
from agents.drivers.base.http_options import (
    BODY_NAME,
    MARGIN_S,
    Binary,
    Body,
    Connections,
    Headers,
    Method,
    Rate,
    checked_url,
    header_options,
    only_program,
    whole_seconds,
)
from agents.drivers.base.http_tool import HttpTool
from agents.drivers.h2load.text_report import FORMAT, read_text
from agents.formats.report_format import ReportFormat, only
from agents.results.report import LatencyBasis, LoadModel, LoadReport


class H2load(HttpTool):
    """h2load. It never checks certificates. Over http:// HTTP/2 is spoken without TLS and without an upgrade.

    `streams` requests are under way on each connection at once. With `rate_per_connection_rps` requests follow a
    schedule; their latency still counts from when they were sent.
    """

    latency_basis: ClassVar[LatencyBasis] = "service_time"
    formats: ClassVar[tuple[ReportFormat, ...]] = only(FORMAT, read_text)
    grammar: ClassVar[CommandGrammar | None] = Grammar(
        ("h2load",),
        {
            **dict.fromkeys(("-c", "--clients"), "connections"),
            **dict.fromkeys(("-t", "--threads"), "threads"),
            **dict.fromkeys(("-D", "--duration"), "duration"),
            "--rps": "rate",
        },
        frozenset(
            (
                "-n",
                "-i",
                "-m",
                "-f",
                "-w",
                "-W",
                "-H",
                "-p",
                "-d",
                "-r",
                "-T",
                "-N",
                "-B",
                "--header",
                "--data",
                "--warm-up-time",
            )
        ),
        rate_per_connection=True,
        corrected_with=None,
    )
    rate_option: ClassVar[str] = "rate_per_connection_rps"
    rate_is_per_connection: ClassVar[bool] = True
    concurrency_option: ClassVar[str] = "connections"
    divided: ClassVar[Mapping[str, str]] = {"connections": "connections"}
    version_pattern: ClassVar[re.Pattern[str]] = re.compile(r"h2load nghttp2/(\S{1,40})", re.ASCII)
    install: ClassVar[str] = "install the package nghttp2-client"

    rights: ClassVar[Rights] = only_program("h2load", data=("headers", "body"))

    kind: Literal["h2load"] = "h2load"
    connections: Connections
    threads: int = Field(1, ge=1, le=1024)
    streams: int = Field(1, ge=1, le=100_000)
    http_version: Literal["1.1", "2"] = "2"
    rate_per_connection_rps: Rate | None = None
    warm_up_s: int = Field(0, ge=0, le=3600)
    """Load before the measured time of each phase; it counts nowhere."""
    method: Method = "GET"
    headers: Headers = Field(default_factory=dict)
    body: Body = ""
    binary: Binary = "h2load"

    @model_validator(mode="after")
    def _connections_fit(self) -> H2load:
        if self.connections < self.threads:
            raise ValueError(f"{self.threads} threads need at least {self.threads} connections, not {self.connections}")
        if self.http_version == "1.1" and self.streams > 1:
            raise ValueError("HTTP/1.1 has one stream per connection; use http_version 2 for more")
        return self

    @property
    def load_model(self) -> LoadModel:
        return "open" if self.rate_per_connection_rps else "closed"

    def command(self, target: Target, duration_s: float) -> Command:
        """The command line. PlanError when the duration is not whole seconds or the URL is not HTTP."""
        seconds = whole_seconds(self.kind, duration_s)
        argv = [self.binary, f"--duration={seconds}", f"--warm-up-time={self.warm_up_s}"]
        argv += [f"--clients={self.connections}", f"--threads={self.threads}"]
        if self.http_version == "1.1":
            argv.append("--h1")
        else:
            argv.append(f"--max-concurrent-streams={self.streams}")
        if self.rate_per_connection_rps:
            argv.append(f"--rps={self.rate_per_connection_rps}")
        if self.method != "GET":
            argv += ["-H", f":method: {self.method}"]
        if self.body:
            argv.append(f"--data={BODY_NAME}")
        argv += [*header_options(self.headers), checked_url(target)]
        return Command(tuple(argv), timeout_s=seconds + self.warm_up_s + MARGIN_S)

    def parse(self, output: str) -> LoadReport:
        offered = self.rate_per_connection_rps * self.connections if self.rate_per_connection_rps else None
        return replace(
            read_text(output),
            connections=self.connections,
            threads=self.threads,
            load_model=self.load_model,
            offered_rate_rps=None if offered is None else float(offered),
        )
