"""What Celery's processes tell of themselves: that a worker is there, that it leaves, that a canary was sent."""

from __future__ import annotations

from typing import Any

from celery.signals import before_task_publish, worker_ready, worker_shutdown
from django.db import connection

from experiments.keeping.operating import canaries
from experiments.registry.workers import outbox
from experiments.registry.workers.workers import Presence

_presence: Presence | None = None


@before_task_publish.connect(sender="experiments.tasks.canary")
def _note_canary(body: Any, **_arguments: Any) -> None:
    """Noted before it is sent: a broker that takes no message is what the canary is there to show."""
    canaries.sent(body[0][0])
    connection.close()  # beat keeps none: it may sleep longer than a firewall remembers


@worker_ready.connect
def _say_that_a_worker_is_there(sender: Any, **_arguments: Any) -> None:
    global _presence
    queues = [str(name) for name in sender.app.amqp.queues.consume_from]
    _presence = Presence(str(sender.hostname), queues, int(sender.controller.concurrency or 0))
    _presence.start()


@worker_shutdown.connect
def _say_good_bye(**_arguments: Any) -> None:
    outbox.flush()
    if _presence is not None:
        _presence.leave()
