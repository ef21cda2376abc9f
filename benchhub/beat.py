"""What Celery beat does over and over; PostgreSQL has the truth, so each of these may be missed.

Nothing here names a time of day: an `expires` would be judged by the clock of whoever takes the message.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

INTERVALS_S = {
    "dispatch": 5,
    "reap": 10,
    "launch_due": 10,
    "deliver_due": 10,
    "watch_trends": 300,
    # Every hour, in short transactions and for a bounded time (`keeping.retention.batches`): what is left can wait.
    "clean_up": 3600,
    "back_up": 900,
}
"""Task of `experiments.tasks` -> seconds between two ticks."""
CANARY_S = 30
CANARY = "experiments.tasks.canary"


def entries(queues: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The schedule in Celery's form, with a canary through each of the queues."""
    ticks = {name.replace("_", "-"): _entry(name, every_s, "default") for name, every_s in INTERVALS_S.items()}
    return ticks | {f"canary-{queue}": canary_entry(queue) for queue in queues}


def canary_entry(queue: str) -> dict[str, Any]:
    """A canary through the queue, in Celery's form."""
    return {**_entry("canary", CANARY_S, queue), "args": (queue,)}


def _entry(task: str, every_s: int, queue: str) -> dict[str, Any]:
    return {"task": f"experiments.tasks.{task}", "schedule": float(every_s), "options": {"queue": queue}}
