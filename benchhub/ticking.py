"""When beat sends what: by the time that passes in its own process, never by a time of day.

Celery's own scheduler keeps the times of day of its last ticks, in a file beside it: a clock that is set back silences
it for as long as the step, restarts or not.
"""

from __future__ import annotations

import copy
import logging
import time
from typing import Any

from celery.beat import ScheduleEntry, Scheduler
from django.conf import settings
from django.db import Error, connection

from benchhub.beat import CANARY, CANARY_S, canary_entry
from experiments.keeping.operating import canaries
from experiments.keeping.operating.broker import look_at_broker
from experiments.keeping.operating.watched import watched_queues
from experiments.models import CENTRAL
from experiments.registry.workers.queues import declared, queues_of, site_of

logger = logging.getLogger(__name__)

MOST_WAITING = 200
"""Messages in a queue above which no tick is added: the same ones wait there already, and nobody takes them."""


class Ticker(Scheduler):  # type: ignore[misc]
    """Sends each tick at the start, then every so many seconds of the monotonic clock; remembers nothing beyond that.

    A beat that was frozen sends each of them once and goes on. The queues of sites get their canaries beside those of
    the schedule, as sites come and go.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._due_s: dict[str, float] = {}
        self._watched = list(queues_of(CENTRAL))
        super().__init__(*arguments, **options)

    def tick(self, **_options: Any) -> float:
        """Send what is due; the seconds until something is next."""
        if self._is_due("sites", CANARY_S):
            self._look_for_sites()
        for name, entry in self.schedule.items():
            if self._is_due(name, entry.schedule.seconds):
                self._send(entry)
        return max(0.0, min(self._due_s.values()) - time.monotonic())

    def _is_due(self, name: str, every_s: float) -> bool:
        if time.monotonic() < self._due_s.get(name, 0.0):
            return False
        self._due_s[name] = time.monotonic() + every_s
        return True

    def _look_for_sites(self) -> None:
        try:
            self._watched = watched_queues()
        except Error as error:
            logger.warning("the sites are not known anew: the database is away (%s)", error)
        finally:
            connection.close()  # beat keeps none: it may sleep longer than a firewall remembers
        for name in self._watched:
            if site_of(name) != CENTRAL:
                entry = canary_entry(name)
                self._send(self.Entry(name=f"canary-{name}", app=self.app, **entry))

    def _send(self, entry: ScheduleEntry) -> None:
        name = entry.options["queue"]
        if entry.task == CANARY:
            canaries.sent(name)  # also when the broker takes none, or is full: that is what it is there to show
            connection.close()
        if look_at_broker(self._watched).messages.get(name, 0) < MOST_WAITING:
            sent = copy.copy(entry)
            sent.options = {**entry.options, "queue": declared(name, settings.CELERY_BROKER_URL)}
            self.apply_entry(sent, producer=self.producer)
