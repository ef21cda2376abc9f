"""What every load tool must offer: a command line, and a parser for its output. No SSH here."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from agents.command import Command
from agents.model import Frozen
from agents.report import LatencyBasis, LoadModel, LoadReport


@dataclass(frozen=True)
class Target:
    """Where the load goes. `url` is complete: scheme, address, port and path."""

    url: str


class Driver(Frozen, ABC):
    """A load tool and its options. One file per tool; registered in `agents.drivers.AnyDriver`."""

    load_model: ClassVar[LoadModel]
    latency_basis: ClassVar[LatencyBasis]
    formats: ClassVar[tuple[str, ...]]
    """The texts that `parse` reads, first the one of `command`."""

    kind: str

    @abstractmethod
    def version_command(self) -> Command:
        """Prints the tool's version; used by preflight too: a missing tool fails here and names the package."""

    @abstractmethod
    def parse_version(self, output: bytes) -> str:
        """The version from the output (stdout and stderr) of `version_command`. ParseError when it is another tool."""

    @abstractmethod
    def command(self, target: Target, duration_s: float) -> Command:
        """The command line that puts load on `target` for `duration_s`. Affinity and limits are the launcher's."""

    def files(self) -> dict[str, str]:
        """Files that the command needs in its working directory: relative name -> text."""
        return {}

    @abstractmethod
    def parse(self, output: str) -> LoadReport:
        """The report in `output`, completed by what only the options know (threads, connections, offered rate).

        Raises ParseError when the text is not a whole report of this tool.
        """
