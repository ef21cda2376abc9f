"""What Celery's workers tell of themselves: that one is there, and that it leaves."""

from __future__ import annotations

from typing import Any

from celery.signals import worker_ready, worker_shutdown

from experiments.registry.workers import outbox
from experiments.registry.workers.presence import Presence

_presence: Presence | None = None


@worker_ready.connect
def _say_that_a_worker_is_there(sender: Any, **_arguments: Any) -> None:
    global _presence
    queues = [str(name) for name in sender.app.amqp.queues.consume_from]
    slots = int(sender.controller.concurrency or 0)
    _presence = Presence(str(sender.hostname), queues, slots, beside=sender.app.tasks[outbox.STAND_IN_FOR_BEAT])
    _presence.start()


@worker_shutdown.connect
def _say_good_bye(**_arguments: Any) -> None:
    outbox.flush()
    if _presence is not None:
        _presence.leave()
