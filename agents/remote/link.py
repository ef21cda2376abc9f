"""A session that survives cuts: reconnects with back-off and repeats the command (every one here is repeatable)."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeVar

from agents.base.command import NTH_CONNECTION, Command, CommandResult
from agents.base.errors import ConnectError
from agents.base.session import Session, Stream

FIRST_PAUSE_S = 0.25
LONGEST_PAUSE_S = 10.0
PATIENCE_S = 600.0
"""How long a host may stay away before a run gives it up."""
OPENING_TRIES = 3
"""Logins at the start of a run: a packet lost in a handshake must not fail it, and a wrong address is soon told."""

T = TypeVar("T")


class Link:
    """Implements Session over connections that may break.

    A command whose connection dies has an unknown outcome; because each command of a run may be repeated (it reads,
    sets a value, or starts under a start token), the link sends it again on the next connection. `patience_s` is asked
    anew at each failure and counts from the loss: once it is used up, every further command is tried once only.
    """

    def __init__(
        self,
        name: str,
        connect: Callable[[], Awaitable[Session]],
        *,
        patience_s: Callable[[], float] = lambda: PATIENCE_S,
        on_trouble: Callable[[str], Awaitable[None]] | None = None,
    ) -> None:
        self._name = name
        self._connect = connect
        self._patience_s = patience_s
        self._on_trouble = on_trouble
        self._session: Session | None = None
        self._connections = 0
        self._opening = asyncio.Lock()
        self._lost_at_s: float | None = None

    @property
    def host(self) -> str:
        return self._name

    async def open(self) -> None:
        """Connect now, in a few tries: what cannot be reached at the start of a run is told before anything else."""
        for tries in range(1, OPENING_TRIES + 1):
            try:
                await self._current()
                return
            except ConnectError as error:
                if error.permanent or tries == OPENING_TRIES:
                    raise
            await asyncio.sleep(FIRST_PAUSE_S * 2**tries * random.uniform(0.7, 1.3))  # noqa: S311 - jitter

    async def close(self) -> None:
        if self._session is not None:
            session, self._session = self._session, None
            await session.close()

    async def run(self, command: Command, *, max_output_bytes: int = 1 << 20) -> CommandResult:
        async def attempt(session: Session) -> CommandResult:
            result = await session.run(self._stamped(command), max_output_bytes=max_output_bytes)
            if result.exit_status is None:
                raise ConnectError(f"The connection to {self._name} ended under a command.")
            return result

        return await self._patiently(attempt)

    async def mutate(self, command: Command, *, max_output_bytes: int = 1 << 20) -> CommandResult:
        return await self.run(command, max_output_bytes=max_output_bytes)

    async def start(self, command: Command) -> Stream:
        return await self._patiently(lambda session: session.start(command))

    async def put(self, path: str, data: bytes, *, mode: int = 0o600) -> None:
        await self._patiently(lambda session: session.put(path, data, mode=mode))

    async def get(self, path: str, *, offset: int = 0, max_bytes: int = 1 << 20) -> bytes:
        return await self._patiently(lambda session: session.get(path, offset=offset, max_bytes=max_bytes))

    async def _patiently(self, attempt: Callable[[Session], Awaitable[T]]) -> T:
        pause_s = FIRST_PAUSE_S
        failing_since_s: float | None = None
        while True:
            session: Session | None = None
            try:
                session = await self._current()
                result = await attempt(session)
            except ConnectError as error:
                await self._drop(session)
                lost_at_s = self._lost_at_s  # another command may get through while the trouble is told
                if lost_at_s is None:
                    lost_at_s = self._lost_at_s = time.monotonic()
                    if self._on_trouble is not None and not error.permanent:
                        why = error.message.rstrip(".")
                        tries = f"Trying again for up to {self._patience_s():.0f} s."
                        await self._on_trouble(f"Lost {self._name}: {why}. {tries}")
                # Others may get through in between, and this command never: its own time counts as well.
                failing_since_s = min(failing_since_s or lost_at_s, lost_at_s)
                if error.permanent or time.monotonic() - failing_since_s + pause_s > self._patience_s():
                    raise
            else:
                lost_at_s, self._lost_at_s = self._lost_at_s, None
                if lost_at_s is not None and self._on_trouble is not None:
                    await self._on_trouble(f"{self._name} is back after {time.monotonic() - lost_at_s:.0f} s.")
                return result
            await asyncio.sleep(pause_s * random.uniform(0.7, 1.3))  # noqa: S311 - jitter
            pause_s = min(pause_s * 2, LONGEST_PAUSE_S)

    def _stamped(self, command: Command) -> Command:
        """The command as it goes over the connection that there is now."""
        nth = str(self._connections)
        return replace(command, argv=tuple(nth if word == NTH_CONNECTION else word for word in command.argv))

    async def _drop(self, broken: Session | None) -> None:
        """Close the session that failed, unless somebody else has put a new one in its place meanwhile."""
        if broken is not None and broken is self._session:
            await self.close()

    async def _current(self) -> Session:
        async with self._opening:
            if self._session is None:
                self._session = await self._connect()
                self._connections += 1
            return self._session
