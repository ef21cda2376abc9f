"""Work that waits for other machines, bounded: a worker always has threads left for what beat asks all the time."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable

PLACES = 6
"""Of the 8 threads of `worker-default`."""
PLACES_OF_ONE_TEAM = 2
"""Of the places, for work that is counted by team: servers of one team that do not answer leave the others theirs."""

_lock = threading.Lock()
_taken: Counter[int | None] = Counter()
"""By team; None = what is not counted by team."""


def if_there_is_room(work: Callable[[int], object], row_id: int, *, team_id: int | None = None) -> None:
    """Do it, unless as much is under way in this process already: what is due stands in PostgreSQL and is asked again.

    Without the bound, a few addresses that do not answer held every thread, and runs of dead workers waited for them.
    With `team_id` it is counted by team, and no team has more than its part of the places.
    """
    if not _took_place(team_id):
        return
    try:
        work(row_id)
    finally:
        with _lock:
            _taken[team_id] -= 1


def _took_place(team_id: int | None) -> bool:
    with _lock:
        if _taken.total() >= PLACES or (team_id is not None and _taken[team_id] >= PLACES_OF_ONE_TEAM):
            return False
        _taken[team_id] += 1
        return True
