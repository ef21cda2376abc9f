"""What every server under test must offer. Instances are private to a run; the installation is never edited."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Annotated

import regex
from pydantic import AfterValidator, Field

from agents.command import Command
from agents.cpuset import CpuSet
from agents.launch import Launch
from agents.model import Frozen


def _regular_expression(pattern: str) -> str:
    try:
        regex.compile(pattern)
    except (regex.error, RecursionError, OverflowError) as error:
        raise ValueError(f"this is not a regular expression: {error}") from None
    return pattern


class Readiness(Frozen):
    """When the server counts as started: an HTTP probe from the driver host, and optionally a line in its log."""

    path: str = Field("/", pattern=r"^/[^\s]*$")
    status: int = Field(200, ge=100, le=599)
    body_contains: str = ""
    log_pattern: Annotated[str, Field(max_length=1000), AfterValidator(_regular_expression)] = ""
    timeout_s: float = Field(60.0, gt=0, le=900)


class Server(Frozen, ABC):
    """A server under test and how it is started. Registered in `agents.servers.AnyServer`."""

    kind: str
    port: int = Field(8080, ge=1, le=65535)
    cpus: CpuSet = ""
    ready: Readiness = Readiness()

    @abstractmethod
    def version_command(self) -> Command:
        """Prints the version of the installation; fails with a clear message when it is not there."""

    @abstractmethod
    def parse_version(self, output: bytes) -> str: ...

    @abstractmethod
    def create_instance(self, instance: str) -> Command:
        """Makes the private instance directory `instance` (it does not exist yet)."""

    @abstractmethod
    def start_command(self, instance: str, launch: Launch) -> Command:
        """Runs the server in the foreground: the launcher detaches it, sets limits, environment and affinity."""

    @abstractmethod
    def environment(self, instance: str, launch: Launch) -> dict[str, str]:
        """The environment of the server process, `launch.environment` included."""

    @abstractmethod
    def log_path(self, instance: str) -> str | None:
        """The server's own log, None when it logs to its standard output."""

    @abstractmethod
    def effective_command(self, instance: str, pid: int) -> Command:
        """Reads what the running server really has (configuration files, final flags)."""

    @abstractmethod
    def parse_effective(self, output: bytes) -> Mapping[str, str]:
        """Flat `section.path` -> value from the output of `effective_command`."""

    @abstractmethod
    def problems(self, log: str) -> tuple[str, ...]:
        """Settings that the server says it ignored or could not use, in plain words, from its log."""
