"""Whose messages are taken: the queues from which a worker that lives takes them, as far as this process knows."""

from __future__ import annotations

import threading
import time

from django.db import connection
from django.db.models.functions import Now

from experiments.models import Worker
from experiments.registry.workers.presence import SILENT_AFTER

KEPT_S = 5.0

_lock = threading.Lock()
_seen_at_s = 0.0
_attended: frozenset[str] = frozenset()


def attended_queues() -> frozenset[str]:
    """The queues that workers take messages from now."""
    alive = Worker.objects.filter(seen_at__range=(Now() - SILENT_AFTER, Now() + SILENT_AFTER))
    return frozenset(name for queues in alive.values_list("queues", flat=True) for name in queues)


def is_attended(queue: str) -> bool:
    """Whether somebody takes messages from the queue, as seen within the last seconds. For the thread of the outbox."""
    global _attended, _seen_at_s
    with _lock:
        if time.monotonic() - _seen_at_s > KEPT_S:
            try:
                _attended = attended_queues()
            finally:
                connection.close()
            _seen_at_s = time.monotonic()
        return queue in _attended
