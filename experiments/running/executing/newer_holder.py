"""What a worker does that a host has refused: somebody with a newer fence was there."""

from __future__ import annotations

import logging

from agents.base.errors import UNKNOWN_HOLDER_HINT, FenceError
from experiments.models import Run
from experiments.registry.workers.outbox import hint
from experiments.running.ending.conclusion import give_up
from experiments.running.executing.older_database import note_older_database
from experiments.running.executing.recorder import Recorder

logger = logging.getLogger(__name__)


def stop_or_go_on_above(run: Run, refused: FenceError) -> None:
    """Stop; but when this database knows of no newer holder, the host was used by one whom it does not know.

    After the restore of a backup that is a run of the time after the dump: this one is taken up again under a greater
    fence, and what the other has left is put back.
    """
    if Run.objects.filter(pk=run.pk, fence=run.fence).exclude(state=Run.State.FINISHED).exists():
        if note_older_database(run.team, f"run #{run.number}", refused):
            Recorder(run.pk, run.fence).let_go()
            hint(run.pk)
            return
        give_up(run.pk, run.fence, refused.message, UNKNOWN_HOLDER_HINT, doubt="somebody else works on it")
        return
    logger.warning("run %s: another worker took over; this one stops", run.pk)
