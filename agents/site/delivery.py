"""Events of one run reach the centre in their order and in batches; some wait until they are there, some do not."""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from agents.events import AnyEvent, Logged, Samples, to_json
from agents.site.door import Door, patiently
from agents.site.spool import Spool, aged
from agents.site.wire import Stored
from agents.working.showing import Showing
from agents.working.storable import storable

MOST_EVENTS = 500
MOST_BYTES = 1_000_000
"""Of the events of a batch, unless it is one: with their ages less than the 1 MiB that nginx takes by itself."""
MOST_WAITING_BYTES = 64 << 20
"""On their way at a time: with the link away for an hour, a run with many readings takes as much of the disk."""

T = TypeVar("T")


@dataclass(frozen=True)
class Noted:
    """An event as JSON, and when it happened by this process's monotonic clock."""

    line: bytes
    at_s: float


class Delivery:
    """Whatever leaves a state waits for the centre: no other worker may take the run up without knowing of it.

    Readings and lines of logs do not: while the link is away they are written down here, and the load goes on. Where
    they cannot be written down they wait, too, so that the memory holds few of them.
    """

    def __init__(self, door: Door, run_id: int, fence: int, last_seq: int, spool: Spool, patience_s: float) -> None:
        self._door, self._run_id = door, run_id
        self._fence, self._spool, self._patience_s = fence, spool, patience_s
        self._showing = Showing()
        self._waiting: deque[Noted] = deque()
        self._waiting_bytes = 0
        self._seq = last_seq
        self._delivered = last_seq
        self._changed = asyncio.Condition()
        self._error: BaseException | None = None
        self._task: asyncio.Task[None] | None = None

    async def store(self, event: AnyEvent) -> None:
        """Number the event, write it down and send it. Raises what the delivery failed of: FenceError, StoreLost."""
        line = json.dumps(storable(to_json(self._showing.fit(event)))).encode()
        async with self._changed:
            self._raise()
            if not self._waiting:
                self._spool.delivered(self._seq + 1)
            is_written = self._spool.add(line)
            self._seq += 1
            seq = self._seq
            self._waiting.append(Noted(line, time.monotonic()))
            self._waiting_bytes += len(line)
            if self._task is None:
                self._task = asyncio.create_task(self._deliver())
            self._changed.notify_all()
            may_wait = isinstance(event, Samples | Logged) and is_written
            may_go_on = may_wait and self._waiting_bytes < MOST_WAITING_BYTES
            while not may_go_on and self._delivered < seq:
                await self._changed.wait()
                self._raise()

    async def flush(self) -> None:
        """Return when all that was stored is at the centre."""
        async with self._changed:
            while self._delivered < self._seq:
                self._raise()
                await self._changed.wait()

    async def close(self) -> Path | None:
        """Send nothing any more. Returns the file of what is not delivered, None when all is."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._spool.close(keep=self._delivered < self._seq)
        return self._spool.path if self._delivered < self._seq else None

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error

    async def _deliver(self) -> None:
        try:
            while True:
                async with self._changed:
                    while not self._waiting:
                        await self._changed.wait()
                    batch = first_batch(self._waiting, lambda noted: len(noted.line))
                await self._send(batch)
                async with self._changed:
                    for noted in batch:
                        self._waiting.popleft()
                        self._waiting_bytes -= len(noted.line)
                    self._delivered += len(batch)
                    self._changed.notify_all()
        except Exception as error:  # whoever stores next is told
            async with self._changed:
                self._error = error
                self._changed.notify_all()

    async def _send(self, batch: list[Noted]) -> None:
        first = self._delivered + 1

        def once() -> Stored:
            now_s = time.monotonic()  # of this try
            lines = (aged(noted.line, now_s - noted.at_s) for noted in batch)
            return send_events(self._door, self._run_id, self._fence, first, lines)

        await patiently(once, patience_s=self._patience_s)


def first_batch(waiting: Iterable[T], bytes_of: Callable[[T], int]) -> list[T]:
    """As many of the events, from the first one on, as are told at a time."""
    batch: list[T] = []
    size = 0
    for one in waiting:
        size += bytes_of(one)
        if batch and (len(batch) == MOST_EVENTS or size > MOST_BYTES):
            break
        batch.append(one)
    return batch


def send_events(
    door: Door, run_id: int, fence: int, first: int, lines: Iterable[bytes], *, left: bool = False
) -> Stored:
    """One batch; repeating it changes nothing. `left`: nobody works on the run here any more."""
    query = {"fence": str(fence), "first": str(first), **({"left": "true"} if left else {})}
    return door.send(Stored, "POST", f"/runs/{run_id}/events", b"\n".join(lines), query=query)
