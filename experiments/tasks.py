"""Celery's entry points: thin, and every one may be lost, late or repeated without harm."""

from __future__ import annotations

from celery import shared_task

from experiments import dispatch as queue
from experiments.dryrun import perform_dry_run
from experiments.execution import execute_next
from experiments.host_check import perform_check
from experiments.models import Host
from experiments.outbox import hint

HINT_EXPIRES_S = 15
"""A hint is worth nothing once the dispatcher has sent the next one."""


@shared_task(name="experiments.tasks.execute_run")
def execute_run(run_id: int) -> None:
    """Execute what is next. `run_id` is only a hint in the log: the queue's order decides, not the message's."""
    while execute_next():
        if queue.something_to_do():
            hint(run_id)  # free workers may take the next ones while this one goes on


@shared_task(name="experiments.tasks.dispatch")
def dispatch() -> None:
    """Wake a worker when something is due: a queued run whose hint was lost, or a run whose worker died."""
    if queue.something_to_do():
        hint(0)


@shared_task(name="experiments.tasks.reap")
def reap() -> None:
    """Repeat the connection tests whose message was lost."""
    for host_id in Host.objects.filter(last_check__state="pending").values_list("pk", flat=True)[:100]:
        check_host.apply_async((host_id,), retry=False, expires=HINT_EXPIRES_S)


@shared_task(name="experiments.tasks.check_host")
def check_host(host_id: int) -> None:
    perform_check(host_id)


@shared_task(name="experiments.tasks.dry_run")
def dry_run(dry_run_id: int) -> None:
    perform_dry_run(dry_run_id)
