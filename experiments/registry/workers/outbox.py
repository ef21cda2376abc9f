"""The outbox: what is due stands in PostgreSQL; the message to a worker is a hint that may be lost.

Messages are sent by a thread of the process: a broker that hangs holds up nobody who has something to say.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from celery import current_app
from django.conf import settings
from django.db import connection, transaction
from kombu.exceptions import OperationalError

from experiments.models import CENTRAL, Host, Run
from experiments.registry.workers.attendance import is_attended
from experiments.registry.workers.queues import DEFAULT, RUNS, declared, queue_name
from experiments.registry.workers.tallies import count

logger = logging.getLogger(__name__)

EXECUTE_RUN = "experiments.tasks.execute_run"
RESTORE_HOST = "experiments.tasks.restore_host"
CHECK_HOST = "experiments.tasks.check_host"
TRY_HOST = "experiments.tasks.try_host"
DRY_RUN = "experiments.tasks.dry_run"
TELL_ALERT = "experiments.tasks.tell_alert"
DELIVER = "experiments.tasks.deliver_one"
SEND_TRACE = "experiments.tasks.send_trace"
READ_PROMETHEUS = "experiments.tasks.read_prometheus"
STAND_IN_FOR_BEAT = "experiments.tasks.stand_in_for_beat"

HINT_EXPIRES_S = 15
"""A hint that could not be sent for so long is dropped: the dispatcher has sent the next one.

One that was sent does not expire: that would be judged by the clock of whoever takes it.
"""
MOST_WAITING = 1000
FLUSH_S = 2.0


def announce(*runs: Run) -> None:
    """Tell the workers of their sites about runs once the transaction is committed; the dispatcher repeats what gets
    lost."""
    sites = dict(Host.objects.filter(pk__in={run.sut_id for run in runs}).values_list("pk", "site__name"))
    for run in runs:
        due = partial(hint, run.pk, sites.get(run.sut_id) or CENTRAL)
        transaction.on_commit(due, robust=True)  # what is stored is done, whatever becomes of the hint


def hint(run_id: int, site: str | None = None) -> None:
    """Say that a run is due at a site; None = at the one of this process."""
    send(EXECUTE_RUN, run_id, settings.BENCHHUB_SITE if site is None else site)


def send(task: str, row_id: int, site: str = CENTRAL) -> None:
    """Have the task of this name handed its row at a site, without waiting. What needs a host is done at the host's.

    A broker that is away delays it until dispatch, and so does a site without a worker.
    """
    _sender().put(Message(task, row_id, time.monotonic(), site))


def flush(limit_s: float = FLUSH_S) -> bool:
    """Wait until all messages of this process are sent or dropped; False when that takes too long."""
    return _sender().flush(limit_s)


@dataclass(frozen=True)
class Message:
    task: str
    row_id: int
    said_at_s: float
    site: str = CENTRAL

    @property
    def queue(self) -> str:
        return queue_name(RUNS if self.task == EXECUTE_RUN else DEFAULT, self.site)


class Sender:
    """Sends messages in order from a daemon thread; drops and counts what is too many or too old."""

    def __init__(self, publish: Callable[[Message], None] | None = None) -> None:
        self._publish = publish or _publish
        self.pid = os.getpid()
        self._waiting: deque[Message] = deque()
        self._busy = False
        self._changed = threading.Condition()
        self._dropped = 0
        threading.Thread(target=self._work, name="outbox", daemon=True).start()

    def put(self, message: Message) -> None:
        with self._changed:
            if len(self._waiting) >= MOST_WAITING:
                self._dropped += 1
                return
            self._waiting.append(message)
            self._changed.notify_all()

    def flush(self, limit_s: float) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: not self._waiting and not self._busy, limit_s)

    def _work(self) -> None:
        while True:
            with self._changed:
                self._busy = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: bool(self._waiting))
                message = self._waiting.popleft()
                self._busy = True
            if time.monotonic() - message.said_at_s > HINT_EXPIRES_S or not self._sent(message):
                self._drop(1)
            if not self._waiting:
                self._count_dropped()

    def _sent(self, message: Message) -> bool:
        try:
            self._publish(message)
        except (OSError, OperationalError) as error:
            logger.warning(
                "%s %s: the broker took no message (%s); the dispatcher will send it",
                message.task,
                message.row_id,
                error,
            )
            return False
        except Exception:  # the thread must live: without it this process would be silent for ever
            logger.exception(
                "%s %s: the message could not be sent; the dispatcher will send it", message.task, message.row_id
            )
            return False
        return True

    def _drop(self, messages: int) -> None:
        with self._changed:
            self._dropped += messages

    def _count_dropped(self) -> None:
        with self._changed:
            dropped, self._dropped = self._dropped, 0
        if not dropped:
            return
        try:
            count("hints_dropped", by=dropped)
        except Exception as error:  # whatever it is: the thread must live, and tries again
            logger.warning("%s dropped hints could not be counted yet (%s)", dropped, error)
            self._drop(dropped)
        finally:
            connection.close()


def _publish(message: Message) -> None:
    """To a site only while somebody there takes it: else its messages would pile up, and nobody would ever clear them.

    Whatever is due is said again once a worker is there.
    """
    if message.site != CENTRAL and not is_attended(message.queue):
        return
    queue = declared(message.queue, settings.CELERY_BROKER_URL)
    current_app.send_task(message.task, (message.row_id,), queue=queue, retry=False)


_lock = threading.Lock()
_of_process: Sender | None = None


def _sender() -> Sender:
    """The sender of this process; a fork has no threads and needs its own."""
    global _of_process
    with _lock:
        if _of_process is None or _of_process.pid != os.getpid():
            _of_process = Sender()
        return _of_process


@atexit.register
def _flush_at_exit() -> None:
    if _of_process is not None and _of_process.pid == os.getpid():
        _of_process.flush(FLUSH_S)
