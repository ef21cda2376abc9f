"""Hyperfoil, through its wrk and wrk2 commands."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar, Literal

from pydantic import Field, model_validator

from agents.base.command import Command, script
from agents.base.installed import installed_home
from agents.base.rights import Rights
from agents.drivers.base.command_line import CommandGrammar, Grammar
from agents.drivers.base.driver import Driver, Target
from agents.drivers.base.http_options import (
    MARGIN_S,
    SENDS,
    Connections,
    Headers,
    Rate,
    Timeout,
    checked_url,
    header_options,
    version_in,
    whole_seconds,
)
from agents.drivers.hyperfoil import json_report as hyperfoil_json
from agents.drivers.hyperfoil import text_report as hyperfoil_text
from agents.formats.json_document import has_no_object, has_object
from agents.formats.report_format import ReportFormat
from agents.results.report import LatencyBasis, LoadModel, LoadReport

_VERSION_SCRIPT = """
[ -x "$1/bin/wrk2.sh" ] || { echo "there is no Hyperfoil in $1 on this host: unpack a release there" >&2; exit 127; }
find "$1" -name '*hyperfoil-cli-*.jar'
"""
_VERSION = re.compile(r"hyperfoil-cli-([0-9][0-9A-Za-z.]{0,30}?(?:-SNAPSHOT)?)\.jar", re.ASCII)


class Hyperfoil(Driver):
    """Hyperfoil. With `offered_rate_rps` it is its wrk2 command, else its wrk command.

    With a rate, requests start on schedule, and latency counts from when a request was due.
    """

    formats: ClassVar[tuple[ReportFormat, ...]] = (
        ReportFormat(hyperfoil_text.FORMAT, has_no_object, hyperfoil_text.read_text),
        ReportFormat(hyperfoil_json.FORMAT, has_object, hyperfoil_json.read_json),
    )
    grammar: ClassVar[CommandGrammar | None] = Grammar(
        ("wrk2.sh", "wrk.sh", "wrk2", "wrk", "hyperfoil"),
        {
            **dict.fromkeys(("-c", "--connections"), "connections"),
            **dict.fromkeys(("-t", "--threads"), "threads"),
            **dict.fromkeys(("-d", "--duration"), "duration"),
            **dict.fromkeys(("-R", "--rate"), "rate"),
        },
        frozenset(("-s", "-H", "--header", "--timeout", "-A")),
    )
    rate_option: ClassVar[str] = "offered_rate_rps"
    concurrency_option: ClassVar[str] = "connections"
    divided: ClassVar[Mapping[str, str]] = {"connections": "connections", "offered_rate_rps": "requests/s"}

    rights: ClassVar[Rights] = Rights(
        does=SENDS,
        data=("headers",),
        gates={"home": installed_home("home")},
    )

    kind: Literal["hyperfoil"] = "hyperfoil"
    connections: Connections
    threads: int = Field(ge=1, le=1024)
    offered_rate_rps: Rate | None = None
    http_version: Literal["1.1", "2"] = "1.1"
    headers: Headers = Field(default_factory=dict)
    timeout_s: Timeout = 60
    home: str = Field("/opt/hyperfoil", pattern=r"^/[A-Za-z0-9_./+-]{0,200}$")
    """Where a release of Hyperfoil is unpacked on the driver host."""

    @model_validator(mode="after")
    def _connections_fit_threads(self) -> Hyperfoil:
        if self.connections < self.threads:
            raise ValueError(f"{self.threads} threads need at least {self.threads} connections, not {self.connections}")
        return self

    @property
    def load_model(self) -> LoadModel:
        return "open" if self.offered_rate_rps else "closed"

    @property
    def latency_basis(self) -> LatencyBasis:
        return "response_time" if self.offered_rate_rps else "service_time"

    def version_command(self) -> Command:
        return script(_VERSION_SCRIPT, self.home)

    def parse_version(self, output: bytes) -> str:
        return version_in(output, _VERSION, self.home, "Hyperfoil")

    def command(self, target: Target, duration_s: float) -> Command:
        """The command line. PlanError when the duration is not whole seconds or the URL is not HTTP."""
        seconds = whole_seconds(self.kind, duration_s)
        argv = [f"{self.home}/bin/{'wrk2' if self.offered_rate_rps else 'wrk'}.sh"]
        argv += ["-t", str(self.threads), "-c", str(self.connections), "-d", f"{seconds}s"]
        argv += [f"--timeout={self.timeout_s}s", "--latency"]
        if self.offered_rate_rps:
            argv += ["-R", str(self.offered_rate_rps)]
        if self.http_version == "2":
            argv.append("--enable-http2=true")
        argv += [*header_options(self.headers), checked_url(target)]
        # Before the load it starts a Java VM and calibrates itself.
        return Command(tuple(argv), timeout_s=seconds + self.timeout_s + 2 * MARGIN_S)

    def parse(self, output: str) -> LoadReport:
        return replace(
            self.read(output),
            connections=self.connections,
            threads=self.threads,
            load_model=self.load_model,
            latency_basis=self.latency_basis,
            offered_rate_rps=None if self.offered_rate_rps is None else float(self.offered_rate_rps),
        )
