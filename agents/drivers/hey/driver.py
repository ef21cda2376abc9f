"""hey: closed-loop load from a pool of workers, over HTTP/1.1 or HTTP/2."""

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
    Connections,
    Headers,
    Timeout,
    checked_url,
    header_options,
    only_program,
    whole_seconds,
)
from agents.drivers.base.http_tool import HttpTool
from agents.drivers.hey.text_report import FORMAT, read_text
from agents.formats.report_format import ReportFormat, only
from agents.results.report import LatencyBasis, LoadModel, LoadReport

# hey cannot tell its version, so its own bytes identify it.
_VERSION_SCRIPT = """
path=$(command -v "$1") || { echo "$1 is not installed on this host: $2" >&2; exit 127; }
"$1" --help 2>&1 | grep -m 1 "^Usage: "
sha256sum "$path"
"""
_VERSION = re.compile(r"Usage: hey \[options\.\.\.\] <url>\s+([0-9a-f]{12})[0-9a-f]{52} ", re.ASCII)


class Hey(HttpTool):
    """hey. It never checks certificates; its version is the beginning of its checksum, because it prints none.

    `limit_rps` slows it down: requests that are late are left out, so it is a limit and no offered rate.
    """

    load_model: ClassVar[LoadModel] = "closed"
    latency_basis: ClassVar[LatencyBasis] = "service_time"
    formats: ClassVar[tuple[ReportFormat, ...]] = only(FORMAT, read_text)
    grammar: ClassVar[CommandGrammar | None] = Grammar(
        ("hey",),
        {"-c": "connections", "-z": "duration"},
        frozenset(("-n", "-q", "-o", "-m", "-H", "-t", "-A", "-d", "-D", "-T", "-a", "-x", "-host", "-cpus")),
        attached=False,
    )
    rate_option: ClassVar[str] = ""
    concurrency_option: ClassVar[str] = "connections"
    divided: ClassVar[Mapping[str, str]] = {"connections": "connections", "limit_rps": "requests/s"}
    version_pattern: ClassVar[re.Pattern[str]] = _VERSION
    install: ClassVar[str] = "install the package hey"

    rights: ClassVar[Rights] = only_program("hey", data=("headers", "body"))

    kind: Literal["hey"] = "hey"
    connections: Connections
    limit_rps: float | None = Field(None, gt=0, le=1e9)
    http_version: Literal["1.1", "2"] = "1.1"
    keep_alive: bool = True
    follow_redirects: bool = False
    method: Literal["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"] = "GET"
    headers: Headers = Field(default_factory=dict)
    body: Body = ""
    timeout_s: Timeout = 20
    binary: Binary = "hey"

    def version_command(self) -> Command:
        return script(_VERSION_SCRIPT, self.binary, self.install)

    def command(self, target: Target, duration_s: float) -> Command:
        """The command line. PlanError when the duration is not whole seconds or the URL is not HTTP."""
        seconds = whole_seconds(self.kind, duration_s)
        argv = [self.binary, "-z", f"{seconds}s", "-c", str(self.connections), "-t", str(self.timeout_s)]
        argv += ["-m", self.method]
        if self.limit_rps is not None:
            argv += ["-q", f"{self.limit_rps / self.connections:.6f}"]
        if self.http_version == "2":
            argv.append("-h2")
        if not self.keep_alive:
            argv.append("-disable-keepalive")
        if not self.follow_redirects:
            argv.append("-disable-redirects")
        if self.body:
            argv += ["-D", BODY_NAME]
        argv += [*header_options(self.headers), checked_url(target)]
        return Command(tuple(argv), timeout_s=seconds + self.timeout_s + MARGIN_S)

    def parse(self, output: str) -> LoadReport:
        return replace(read_text(output), connections=self.connections)
