"""The Celery app; its settings are the CELERY_ ones of Django."""

from __future__ import annotations

import os
from typing import Any

from celery import Celery
from celery.signals import (
    beat_init,
    before_task_publish,
    celeryd_init,
    setup_logging,
    worker_ready,
    worker_shutdown,
)
from django.conf import settings

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "benchhub.settings")

app = Celery("benchhub")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.set_default()  # for every thread, not only the importing one
app.autodiscover_tasks()

_presence: Any = None


@celeryd_init.connect
@beat_init.connect
def _start_embedded_services(**_arguments: Any) -> None:
    if settings.BENCHHUB_EMBEDDED:
        from benchhub import embedded

        embedded.ensure(settings.BENCHHUB_DATA_DIR)


@setup_logging.connect
def _keep_django_logging(**_arguments: Any) -> None:
    """Being connected is the point: Celery then leaves the logging of the settings alone."""


@before_task_publish.connect(sender="experiments.tasks.canary")
def _note_canary(body: Any, **_arguments: Any) -> None:
    """Noted before it is sent: a broker that takes no message is what the canary is there to show."""
    from django.db import connection

    from experiments.keeping.operating import canaries

    canaries.sent(body[0][0])
    connection.close()  # beat keeps none: it may sleep longer than a firewall remembers


@worker_ready.connect
def _say_that_a_worker_is_there(sender: Any, **_arguments: Any) -> None:
    from experiments.registry.workers.workers import Presence

    global _presence
    queues = [str(name) for name in sender.app.amqp.queues.consume_from]
    _presence = Presence(str(sender.hostname), queues, int(sender.controller.concurrency or 0))
    _presence.start()


@worker_shutdown.connect
def _say_good_bye(**_arguments: Any) -> None:
    from experiments.registry.workers import outbox

    outbox.flush()
    if _presence is not None:
        _presence.leave()
