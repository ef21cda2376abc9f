"""The outbox: what is due stands in PostgreSQL; the message to a worker is a hint that may be lost."""

from __future__ import annotations

import logging
from typing import Any

from django.db import transaction

from experiments.models import Run

logger = logging.getLogger(__name__)

HINT_EXPIRES_S = 15
"""A hint is worth nothing once the dispatcher has sent the next one."""


def announce(run: Run) -> None:
    """Tell the workers about a run once the transaction is committed; the dispatcher repeats what gets lost."""
    run_id = run.pk
    transaction.on_commit(lambda: hint(run_id), robust=True)  # what is stored is done, whatever becomes of the hint


def hint(run_id: int) -> None:
    """Say that a run is due."""
    from experiments.tasks import execute_run

    send(execute_run, run_id)


def send(task: Any, row_id: int) -> None:
    """Hand a task its row. A broker that is down delays it until the next dispatch; it never fails the request."""
    try:
        task.apply_async((row_id,), retry=False, expires=HINT_EXPIRES_S)
    except (OSError, task.OperationalError) as error:
        logger.warning("%s %s: the broker took no message (%s); the dispatcher will send it", task.name, row_id, error)
