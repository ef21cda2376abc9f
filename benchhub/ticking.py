"""When beat sends what: by the time that passes in its own process, never by a time of day.

Celery's own scheduler keeps the times of day of its last ticks, in a file beside it: a clock that is set back silences
it for as long as the step, restarts or not.
"""

from __future__ import annotations

import time
from typing import Any

from celery.beat import ScheduleEntry, Scheduler
from django.db import connection

from experiments.keeping.operating import canaries
from experiments.keeping.operating.broker import look_at_broker

MOST_WAITING = 200
"""Messages in a queue above which no tick is added: the same ones wait there already, and nobody takes them."""


class Ticker(Scheduler):  # type: ignore[misc]
    """Sends each tick at the start, then every so many seconds of the monotonic clock; remembers nothing beyond that.

    A beat that was frozen sends each of them once and goes on.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._due_s: dict[str, float] = {}
        super().__init__(*arguments, **options)

    def tick(self, **_options: Any) -> float:
        """Send what is due; the seconds until something is next."""
        for name, entry in self.schedule.items():
            if time.monotonic() >= self._due_s.get(name, 0.0):
                self._due_s[name] = time.monotonic() + entry.schedule.seconds
                self._send(entry)
        return max(0.0, min(self._due_s.values()) - time.monotonic())

    def _send(self, entry: ScheduleEntry) -> None:
        queue = entry.options["queue"]
        if entry.task == "experiments.tasks.canary":
            canaries.sent(queue)  # also when the broker takes none, or is full: that is what it is there to show
            connection.close()  # beat keeps none: it may sleep longer than a firewall remembers
        if look_at_broker().messages.get(queue, 0) < MOST_WAITING:
            self.apply_entry(entry, producer=self.producer)
