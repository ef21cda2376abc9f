"""A run's events as server-sent events: one poller per run and process, however many pages and clients follow it."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import json
import logging
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from dataclasses import dataclass
from itertools import takewhile

from asgiref.sync import sync_to_async
from django.db import Error, close_old_connections
from django.http import StreamingHttpResponse

from experiments.models import Run, RunEvent
from experiments.registry.logs.shown_events import shown

logger = logging.getLogger(__name__)

POLL_S = 0.25
HEARTBEAT_S = 15.0
STREAM_S = 900.0
"""A stream ends after this time and its reader comes back by itself: rights are looked at again."""
BATCH = 500
KEPT_EVENTS = 1000
HEAVY = {"load_reported": ("output", "report"), "snapshot_taken": ("values",), "configuration_captured": ("values",)}
"""What stays out of the stream: no page shows it while a run goes on, and it may be megabytes."""


@dataclass(frozen=True)
class Batch:
    """Events after a sequence number; `finished` when there will be no more."""

    events: tuple[tuple[int, str], ...]
    finished: bool


def read_events(run_id: int, after: int) -> Batch:
    """The next events of a run as (sequence number, JSON), and whether the run has ended after them."""
    finished = Run.objects.filter(pk=run_id, state=Run.State.FINISHED).exists()
    rows = RunEvent.objects.filter(run_id=run_id, seq__gt=after).order_by("seq")[:BATCH]
    events = tuple((row.seq, as_json(row)) for row in rows)
    return Batch(events, finished and len(events) < BATCH)


def as_json(row: RunEvent) -> str:
    heavy = HEAVY.get(row.kind, ())
    light = {key: value for key, value in shown(row.kind, row.payload).items() if key not in heavy}
    return json.dumps({**light, "kind": row.kind, "seq": row.seq, "at": row.at.isoformat()}, separators=(",", ":"))


def _read_in_own_thread(run_id: int, after: int) -> Batch:
    """`read_events` for a thread that no request owns: nobody else would close its connection."""
    try:
        return read_events(run_id, after)
    finally:
        close_old_connections()


class Feed:
    """The newest events of one run, read by one task for all readers of this process that follow it."""

    def __init__(self, run_id: int, after: int) -> None:
        self.run_id = run_id
        self.newest = after
        self.ended = False
        self.followers = 0
        self.events: deque[tuple[int, str]] = deque(maxlen=KEPT_EVENTS)
        self._changed = asyncio.Event()
        # A context of its own: the one of the request that happens to come first ends with that request.
        self._task = asyncio.get_running_loop().create_task(self._poll(), context=contextvars.Context())

    async def _poll(self) -> None:
        while not self.ended:
            try:
                batch = await sync_to_async(_read_in_own_thread, thread_sensitive=False)(self.run_id, self.newest)
            except Error as error:
                logger.warning("run %s: its events could not be read, trying again (%s)", self.run_id, error)
            else:
                if batch.events:
                    self.events.extend(batch.events)
                    self.newest = batch.events[-1][0]
                self.ended = batch.finished
                if batch.events or batch.finished:
                    self._wake()
            await asyncio.sleep(POLL_S)

    def _wake(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def since(self, after: int) -> list[tuple[int, str]] | None:
        """Events after `after`, or None when they are no longer kept and must be read from the database."""
        if after >= self.newest:
            return []
        if not self.events or self.events[0][0] > after + 1:
            return None
        newest_first = takewhile(lambda event: event[0] > after, reversed(self.events))
        return list(newest_first)[::-1]

    async def wait(self, timeout_s: float) -> bool:
        """Wait for news; False when there was none in time."""
        try:
            await asyncio.wait_for(self._changed.wait(), timeout_s)
        except TimeoutError:
            return False
        return True

    def stop(self) -> None:
        self._task.cancel()


_feeds: dict[int, Feed] = {}


@contextlib.contextmanager
def following(run_id: int, newest: int) -> Iterator[Feed]:
    """The run's feed, started by the first follower and stopped by the last."""
    feed = _feeds.get(run_id)
    if feed is None or feed.ended:
        feed = _feeds[run_id] = Feed(run_id, newest)
    feed.followers += 1
    try:
        yield feed
    finally:
        feed.followers -= 1
        if feed.followers == 0:
            feed.stop()
            if _feeds.get(run_id) is feed:
                del _feeds[run_id]


async def stream(run_id: int, after: int, newest: int, finished: bool) -> AsyncGenerator[str, None]:
    """The run's events after `after` in the text/event-stream format, then `end` once the run is finished."""
    yield "retry: 2000\n\n"
    if finished:
        async for part in _replay(run_id, after):
            yield part
        return
    until = time.monotonic() + STREAM_S
    with following(run_id, newest) as feed:
        while time.monotonic() < until:
            events = feed.since(after)
            if events is None:
                batch = await sync_to_async(_read_in_own_thread, thread_sensitive=False)(run_id, after)
                events = list(batch.events)
            if events:
                yield "".join(f"id: {seq}\ndata: {data}\n\n" for seq, data in events)
                after = events[-1][0]
            elif feed.ended:
                yield "event: end\ndata: {}\n\n"
                return
            elif not await feed.wait(HEARTBEAT_S):
                yield ": still here\n\n"


async def _without_connection(parts: AsyncGenerator[str, None]) -> AsyncGenerator[str, None]:
    """The parts, once the request has given its database connection back: it would hold it as long as the stream."""
    await sync_to_async(close_old_connections)()
    async with contextlib.aclosing(parts):
        async for part in parts:
            yield part


async def _replay(run_id: int, after: int) -> AsyncIterator[str]:
    while True:
        batch = await sync_to_async(_read_in_own_thread, thread_sensitive=False)(run_id, after)
        if batch.events:
            yield "".join(f"id: {seq}\ndata: {data}\n\n" for seq, data in batch.events)
            after = batch.events[-1][0]
        if batch.finished or not batch.events:
            yield "event: end\ndata: {}\n\n"
            return


class EventStream(StreamingHttpResponse):
    """The answer that sends these parts as they come, and holds no database connection meanwhile."""

    def __init__(self, parts: AsyncGenerator[str, None]) -> None:
        self._content = _without_connection(parts)
        headers = {"Cache-Control": "no-cache, no-store", "X-Accel-Buffering": "no"}
        super().__init__(self._content, content_type="text/event-stream", headers=headers)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        # Django itself would leave the parts of a reader who has gone to the garbage collector.
        async with contextlib.aclosing(self._content):
            async for part in self._content:
                yield part.encode()
