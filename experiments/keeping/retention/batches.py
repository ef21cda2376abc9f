"""How long a round of cleaning up goes on: batch after batch, each a transaction of its own, within a bounded time."""

from __future__ import annotations

import time
from collections.abc import Iterator

from agents.working.lease import handing_over

MOST_S = 300.0
"""Of one kind of batches in one round: less than half of the hour until the next round for all kinds together."""


def while_there_is_time() -> Iterator[None]:
    """Until the time of a round is over or the worker is told to stop: the next round goes on."""
    until_s = time.monotonic() + MOST_S
    while time.monotonic() < until_s and not handing_over.is_set():
        yield
