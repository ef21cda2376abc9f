"""Events of one run reach the centre in their order and in batches; some wait until they are there, some do not."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from pathlib import Path

from agents.events import AnyEvent, Logged, Samples, to_json
from agents.site.door import Door, patiently
from agents.site.spool import Spool
from agents.site.wire import Stored
from agents.working.showing import Showing
from agents.working.storable import storable

MOST_EVENTS = 500
MOST_BYTES = 1 << 20
MOST_WAITING_BYTES = 64 << 20
"""On their way at a time: with the link away for an hour, a run with many readings takes as much of the disk."""


class Delivery:
    """Whatever leaves a state waits for the centre: no other worker may take the run up without knowing of it.

    Readings and lines of logs do not: while the link is away they are written down here, and the load goes on.
    """

    def __init__(self, door: Door, run_id: int, fence: int, last_seq: int, spool: Spool, patience_s: float) -> None:
        self._door, self._run_id = door, run_id
        self._fence, self._spool, self._patience_s = fence, spool, patience_s
        self._showing = Showing()
        self._waiting: deque[bytes] = deque()
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
            self._seq += 1
            seq = self._seq
            self._spool.add(line)
            self._waiting.append(line)
            self._waiting_bytes += len(line)
            if self._task is None:
                self._task = asyncio.create_task(self._deliver())
            self._changed.notify_all()
            may_go_on = isinstance(event, Samples | Logged) and self._waiting_bytes < MOST_WAITING_BYTES
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
                    batch = self._batch()
                await self._send(batch)
                async with self._changed:
                    for line in batch:
                        self._waiting.popleft()
                        self._waiting_bytes -= len(line)
                    self._delivered += len(batch)
                    if not self._waiting:
                        self._spool.delivered(self._seq + 1)
                    self._changed.notify_all()
        except Exception as error:  # whoever stores next is told
            async with self._changed:
                self._error = error
                self._changed.notify_all()

    def _batch(self) -> list[bytes]:
        batch: list[bytes] = []
        size = 0
        for line in self._waiting:
            if batch and (len(batch) == MOST_EVENTS or size + len(line) > MOST_BYTES):
                break
            batch.append(line)
            size += len(line)
        return batch

    async def _send(self, batch: list[bytes]) -> None:
        first, body = self._delivered + 1, b"\n".join(batch)
        await patiently(
            lambda: send_events(self._door, self._run_id, self._fence, first, body), patience_s=self._patience_s
        )


def send_events(door: Door, run_id: int, fence: int, first: int, body: bytes) -> Stored:
    """One batch, a line each; repeating it changes nothing."""
    return door.send(Stored, "POST", f"/runs/{run_id}/events", body, query={"fence": str(fence), "first": str(first)})
