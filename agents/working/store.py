"""What a worker asks of whoever keeps the record of a run: the database, or the centre behind the door for sites."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from agents.base.clock import RunClock
from agents.base.errors import ConnectError, FenceError
from agents.base.installation import Installation
from agents.base.session import Session
from agents.events import AnyEvent, Role
from agents.facts.access import Access
from agents.profiles.base.taken import TakenProfile
from agents.record import Record
from agents.running.control import KeepReadings
from agents.spec import HostAddress, RunSpec


class StoreAway(Exception):
    """The store does not answer now: what was under way is done again from its beginning."""


@dataclass(frozen=True)
class ClaimedRun:
    """A run that this worker has claimed, and by what times it is worked on.

    `key` names its directories on hosts. `libraries` is the worker's own directory of the jars that profilers need.
    """

    id: int
    number: int
    key: str
    spec: RunSpec
    fence: int
    attempts: int
    heartbeat_s: float
    patience_s: float
    deadman_s: int
    max_file_bytes: int
    installation: Installation
    libraries: Path | None = None

    def __str__(self) -> str:
        return f"run {self.id} (#{self.number})"


def insist_on_key_of_launch(host: str, *, approved: str, at_launch: str) -> None:
    """ConnectError, permanent, when another key has been approved of the host since the run was launched."""
    if approved != at_launch:
        raise ConnectError(
            f"The approved host key of {host} is not the one that this run was launched with.",
            hint="Launch the run again if the new key is right.",
            permanent=True,
        )


class RunStore(Protocol):
    """Keeps the record of one claimed run for the holder of its fence.

    Whatever is not told otherwise waits for a store that is away, as nothing may happen on a host unrecorded, and
    raises FenceError when another worker holds the run now.
    """

    async def clock(self) -> RunClock:
        """The one clock of all that work on the run."""
        ...

    async def record(self) -> Record:
        """What the stored events add up to."""
        ...

    async def store(self, event: AnyEvent) -> None:
        """Store one event. It is safe then: whoever takes the run up knows of it."""
        ...

    async def keep_file(self, name: str, content: bytes | Path, media_type: str) -> None:
        """Keep a file of the run; the same name again replaces it. KeepError when it is too large or has no place."""
        ...

    async def keep_profile(self, taken: TakenProfile, content: bytes) -> str:
        """Keep a profile of the run; returns the name of the file that holds `content`. ParseError: it is none."""
        ...

    async def readings(self) -> KeepReadings | None:
        """What keeps the checks of the run's hosts; None when nobody asked for any, or they were made."""
        ...

    async def admit(self, shown: Mapping[Role, Access]) -> None:
        """Told which machines the hosts are. HostInUse when another run has one of them."""
        ...

    async def note_leftovers(self, role: Role, found: tuple[str, ...]) -> None:
        """Told what other runs had left on a host, once it was put back."""
        ...

    async def connect(self, address: HostAddress) -> Session:
        """Log in to a host of the run. ConnectError, permanent, when its approved key is another one than at launch."""
        ...

    async def beat(self) -> bool:
        """Hold the lease for another while; True when a person asked for the end. StoreAway: it still runs."""
        ...

    async def let_go(self) -> None:
        """Hand the run over: its lease ends now, so that another worker goes on at once. StoreAway: it does not wait.

        So do all that follow.
        """
        ...

    async def conclude(self, record: Record) -> None:
        """Finish the run that this record describes. This one waits."""
        ...

    async def give_up(self, message: str, hint: str) -> None:
        """Finish a run that BenchHub itself cannot carry on with."""
        ...

    async def put_back(self) -> None:
        """Have a run that has changed nothing wait again."""
        ...

    async def taken_over(self, refused: FenceError) -> None:
        """Told that somebody refused the fence: a newer holder, or a host that has seen more than the record."""
        ...
