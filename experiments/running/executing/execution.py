"""Executes claimed runs in a worker: holds the lease, feeds the recorder, lets the runner work."""

from __future__ import annotations

import logging
import os
import socket
import threading
import time

from asgiref.sync import async_to_sync
from django.conf import settings

from agents.base.clock import set_run_clock
from agents.base.errors import MISTAKE_HINT, FenceError, HostInUse
from agents.base.log_context import bound
from agents.events import Logged
from agents.record import Record
from agents.running.canary_checks import CanaryReading
from agents.running.control import KeepReadings
from experiments.models import Run
from experiments.registry.connections import give_back, lent
from experiments.registry.database_clock import database_clock
from experiments.registry.errors import DATABASE_AWAY
from experiments.registry.hosts import canaries
from experiments.registry.hosts.driver_sets import hosts_by_role
from experiments.registry.workers.outbox import hint
from experiments.registry.workers.tallies import count
from experiments.running.ending.conclusion import conclude, give_up
from experiments.running.executing.admission import put_back
from experiments.running.executing.connecting import runner_for, with_database
from experiments.running.executing.lease import UNKNOWN_HOLDER_HINT, HandedOver, Heart, handing_over
from experiments.running.executing.older_database import note_older_database
from experiments.running.executing.recorder import Recorder
from experiments.running.queue.dispatch import claim_next

logger = logging.getLogger(__name__)

MAX_ATTEMPTS = 50
"""Workers that may begin with one run: one that kills each of them must come to an end, too."""

TAKEN_OVER = (
    "Another worker took this run over: the one before it has stopped or was silent. "
    "What ran on the hosts went on; its readings meanwhile are missing."
)


def worker_name() -> str:
    return f"{socket.gethostname()}:{os.getpid()}:{threading.get_native_id()}"


def execute_next() -> bool:
    """Claim and execute one run, to its end or until it is handed over. False when there was none to claim."""
    if handing_over.is_set():
        return False
    run = _turns.claim()
    if run is None:
        return False
    with bound(run=run.pk, fence=run.fence):
        try:
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
    def claim(self) -> Run | None:
        asked_s = time.monotonic()
        with self.one:
            if self._in_vain_s > asked_s:
                return None
            began_s = time.monotonic()
            run = claim_next(worker_name(), settings.BENCHHUB_SITE)
            if run is None:
                self._in_vain_s = began_s
            else:
                took_ms = 1000 * (time.monotonic() - began_s)
                logger.info(
                    "run %s (#%s): claimed with fence %s, attempt %s, in %.0f ms",
                    run.pk, run.number, run.fence, run.attempts, took_ms,
                )  # fmt: skip
            return run


_turns = Turns()


def _execute_claimed(run: Run) -> bool:
    if run.attempts > MAX_ATTEMPTS:
        give_up(
            run.pk, run.fence, f"{MAX_ATTEMPTS} workers began with this run and none came to its end.", MISTAKE_HINT
        )
        return True
    try:
        if run.attempts > 1:
            lent(count)("adoptions")
        async_to_sync(_execute)(run)
    except FenceError as error:
        _taken_over(run, error)
    except HostInUse as error:
        logger.warning("run %s: put back into the queue: %s", run.pk, error)
        put_back(run.pk, run.fence)
    except HandedOver:
        logger.info("run %s: handed over", run.pk)
        hint(run.pk)
    except DATABASE_AWAY as error:
        logger.warning("run %s: the database is away (%s); the run is adopted when its lease is over", run.pk, error)
        return False
    except Exception:
        logger.exception("run %s: given up, in a way that nobody foresaw", run.pk)
        give_up(run.pk, run.fence, "BenchHub made a mistake and could not carry on with this run.", MISTAKE_HINT)
    return True


def _taken_over(run: Run, error: FenceError) -> None:
    """Stop; but when this database knows of no newer holder, the host was used by one whom it does not know.

    After the restore of a backup that is a run of the time after the dump: this one is taken up again under a greater
    fence, and what the other has left is put back.
    """
    if Run.objects.filter(pk=run.pk, fence=run.fence).exclude(state=Run.State.FINISHED).exists():
        if note_older_database(run.team, f"run #{run.number}", error):
            Recorder(run.pk, run.fence).let_go()
            hint(run.pk)
            return
        give_up(run.pk, run.fence, error.message, UNKNOWN_HOLDER_HINT, doubt="somebody else works on it")
        return
    logger.warning("run %s: another worker took over; this one stops", run.pk)


async def _execute(run: Run) -> None:
    set_run_clock(await with_database(run, database_clock))
    recorder = Recorder(run.pk, run.fence)
    record: Record = await with_database(run, recorder.record)
    if run.attempts > 1:
        await with_database(run, recorder.store, Logged("runner", (TAKEN_OVER,), "warning"))
    heart = Heart(recorder)
    runner = await runner_for(
        run,
        recorder,
        record,
        cancelled=lambda: heart.cancelled,
        patience_s=settings.BENCHHUB_PATIENCE_S,
        keep_readings=await with_database(run, _canaries_of, run),
    )
    await heart.hold(runner.run())
    await with_database(run, conclude, run.pk, run.fence, record)


def _canaries_of(run: Run) -> KeepReadings | None:
    """What keeps the checks of the run's hosts; None when nobody asked for any, or they were made."""
    hosts = hosts_by_role(run)
    if run.experiment is None or not canaries.are_due(run.experiment, hosts):
        return None

    async def keep(readings: tuple[CanaryReading, ...]) -> None:
        await with_database(run, canaries.keep_readings, readings, hosts, run.experiment)

    return keep
