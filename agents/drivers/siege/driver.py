"""siege: closed-loop load of users that wait for their answers."""

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
    Timeout,
    checked_url,
    header_options,
    only_program,
    whole_seconds,
)
from agents.drivers.base.http_tool import HttpTool
from agents.drivers.siege import reports as siege_reports
from agents.formats.json_document import has_no_object, has_object
from agents.formats.report_format import ReportFormat
from agents.results.report import LatencyBasis, LoadModel, LoadReport

RC_NAME = "siege.rc"
# siege prints a line for each request that fails, even with --quiet; they are counted in its report anyway.
_RUN = """
"$@" 2>siege.err
status=$?
head -c 4000 siege.err >&2
rm -f siege.err
exit "$status"
"""


class Siege(HttpTool):
    """siege. Its times have two decimals of a second, so latency below 10 ms reads as 0; it prints no percentiles.

    It never checks certificates. It runs with settings of its own, not with those in the home directory.
    """

    load_model: ClassVar[LoadModel] = "closed"
    latency_basis: ClassVar[LatencyBasis] = "service_time"
    formats: ClassVar[tuple[ReportFormat, ...]] = (
        ReportFormat(siege_reports.JSON_FORMAT, has_object, siege_reports.read_json),
        ReportFormat(siege_reports.TEXT_FORMAT, has_no_object, siege_reports.read_text),
    )
    grammar: ClassVar[CommandGrammar | None] = Grammar(
        ("siege",),
        {
            **dict.fromkeys(("-c", "--concurrent"), "connections"),
            **dict.fromkeys(("-t", "--time"), "duration"),
        },
        frozenset(
            (
                "-r",
                "-d",
                "-f",
                "-R",
                "-m",
                "-H",
                "-A",
                "-T",
                "--reps",
                "--delay",
                "--file",
                "--rc",
                "--header",
                "--user-agent",
                "--content-type",
            )
        ),
    )
    rate_option: ClassVar[str] = ""
    concurrency_option: ClassVar[str] = "connections"
    divided: ClassVar[Mapping[str, str]] = {"connections": "connections"}
    version_pattern: ClassVar[re.Pattern[str]] = re.compile(r"SIEGE (\S{1,40})", re.ASCII)
    install: ClassVar[str] = "install the package siege"

    rights: ClassVar[Rights] = only_program("siege", data=("headers", "body", "content_type"))

    kind: Literal["siege"] = "siege"
    connections: int = Field(ge=1, le=10_000)
    keep_alive: bool = True
    think_time_s: float = Field(0, ge=0, le=3600)
    """Each user waits a random time of up to this long before each request; 0 is no wait."""
    method: Method = "GET"
    headers: Headers = Field(default_factory=dict)
    body: Body = ""
    content_type: str = Field("text/plain", pattern=r"^[A-Za-z0-9][A-Za-z0-9/;=. +_-]{0,100}$")
    timeout_s: Timeout = 30
    binary: Binary = "siege"

    def files(self) -> dict[str, str]:
        """The settings, and the body when there is one. By default siege ends after 1024 failures."""
        settings = {
            "verbose": "false",
            "logging": "false",
            "color": "off",
            "protocol": "HTTP/1.1",
            "connection": "keep-alive" if self.keep_alive else "close",
            "limit": str(self.connections),
            "timeout": str(self.timeout_s),
            "failures": "1000000000",
        }
        return {RC_NAME: "".join(f"{name} = {value}\n" for name, value in settings.items()), **super().files()}

    def command(self, target: Target, duration_s: float) -> Command:
        """The command line. PlanError when the duration is not whole seconds or the URL is not HTTP."""
        seconds = whole_seconds(self.kind, duration_s)
        argv = [self.binary, f"--rc={RC_NAME}", "--json-output", "--no-parser", "--no-follow"]
        argv += [f"--concurrent={self.connections}", f"--time={seconds}S"]
        argv.append(f"--delay={self.think_time_s:g}" if self.think_time_s else "--benchmark")
        if self.body:
            argv.append(f"--content-type={self.content_type}")
        argv += [f"--header={header}" for header in header_options(self.headers)[1::2]]
        url = checked_url(target)
        if self.body or self.method != "GET":
            url = f"{url} {self.method}" + (f" <{BODY_NAME}" if self.body else "")
        return replace(script(_RUN, *argv, url), timeout_s=seconds + self.timeout_s + MARGIN_S)

    def parse(self, output: str) -> LoadReport:
        return replace(self.read(output), connections=self.connections)
