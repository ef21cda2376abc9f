"""A message through each queue every 30 s: when nobody takes it, the queue is stuck, whatever the processes say."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import Error
from django.db.models import DurationField, ExpressionWrapper, F, FloatField
from django.db.models.functions import Extract, Now

from experiments.models import Canary, Run, Worker
from experiments.registry.database_clock import clock_ahead_s
from experiments.registry.workers.presence import SILENT_AFTER

logger = logging.getLogger(__name__)

STUCK_AFTER = timedelta(minutes=2)
MISSED_AFTER = timedelta(seconds=40)
"""Beat sends one every 30 s."""


@dataclass(frozen=True)
class QueueState:
    """How a queue is doing. `level`: ok, busy, unknown or stuck. `age_s`: since a message was taken from it last."""

    name: str
    level: str
    sentence: str
    sent_at: datetime | None = None
    taken_at: datetime | None = None
    age_s: float | None = None
    delay_s: float | None = None


def sent(queue: str) -> None:
    """Note that a canary is being sent. A database that is away must not stop the clock that sends it."""
    try:
        Canary.objects.update_or_create(queue=queue, defaults={"sent_at": Now(), "clock_ahead_s": clock_ahead_s()})
    except Error as error:
        logger.warning("canary of the queue %s: the database is away (%s)", queue, error)


def beat_is_silent() -> bool:
    """Whether beat has missed a canary: it stands still, or is not there."""
    return not Canary.objects.filter(sent_at__range=(Now() - MISSED_AFTER, Now() + MISSED_AFTER)).exists()


def taken(queue: str) -> None:
    """Note that a worker took the canary."""
    waited = ExpressionWrapper(Now() - F("sent_at"), output_field=DurationField())
    delay_s = Extract(waited, "epoch", output_field=FloatField())
    Canary.objects.filter(queue=queue).update(taken_at=Now(), delay_s=delay_s)


def queue_states(names: list[str], now: datetime) -> list[QueueState]:
    """Each queue in plain words, at the database's time `now`."""
    canaries = {canary.queue: canary for canary in Canary.objects.filter(queue__in=names)}
    # A time of the future is from before the clock was set back: who lives says so again within seconds.
    workers = list(Worker.objects.filter(seen_at__range=(now - SILENT_AFTER, now + SILENT_AFTER)))
    return [_state(name, canaries.get(name), [w for w in workers if name in w.queues], now) for name in names]


def _state(name: str, canary: Canary | None, workers: list[Worker], now: datetime) -> QueueState:
    if canary is None:
        return QueueState(name, "unknown", f"Beat has sent no message through the queue {name} yet.")
    age_s = (now - canary.taken_at).total_seconds() if canary.taken_at else None

    def state(level: str, sentence: str) -> QueueState:
        return QueueState(name, level, sentence, canary.sent_at, canary.taken_at, age_s, canary.delay_s)

    if abs(now - canary.sent_at) > STUCK_AFTER:
        return state("unknown", f"Beat is silent: nothing was sent through the queue {name} for more than two minutes.")
    if not workers:
        return state("stuck", f"The queue {name} is stuck: no worker takes messages from it.")
    if canary.taken_at is not None and abs(now - canary.taken_at) <= STUCK_AFTER:
        return state("ok", "Messages are taken.")
    slots, busy = sum(worker.slots for worker in workers), sum(_live_runs(worker) for worker in workers)
    if slots and busy >= slots:
        return state("busy", f"All workers are busy: each of their {slots} slots holds a live run.")
    if canary.taken_at is None and now - min(worker.started_at for worker in workers) <= STUCK_AFTER:
        return state("unknown", "The workers have just started; no message has been taken yet.")
    return state(
        "stuck",
        f"The queue {name} is stuck: its workers are there ({busy} of {slots} slots hold a run), "
        "but nobody has taken a message for more than two minutes. Does the broker answer?",
    )


def _live_runs(worker: Worker) -> int:
    live = Run.objects.filter(state__in=Run.ACTIVE, owner__startswith=f"{worker.process}:", lease_until__gt=Now())
    return live.count()
