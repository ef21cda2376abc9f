"""A run's events as a stream for programs: bounded per token, and ended when the token may no longer read."""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any
from weakref import WeakSet

from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import Error, close_old_connections
from django.http import HttpRequest

from experiments.api.finding import find_run
from experiments.api.plumbing.auth import Caller, caller_of, still_allowed
from experiments.api.plumbing.limits import TooManyStreams
from experiments.registry.logs.live_feed import EventStream, stream

EVENT_STREAM = "text/event-stream"
RECHECK_S = 15.0
"""How often a stream asks whether its caller may still read; a quiet one asks with its next sign of life."""
EXTRA: dict[str, Any] = {
    "responses": {
        200: {
            "content": {
                EVENT_STREAM: {
                    "schema": {
                        "type": "string",
                        "description": "`id:` is the sequence number, `data:` the event with its payload laid flat and "
                        "without what may be megabytes; then `event: end`",
                    }
                }
            }
        }
    }
}
"""For the schema of an operation that may answer with `follow`."""


@dataclass(frozen=True, eq=False)
class _Slot:
    """One open stream of a caller."""

    caller: str


# Weak: a stream that nobody ever began to read, as its reader went away, takes its slot with it.
_open: WeakSet[_Slot] = WeakSet()


def wants_stream(request: HttpRequest) -> bool:
    """Whether the client would rather have a stream than one page of JSON."""
    return request.get_preferred_type(["application/json", EVENT_STREAM]) == EVENT_STREAM


async def follow(request: HttpRequest, number: int, after: int) -> EventStream:
    """The run's events after `after` and those to come. TooManyStreams when the caller has too many open."""
    caller = caller_of(request)
    run = await sync_to_async(find_run)(caller.member, number)
    slot = _take_slot(caller)
    parts = stream(run.pk, after, run.last_seq, not run.is_live)
    return EventStream(_while_allowed(caller, slot, parts))


def _take_slot(caller: Caller) -> _Slot:
    slot = _Slot(caller.token_id or f"user {caller.member.user_id}")
    most = int(settings.BENCHHUB_API_STREAMS)
    if 0 < most <= sum(one.caller == slot.caller for one in _open):
        raise TooManyStreams(most)
    _open.add(slot)
    return slot


async def _while_allowed(caller: Caller, slot: _Slot, parts: AsyncGenerator[str, None]) -> AsyncGenerator[str, None]:
    looked_s = time.monotonic()
    try:
        async with contextlib.aclosing(parts):
            async for part in parts:
                if time.monotonic() - looked_s >= RECHECK_S:
                    if not await sync_to_async(_may_still_read, thread_sensitive=False)(caller):
                        return
                    looked_s = time.monotonic()
                yield part
    finally:
        _open.discard(slot)


def _may_still_read(caller: Caller) -> bool:
    try:
        return still_allowed(caller)
    except Error:
        return False  # the client asks again, and is told then what is the matter
    finally:
        close_old_connections()
