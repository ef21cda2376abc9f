"""Waiting that does not count the time for which this process itself stood still: frozen, swapped out, suspended."""

from __future__ import annotations

import asyncio
import time
from typing import Any

SLICE_S = 1.0
"""How often is looked whether this process has stood still."""


async def wait_for(task: asyncio.Task[Any], limit_s: float) -> float:
    """Wait for its end, at most that long; returns for how long this process stood still meanwhile.

    That time does not count: what came from outside while the process was frozen is read before anything is judged.
    """
    stood_still_s, left_s = 0.0, limit_s
    while left_s > 0:
        slice_s, begun_s = min(left_s, SLICE_S), time.monotonic()
        done, _ = await asyncio.wait({task}, timeout=slice_s)
        late_s = time.monotonic() - begun_s - slice_s
        stood_still_s += late_s if late_s > SLICE_S else 0.0  # less is the event loop, and it adds up over an hour
        if done:
            break
        left_s -= slice_s
    return stood_still_s
