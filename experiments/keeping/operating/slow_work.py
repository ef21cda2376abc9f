"""Work that waits for other machines, bounded: a worker always has threads left for what beat asks all the time."""

from __future__ import annotations

import threading
from collections.abc import Callable

PLACES = 6
"""Of the 8 threads of `worker-default`."""
_places = threading.BoundedSemaphore(PLACES)


def if_there_is_room(work: Callable[[int], object], row_id: int) -> None:
    """Do it, unless as much is under way in this process already: what is due stands in PostgreSQL and is asked again.

    Without the bound, a few addresses that do not answer held every thread, and runs of dead workers waited for them.
    """
    if not _places.acquire(blocking=False):
        return
    try:
        work(row_id)
    finally:
        _places.release()
