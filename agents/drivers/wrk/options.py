"""The options that wrk and wrk2 have in common, and their command line."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import ClassVar

from pydantic import Field, model_validator

from agents.base.command import Command, script
from agents.base.errors import ParseError
from agents.base.installed import program
from agents.base.rights import Gate, Rights
from agents.drivers.base.driver import Driver, Target
from agents.drivers.base.http_options import (
    MARGIN_S,
    SENDS,
    Binary,
    Headers,
    checked_url,
    header_options,
    whole_seconds,
)
from agents.results.report import LoadReport

SCRIPT_NAME = "load.lua"

_VERSION = re.compile(r"^wrk (\S{1,60})(?: \[[a-z]+\])? Copyright", re.ASCII | re.MULTILINE)


class WrkOptions(Driver):
    """Options of wrk and wrk2.

    `connections` must be a multiple of `threads`: each thread opens connections / threads, rounded down, so that
    otherwise the tool puts fewer connections on the server than it prints.
    """

    concurrency_option: ClassVar[str] = "connections"
    rights: ClassVar[Rights] = Rights(
        does=SENDS,
        data=("headers",),
        gates={
            "script": Gate("a `script`: Lua runs programs and opens files", lambda tool: not tool.script),
            "binary": program("wrk", "wrk2"),
        },
    )

    connections: int = Field(ge=1, le=1_000_000)
    threads: int = Field(ge=1, le=1024)
    timeout_s: int = Field(2, ge=1, le=3600)
    latency: bool = True
    headers: Headers = Field(default_factory=dict)
    script: str = Field("", max_length=256_000)
    """Lua text. It is written to the driver host as `load.lua` in the directory in which the command runs."""
    binary: Binary = "wrk"

    @model_validator(mode="after")
    def _connections_fit_threads(self) -> WrkOptions:
        if self.connections < self.threads:
            raise ValueError(f"{self.threads} threads need at least {self.threads} connections, not {self.connections}")
        if over := self.connections % self.threads:
            real = self.connections - over
            raise ValueError(
                f"connections ({self.connections}) must be a multiple of threads ({self.threads}): "
                f"the tool would open {real}; use {real} or {real + self.threads} connections, or other threads"
            )
        return self

    @classmethod
    def least_asked_s(cls, nominal_s: float) -> float:
        # From 51 s on whole minutes are printed, from 51 minutes on whole hours.
        for unit_s in (3600, 60):
            if nominal_s >= unit_s and nominal_s % unit_s == 0:
                return max(0.85 * unit_s, nominal_s - unit_s / 2)
        return nominal_s

    def files(self) -> dict[str, str]:
        """Files that the command needs in its working directory: relative name -> text."""
        return {SCRIPT_NAME: self.script} if self.script else {}

    def version_command(self) -> Command:
        # -v exits 1 in wrk and wrk2, so only a missing binary may count as a failure.
        missing = f"{self.binary} is not installed on this host: install the package wrk, or build wrk2 from source"
        text = 'command -v "$1" >/dev/null || { echo "$2" >&2; exit 127; }\n"$1" -v 2>&1 || true'
        return script(text, self.binary, missing)

    def command(self, target: Target, duration_s: float) -> Command:
        """The command line. PlanError when the duration is not whole seconds or the URL is not HTTP."""
        seconds, url = whole_seconds(self.kind, duration_s), checked_url(target)
        argv = [self.binary, f"-t{self.threads}", f"-c{self.connections}", f"-d{seconds}s"]
        argv += [f"--timeout={self.timeout_s}s", *self._own_arguments()]
        if self.latency:
            argv.append("--latency")
        argv += header_options(self.headers)
        if self.script:
            argv += ["-s", SCRIPT_NAME]
        return Command((*argv, url), timeout_s=seconds + self.timeout_s + MARGIN_S)

    def _own_arguments(self) -> list[str]:
        """Arguments that only this tool has."""
        return []

    def _version(self, output: bytes, *, has_rate: bool) -> str:
        """The version in the output of `-v`, which prints the usage too: only wrk2 has --rate."""
        text = output.decode("utf-8", "replace")
        match = _VERSION.search(text)
        if not match:
            raise ParseError(f"{self.binary} does not say that it is wrk: {text.strip()[:200]}", line=1)
        if ("--rate" in text) != has_rate:
            found, wanted = ("wrk", "wrk2") if has_rate else ("wrk2", "wrk")
            raise ParseError(
                f"{self.binary} is {found}, not {wanted}",
                hint=f"Both are often installed as 'wrk'. Set the binary of the workload to the path of {wanted}.",
                line=match.string.count("\n", 0, match.start()) + 1,
            )
        return match[1]

    def _complete(self, report: LoadReport) -> LoadReport:
        """`report` with what only the options know."""
        return replace(
            report,
            threads=self.threads if report.threads is None else report.threads,
            connections=self.connections if report.connections is None else report.connections,
        )
