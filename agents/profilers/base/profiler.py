"""What every profiler must offer: shell for the window in which it works, what it needs, and which files it leaves."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal

from agents.base.process_start import ProcessStart
from agents.base.runtime import Runtime

JVM_OPTIONS = ("-XX:+UnlockDiagnosticVMOptions", "-XX:+DebugNonSafepoints")
"""Without them a JVM knows the functions of compiled code only where it may stop, so that inlined ones get the time of
others."""


@dataclass(frozen=True)
class Library:
    """A jar of the Maven repository, which `bin/get-profilers` puts where BenchHub runs."""

    file: str
    sha256: str


@dataclass(frozen=True)
class Brought:
    """A file of a library that a run takes to the host. `member` is its path in the jar; `{arch}` stands for x64 or
    arm64. `file` is its name in the run's directory."""

    library: Library
    member: str
    file: str


class Profiler(ABC):
    """Takes one profile of a server's processes, in a window of the measured load.

    The pieces of shell below make up one job (`agents.profilers.base.window`). They know these variables: `$pids`, the
    server's processes as they were started; `$list`, all of its processes with commas between; `$out`, how the names of
    its files begin; `$folder`, the run's directory for profiles; `$seconds`, how long the window is. Each result is a
    file `$out.*.part`.
    """

    kind: str
    title: str
    """What people call it, in sentences."""
    of: str
    """Which servers it can profile, in words, for the documentation and messages."""
    events: tuple[str, ...] = ("cpu",)
    """What it can sample; the first one by default."""
    cost: str
    """What it costs the server, in words."""
    counts_only: bool = False
    """Whether it takes no stacks, but only counts events."""
    clock: Literal["uptime", "unix"] | None = None
    """What the times of its samples are seconds of: the host's uptime, as those of the window, or its time since 1970;
    None where they are of another clock, or it tells none."""
    brings: tuple[Brought, ...] = ()
    converter: Library | None = None
    """What makes a profile of its files where BenchHub runs; None where its files are profiles as they are."""

    @abstractmethod
    def fits(self, runtime: Runtime) -> bool:
        """Whether it can profile a server that this runs."""

    def occupies(self, event: str) -> frozenset[str]:
        """What no other profiler of the same server may have at the same time: two that sample it see each other."""
        return frozenset({"samples"})

    def lacks(self, event: str) -> str:
        """POSIX sh that prints nothing where the host has what it needs, else one line: what is missing|what to do.

        `$beside` is where the server's own programs are, "" where that is not known.
        """
        return ""

    def prepared(self, launch: ProcessStart, folder: str, event: str) -> ProcessStart:
        """How the server is started so that it can be profiled."""
        return launch

    def files(self) -> dict[str, str]:
        """Texts that it needs in the run's directory, by name."""
        return {}

    def begin(self, event: str) -> str:
        """Shell that starts it, and sets `engine`: what really samples. It may exit with words on standard error."""
        return f"engine={self.kind}"

    def during(self, event: str) -> str:
        """Shell that starts what works beside the server until the window ends, in the background; `end` waits for it.

        `sh -c "$until_then" sh "$until"` ends with the window, however late it begins.
        """
        return ":"

    def end(self, event: str) -> str:
        """Shell that ends it and writes `$out.*.part`."""
        return ":"

    def after(self, event: str) -> str:
        """Shell that makes the result when the load has ended, because it costs too much before; "" for nothing.

        It is a job of its own, and knows `$out` and `$folder` alone.
        """
        return ""
