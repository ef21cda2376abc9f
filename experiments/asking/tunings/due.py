"""Tuning searches whose time has come: the pause before a confirmation is over, or nobody works out what follows."""

from __future__ import annotations

from datetime import timedelta

from django.db.models import Exists, OuterRef
from django.db.models.functions import Now

from experiments.asking.tunings.live import TUNINGS
from experiments.models import Tuning, TuningTrial

MOST_AT_ONCE = 20
OTHERS_WORK_S = 30.0
"""For so long whoever ended a trial is left alone to work out what follows."""


def go_on_due(*, after_s: float = OTHERS_WORK_S) -> None:
    """Confirm what is due, and go on with searches of which no trial was under way for `after_s` seconds."""
    # By chance: those that fail each time keep no other from its turn.
    running = Tuning.objects.filter(state=Tuning.State.RUNNING).order_by("?")
    for tuning_id in running.filter(paused=True, confirms_at__lte=Now()).values_list("pk", flat=True)[:MOST_AT_ONCE]:
        _confirm(tuning_id)
    launched = TuningTrial.objects.filter(tuning=OuterRef("pk")).exclude(run=None)
    is_open = launched.filter(result=TuningTrial.Result.NONE)
    is_new = launched.filter(run__finished_at__gt=Now() - timedelta(seconds=after_s))
    # What waits for a quota has a sentence, and is tried again by the engine.
    waiting = running.filter(~Exists(is_open), ~Exists(is_new), paused=False, sentence="")
    for tuning_id in waiting.values_list("pk", flat=True)[:MOST_AT_ONCE]:
        TUNINGS.work_out(tuning_id)


def _confirm(tuning_id: int) -> None:
    """End the pause before the confirmation, unless somebody did meanwhile."""
    with TUNINGS.held_or_stopped(tuning_id, "when its confirmation was due") as locked:
        if locked.state == Tuning.State.RUNNING and locked.paused and locked.confirms_at is not None:
            locked.paused = False
            TUNINGS.take_up(locked)
