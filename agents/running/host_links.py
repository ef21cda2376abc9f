"""How a run reaches its hosts: links that survive cuts, the fence, and the run's directory on each."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from agents.base.errors import ConnectError, OccupiedError
from agents.base.session import Session
from agents.events import Role
from agents.record import Record
from agents.remote.claiming import Claimant, Taken, take
from agents.remote.deadman import DeadMan
from agents.remote.fencing import FencedSession, Hold, fence_directory
from agents.remote.leftovers import Leftovers
from agents.remote.link import Link
from agents.running.control import Control
from agents.spec import RunSpec


class HostLinks:
    """Links are made at first use and kept; `on_trouble` is told of a cut in plain words."""

    def __init__(
        self,
        run_key: str,
        spec: RunSpec,
        record: Record,
        control: Control,
        on_trouble: Callable[[str], Awaitable[None]],
    ) -> None:
        self._run_key = run_key
        self._record = record
        self._control = control
        self._on_trouble = on_trouble
        self._hosts = spec.hosts
        self._journalled = frozenset(part.role for part in spec.parts)
        self._links: dict[Role, Link] = {}
        self._occupied: set[Role] = set()

    @property
    def roles(self) -> tuple[Role, ...]:
        """The parts of all hosts of the run, the SUT first."""
        return tuple(self._hosts)

    async def open(self) -> None:
        """Connect to all hosts now: what cannot be reached at the start is told before anything is changed."""
        raise_first(await asyncio.gather(*(self.link(role).open() for role in self.roles), return_exceptions=True))

    async def close(self) -> None:
        for link in self._links.values():
            await link.close()

    def link(self, role: Role) -> Link:
        """The host as it is, for looking; changes go through `session`."""
        if role not in self._links:
            address = self._hosts[role]

            async def connect() -> Session:
                return await self._control.connect(address)

            self._links[role] = Link(
                address.name, connect, patience_s=self._control.patience_now_s, on_trouble=self._on_trouble
            )
        return self._links[role]

    async def take(self, role: Role, check: Callable[[], None] = lambda: None) -> Taken:
        """The machine for this run, once no other installation of BenchHub works on it; safe to repeat.

        `check` may end the waiting. A host that was not given up in time is waited for once: each change of the way
        back would wait as long again.
        """
        control = self._control
        try:
            return await take(
                self.link(role),
                Claimant(self._run_key, role, control.deadman_s),
                Hold(control.fence, "", control.installation),
                patience_s=lambda: 0.0 if role in self._occupied else control.patience_now_s(),
                on_trouble=self._on_trouble,
                check=check,
            )
        except OccupiedError:
            self._occupied.add(role)
            raise

    def session(self, role: Role) -> FencedSession:
        """The host behind its fence. ConnectError when the run has not been there."""
        return self.behind_fence(role, self.directory(role), self._record.facts[role].claim)

    def behind_fence(self, role: Role, directory: str, claim: str) -> FencedSession:
        """The host behind the fence and the claim of the run that has `directory` there."""
        control = self._control
        place = claim.rpartition("/")[0]
        hold = Hold(control.fence, fence_directory(directory), control.installation, place, claim)
        return FencedSession(
            self.link(role), hold, role, control.patience_now_s, self._on_trouble, lambda: self.take(role)
        )

    def deadman(self, role: Role) -> DeadMan:
        """The timer that puts the host back when no worker comes any more."""
        session = self.session(role)
        after_s, changes = self._control.deadman_s, role in self._journalled
        servers, directory = self._journalled, self.directory(role)
        return DeadMan(session, directory, session.hold, after_s, journalled=changes, role=role, servers=servers)

    def leftovers(self, role: Role, *, force: bool = False) -> Leftovers:
        """What other runs have left on the host."""
        return Leftovers(self.session(role), self.directory(role), force=force)

    def directory(self, role: Role) -> str:
        """The run's own directory on the host. Raises ConnectError before the host was reached."""
        if role not in self._record.facts:
            raise ConnectError(f"{self._hosts[role].name} was not reached yet.")
        return self._record.facts[role].directory


def raise_first(results: Iterable[object]) -> None:
    """Several things were tried at once and all have ended; the first failure counts."""
    for result in results:
        if isinstance(result, BaseException):
            raise result
