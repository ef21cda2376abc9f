"""Worker processes say that they are there: a row each, renewed by a thread that no run can hold up."""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Callable, Sequence
from datetime import timedelta

from django.conf import settings
from django.db import Error, close_old_connections, connection
from django.db.models.functions import Now

from experiments.models import Worker
from experiments.registry.database_clock import clock_ahead_s

logger = logging.getLogger(__name__)

SEEN_EVERY_S = 5.0
SILENT_AFTER = timedelta(seconds=35)
"""Six signs of life missed: the process is gone, hangs, or cannot reach the database."""
FORGOTTEN_AFTER = timedelta(days=1)
MOST_NAME = 63
"""Characters of a host's name: with its site, pid and thread as many as the owner of a run may have."""


def process_name() -> str:
    """This process for the installation: host and pid, and the site before them, which may call its machines alike."""
    there = f"{socket.gethostname()[:MOST_NAME]}:{os.getpid()}"
    return f"{settings.BENCHHUB_SITE}/{there}" if settings.BENCHHUB_SITE else there


class Presence:
    """Keeps this process's row fresh from a thread of its own until `leave`, and does `beside` as often."""

    def __init__(
        self, name: str, queues: Sequence[str], slots: int, *, beside: Callable[[], None] = lambda: None
    ) -> None:
        self.name = name
        self.queues = sorted(queues)
        self.slots = slots
        self._beside = beside
        self._leaving = threading.Event()
        self._thread = threading.Thread(target=self._stay, name="presence", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def leave(self, *, patience_s: float = 10.0) -> None:
        """Take the row away: this process ends by intention. A database that is away leaves a row that grows silent."""
        self._leaving.set()
        self._thread.join(patience_s)

    def show(self) -> None:
        """Say once that this process is there, and forget who has been silent for long."""
        seen = {
            "name": self.name,
            "queues": self.queues,
            "slots": self.slots,
            "site": settings.BENCHHUB_SITE,
            "team": None,
            "version": settings.VERSION,
            "seen_at": Now(),
            "clock_ahead_s": clock_ahead_s(),
        }
        Worker.objects.update_or_create(
            process=process_name(),
            defaults=seen,
            create_defaults={**seen, "started_at": Now()},
        )
        others = Worker.objects.exclude(process=process_name())
        others.filter(seen_at__lt=Now() - FORGOTTEN_AFTER).delete()
        # The one whose place this process has taken was killed, or it would have said good-bye.
        others.filter(name=self.name, seen_at__lt=Now() - SILENT_AFTER).delete()

    def _stay(self) -> None:
        away = False
        while not self._leaving.is_set():
            try:
                self.show()
                self._beside()
                away = False
            except Error as error:
                if not away:
                    logger.warning("the database does not take this worker's sign of life (%s); trying on", error)
                away = True
            _give_connection_back()
            self._leaving.wait(SEEN_EVERY_S)
        try:
            Worker.objects.filter(process=process_name()).delete()
        except Error as error:
            logger.warning("this worker could not take its row away (%s)", error)
        _give_connection_back()


def _give_connection_back() -> None:
    """One connection for a moment every few seconds, instead of one held by each worker for ever."""
    try:
        connection.close()
    except Error:
        close_old_connections()
