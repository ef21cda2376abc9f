"""What a runner asks of its surroundings, and the end that a person asks for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from agents.base.errors import AgentError
from agents.base.installation import UNNAMED, Installation
from agents.base.session import Session
from agents.events import AnyEvent, Role
from agents.facts.access import Access
from agents.profiles.base.taken import TakenProfile
from agents.record import Record
from agents.remote.link import PATIENCE_S
from agents.running.canary_checks import CanaryReading
from agents.running.collecting import MAX_FILE_BYTES, KeepFile
from agents.spec import HostAddress

Connect = Callable[[HostAddress], Awaitable[Session]]

Admit = Callable[[Mapping[Role, Access]], Awaitable[None]]
"""Told which machines the hosts are, before anything is done on any. HostInUse = the run has to wait for them."""

KeepProfile = Callable[[TakenProfile, bytes], Awaitable[str]]
"""Folds and keeps a profile of the run; returns the name of the file that holds its bytes. ParseError: it is none."""

TellLeftovers = Callable[[Role, tuple[str, ...]], Awaitable[None]]
"""Told what other runs had left on a host, one sentence each, once it was put back."""

KeepReadings = Callable[[tuple[CanaryReading, ...]], Awaitable[None]]
"""Handed what the checks of the hosts gave, before anything is changed on any."""

CANCELLED_PATIENCE_S = 30.0
"""How long a cancelled run waits for a host that is away."""
DEADMAN_S = 1800
"""After how long without a worker a host puts itself back: longer than a cut and an adoption may take together."""


class Cancelled(AgentError):
    """A person asked for the end of the run."""

    cause = "person"

    def __init__(self) -> None:
        super().__init__("The run was cancelled.", hint="The load was ended and the host is put back.")


async def _nobody_else(_shown: Mapping[Role, Access]) -> None:
    """Whoever has no register of hosts cannot know of others."""


async def _unheard(_role: Role, _found: tuple[str, ...]) -> None:
    """The run's own log has it, too."""


@dataclass(frozen=True)
class Control:
    """How to connect, where events go, whether to stop, the fence, and how long hosts and workers may be away.

    `installation` is whose the run is: hosts keep it beside the fence. `libraries` is the directory of the jars that
    profilers need (bin/get-profilers). `keep_readings`: the hosts are checked first (`agents.running.canaries`), and it
    is handed what they gave; None = nobody asked for that. `max_file_bytes`: how large a file `keep_file` takes.
    """

    connect: Connect
    emit: Callable[[AnyEvent], Awaitable[None]]
    cancelled: Callable[[], bool]
    fence: int
    patience_s: float = PATIENCE_S
    deadman_s: int = DEADMAN_S
    keep_file: KeepFile | None = None
    keep_profile: KeepProfile | None = None
    libraries: Path | None = None
    installation: Installation = UNNAMED
    admit: Admit = _nobody_else
    tell_leftovers: TellLeftovers = _unheard
    keep_readings: KeepReadings | None = None
    max_file_bytes: int = MAX_FILE_BYTES

    def emit_into(self, record: Record) -> Callable[[AnyEvent], Awaitable[None]]:
        """Stores an event, then takes it into the record: what is not stored has not happened."""

        async def emit(event: AnyEvent) -> None:
            await self.emit(event)
            record.add(event)

        return emit

    def check(self) -> None:
        """Cancelled when a person asked for the end."""
        if self.cancelled():
            raise Cancelled

    def patience_now_s(self) -> float:
        """How long to wait for a host that is away, as things are now."""
        return min(self.patience_s, CANCELLED_PATIENCE_S) if self.cancelled() else self.patience_s
