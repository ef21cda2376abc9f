"""The options that wrk and wrk2 have in common, and their command line."""

from __future__ import annotations

import re
from dataclasses import replace

from pydantic import Field, field_validator, model_validator

from agents.command import Command, script
from agents.drivers.base import Driver, Target
from agents.errors import ParseError, PlanError
from agents.report import LoadReport

SCRIPT_NAME = "load.lua"

_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}", re.ASCII)
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_VERSION = re.compile(r"^wrk (\S{1,60})(?: \[[a-z]+\])? Copyright", re.ASCII | re.MULTILINE)


class WrkOptions(Driver):
    """Options of wrk and wrk2.

    `connections` must be a multiple of `threads`: each thread opens connections / threads, rounded down, so that
    otherwise the tool puts fewer connections on the server than it prints.
    """

    connections: int = Field(ge=1, le=1_000_000)
    threads: int = Field(ge=1, le=1024)
    timeout_s: int = Field(2, ge=1, le=3600)
    latency: bool = True
    headers: dict[str, str] = Field(default_factory=dict, max_length=100)
    script: str = Field("", max_length=256_000)
    """Lua text. It is written to the driver host as `load.lua` in the directory in which the command runs."""
    binary: str = Field("wrk", pattern=r"^[A-Za-z0-9_./][A-Za-z0-9_./+-]{0,200}$")

    @field_validator("headers")
    @classmethod
    def _headers_are_one_line(cls, headers: dict[str, str]) -> dict[str, str]:
        for name, value in headers.items():
            if not _HEADER_NAME.fullmatch(name):
                raise ValueError(f"'{name[:100]}' is not the name of an HTTP header")
            if _CONTROL.search(value):
                raise ValueError(f"the value of header {name} has a line break or another control character")
        return headers

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
        if duration_s < 1 or duration_s != int(duration_s):
            raise PlanError(f"{self.kind} runs for whole seconds, at least 1, not for {duration_s:g} s")
        if not re.fullmatch(r"https?://[^\s\x00-\x1f]{1,8000}", target.url):
            raise PlanError(f"'{target.url[:200]}' is not an http:// or https:// address")
        argv = [self.binary, f"-t{self.threads}", f"-c{self.connections}", f"-d{int(duration_s)}s"]
        argv += [f"--timeout={self.timeout_s}s", *self._own_arguments()]
        if self.latency:
            argv.append("--latency")
        for name, value in self.headers.items():
            argv += ["-H", f"{name}: {value}"]
        if self.script:
            argv += ["-s", SCRIPT_NAME]
        return Command((*argv, target.url), timeout_s=duration_s + self.timeout_s + 60)

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
