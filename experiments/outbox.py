"""The outbox: what is due stands in PostgreSQL; the message to a worker is a hint that may be lost."""

from __future__ import annotations

import logging

from django.db import transaction

from experiments.models import Run

logger = logging.getLogger(__name__)


def announce(run: Run) -> None:
    """Tell the workers about a run once the transaction is committed; the dispatcher repeats what gets lost."""
    run_id = run.pk
    transaction.on_commit(lambda: hint(run_id))


def hint(run_id: int) -> None:
    """Send the hint. A broker that is down delays the run until the next dispatch; it never fails the request."""
    from experiments.tasks import execute_run

    try:
        execute_run.apply_async((run_id,), retry=False, expires=15)
    except OSError as error:
        logger.warning("run %s: the broker took no message (%s); the dispatcher will send it", run_id, error)
    except execute_run.OperationalError as error:
        logger.warning("run %s: the broker took no message (%s); the dispatcher will send it", run_id, error)
