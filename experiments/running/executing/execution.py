"""Claims runs for a worker that reaches the database, and has them executed."""

from __future__ import annotations

import logging
import threading
import time

from asgiref.sync import async_to_sync
from django.conf import settings

from agents.base.errors import MISTAKE_HINT
from agents.base.log_context import bound
from agents.working.execution import execute
from agents.working.lease import handing_over
from agents.working.store import StoreAway
from experiments.models import Run
from experiments.registry.connections import give_back, lent
from experiments.registry.errors import DATABASE_AWAY
from experiments.registry.workers.outbox import hint
from experiments.registry.workers.presence import process_name
from experiments.registry.workers.tallies import count
from experiments.running.ending.conclusion import give_up
from experiments.running.executing.claimed_run import claimed
from experiments.running.executing.database_store import DatabaseStore
from experiments.running.queue.dispatch import Claim, claim

logger = logging.getLogger(__name__)


def worker_name() -> str:
    return f"{process_name()}:{threading.get_native_id()}"


def execute_next() -> bool:
    """Claim and execute one run, to its end or until it is handed over. False when there was none to claim."""
    if handing_over.is_set():
        return False
    found = _turns.claim()
    if found is None:
        return False
    run = found.run
    with bound(run=run.pk, fence=run.fence):
        try:
            if found.more_due:  # else only beat would wake others, one of a site every five seconds
                hint(run.pk)
            return _execute_claimed(run)
        finally:
            give_back()


class Turns:
    """The threads of this process claim one after the other: the database would make each of them wait, with a
    connection of its own.

    Who waited while another one looked, and found nothing, need not look again.
    """

    def __init__(self) -> None:
        self.one = threading.Lock()
        self._in_vain_s = float("-inf")

    @lent
    def claim(self) -> Claim | None:
        asked_s = time.monotonic()
        with self.one:
            if self._in_vain_s > asked_s:
                return None
            began_s = time.monotonic()
            found = claim(worker_name(), settings.BENCHHUB_SITE)
            if found is None:
                self._in_vain_s = began_s
            return found


_turns = Turns()


def _execute_claimed(run: Run) -> bool:
    try:
        if run.attempts > 1:
            lent(count)("adoptions")
        async_to_sync(execute)(claimed(run), DatabaseStore(run))
    except (StoreAway, *DATABASE_AWAY) as error:
        logger.warning("run %s: the database is away (%s); the run is adopted when its lease is over", run.pk, error)
        return False
    except Exception:
        logger.exception("run %s: given up, in a way that nobody foresaw", run.pk)
        give_up(run.pk, run.fence, "BenchHub made a mistake and could not carry on with this run.", MISTAKE_HINT)
    return True
