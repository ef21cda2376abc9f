"""Celery's entry points: thin, and every one may be lost, late or repeated without harm."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any

from celery import shared_task
from celery.signals import worker_shutting_down
from django.db.models import Q, QuerySet, Window
from django.db.models.functions import Now, RowNumber

from agents.working.lease import handing_over
from experiments.asking.bisections.live import BISECTIONS
from experiments.asking.prometheus import reading
from experiments.asking.schedules import launching
from experiments.asking.searches.live import SEARCHES
from experiments.asking.tunings.due import go_on_due
from experiments.asking.tunings.live import TUNINGS
from experiments.judging.alerts.missing import raise_missing
from experiments.keeping.backups.daily import back_up_daily
from experiments.keeping.operating import canaries
from experiments.keeping.operating.broker import look_at_broker
from experiments.keeping.operating.slow_work import if_there_is_room
from experiments.keeping.operating.watched import watched_queues
from experiments.keeping.retention.file_moving import move_files
from experiments.keeping.retention.file_sweep import sweep_files
from experiments.keeping.retention.month_clearing import clear_months
from experiments.keeping.retention.months import begin_month
from experiments.keeping.retention.policy import apply_retention
from experiments.keeping.retention.removal import forget_answers, remove_expired
from experiments.models import CENTRAL, DryRun, Host
from experiments.registry.database_clock import database_now
from experiments.registry.hosts import sites
from experiments.registry.hosts.check import perform_check
from experiments.registry.runs.file_store import FileStoreError
from experiments.registry.teams.quotas import measure_files
from experiments.registry.workers.outbox import (
    CHECK_HOST,
    DELIVER,
    DRY_RUN,
    EXECUTE_RUN,
    READ_PROMETHEUS,
    RESTORE_HOST,
    SEND_TRACE,
    STAND_IN_FOR_BEAT,
    TELL_ALERT,
    TRY_HOST,
    hint,
    send,
)
from experiments.registry.workers.queues import RUNS, queue_name
from experiments.running.ending.conclusion import conclude_stuck
from experiments.running.executing.dry_run import perform_dry_run
from experiments.running.executing.execution import execute_next
from experiments.running.executing.host_canaries import perform_canaries
from experiments.running.queue import dispatch as queue
from experiments.running.queue.leases import look_over
from experiments.running.restoring.requests import repeat_due
from experiments.running.restoring.restoration import perform_restore
from experiments.telling.notifying import delivering
from experiments.telling.notifying.alert_mails import tell, tell_waiting
from experiments.telling.observing import tracing

logger = logging.getLogger(__name__)

MOST_REPEATED = 100
MOST_HINTS = 100
"""Messages in the queue of runs above which no hint is added: workers that are busy find the next run themselves."""
CHECK_TAKES = timedelta(seconds=45)
"""One that is pending for longer has lost its message: connecting and reading are bounded below that."""
DRY_RUN_TAKES = timedelta(minutes=1)
"""One that waits for longer has lost its message, or its hosts are slow to answer: reading them twice is harmless."""


@worker_shutting_down.connect
def hand_runs_over(**_arguments: Any) -> None:
    """A worker that is told to stop lets its runs go at once: another one adopts them, and no load is interrupted."""
    handing_over.set()


@shared_task(name=EXECUTE_RUN)
def execute_run(run_id: int) -> None:
    """Execute what is next. `run_id` is only a hint in the log: the queue's order decides, not the message's."""
    while execute_next():
        continue


@shared_task(name="experiments.tasks.dispatch")
def dispatch() -> None:
    """Wake a worker when something is due: a queued run whose hint was lost, or a run whose worker died."""
    look_over()
    for site in sites.in_use():
        queue_of_runs = queue_name(RUNS, site)
        if not queue.something_to_do(site):
            continue
        if look_at_broker(watched_queues()).messages.get(queue_of_runs, 0) < MOST_HINTS:
            hint(0, site)


@shared_task(name=STAND_IN_FOR_BEAT)
def stand_in_for_beat() -> None:
    """Look for what is due when beat stands still: each worker does, so that nobody dead keeps a run for that long."""
    if canaries.beat_is_silent():
        dispatch()


@shared_task(name="experiments.tasks.reap")
def reap() -> None:
    """Repeat the connection tests, restores and dry runs whose message was lost or whose time has come."""
    now = database_now()
    overdue = Q(last_check__at__lt=(now - CHECK_TAKES).isoformat(timespec="seconds"))
    of_the_future = Q(last_check__at__gt=(now + CHECK_TAKES).isoformat(timespec="seconds"))  # the clock was set back
    checks = Host.objects.filter(overdue | of_the_future, last_check__state="pending")
    for host_id, site in _by_turns(checks, "site__name", "last_check__at"):
        send(CHECK_HOST, host_id, site or CENTRAL)
    silent_since = (now - queue.CANARIES_TAKE).isoformat(timespec="seconds")
    lost_canaries = Host.objects.filter(last_canaries__state="pending", last_canaries__at__lt=silent_since)
    for host_id, site in _by_turns(lost_canaries, "site__name", "last_canaries__at"):
        send(TRY_HOST, host_id, site or CENTRAL)
    repeat_due()
    conclude_stuck()
    under_way = Q(created_at__range=(Now() - DRY_RUN_TAKES, Now() + DRY_RUN_TAKES))
    lost = DryRun.objects.filter(~under_way, state=DryRun.State.PENDING)
    for dry_run_id, site in _by_turns(lost, "sut__site__name", "created_at"):
        send(DRY_RUN, dry_run_id, site or CENTRAL)


def _by_turns(rows: QuerySet[Any], site: str, since: str) -> list[tuple[int, str | None]]:
    """The ids of as many as are repeated at once, with their site: of each site by turns, the longest waiting first.

    A site without a worker, or one that fetches its work by itself, keeps the messages from no other one.
    """
    turn = Window(RowNumber(), partition_by=site, order_by=(since, "pk"))
    in_order = rows.annotate(turn=turn).order_by("turn", since, "pk")
    return list(in_order.values_list("pk", site)[:MOST_REPEATED])


@shared_task(name=RESTORE_HOST)
def restore_host(host_id: int) -> None:
    """Put a dirty host back once more, unless every place for slow work is taken."""
    if_there_is_room(perform_restore, host_id)


@shared_task(name=CHECK_HOST)
def check_host(host_id: int) -> None:
    """Test the connection to a host, unless every place for slow work is taken."""
    if_there_is_room(perform_check, host_id)


@shared_task(name=TRY_HOST)
def try_host(host_id: int) -> None:
    """Check how fast a host is, unless every place for slow work is taken."""
    if_there_is_room(perform_canaries, host_id)


@shared_task(name=DRY_RUN)
def dry_run(dry_run_id: int) -> None:
    """Fill in a plan with what its hosts say, unless every place for slow work is taken."""
    if_there_is_room(perform_dry_run, dry_run_id)


@shared_task(name="experiments.tasks.canary")
def canary(queue_name: str) -> None:
    """Sent by beat through every queue: whoever takes it proves that the queue moves."""
    canaries.taken(queue_name)


@shared_task(name=TELL_ALERT)
def tell_alert(alert_id: int) -> None:
    """Mail an alert to those who asked, unless every place for slow work is taken."""
    if_there_is_room(tell, alert_id)


@shared_task(name="experiments.tasks.clean_up")
def clean_up() -> None:
    """Begin a month, apply retention, remove what is due, forget old answers, measure, sweep and move files.

    A worker that is told to stop leaves what is left to the next round.
    """
    steps = (begin_month, apply_retention, remove_expired, forget_answers, clear_months, measure_files)
    for step in (*steps, sweep_files, move_files):  # files last: what is swept up makes room for what is moved
        if handing_over.is_set():
            return
        try:
            step()
        except FileStoreError as error:
            logger.warning("files of runs: %s", error.message)
        except Exception:  # what comes behind it must not wait until somebody has mended this
            logger.exception("cleaning up: %s", step.__name__)


@shared_task(name="experiments.tasks.back_up")
def back_up() -> None:
    """Write today's backup where the operator wants one."""
    back_up_daily()


@shared_task(name="experiments.tasks.watch_trends")
def watch_trends() -> None:
    """Raise alerts for data that stopped coming, and send the mails whose message was lost."""
    raise_missing()
    tell_waiting()


@shared_task(name="experiments.tasks.launch_due")
def launch_due() -> None:
    """Launch schedules and steps of inquiries whose time has come; a tick that was lost is made up for by this one."""
    launching.launch_due()
    SEARCHES.try_again()
    BISECTIONS.try_again()
    TUNINGS.try_again()
    go_on_due()


@shared_task(name="experiments.tasks.deliver_due")
def deliver_due() -> None:
    """Send the messages and traces and ask the Prometheus servers that are due: first ones, and repeated ones."""
    for delivery_id in delivering.due():
        send(DELIVER, delivery_id)
    delivering.forget_old()
    for run_id in tracing.due():
        send(SEND_TRACE, run_id)
    tracing.forget_old()
    for reading_id in reading.due():
        send(READ_PROMETHEUS, reading_id)


@shared_task(name=DELIVER)
def deliver_one(delivery_id: int) -> None:
    """Try one delivery of a webhook, unless every place for slow work is taken."""
    if_there_is_room(delivering.deliver, delivery_id)


@shared_task(name=SEND_TRACE)
def send_trace(run_id: int) -> None:
    """Hand the trace of one run to the collector, unless every place for slow work is taken."""
    if_there_is_room(tracing.export, run_id)


@shared_task(name=READ_PROMETHEUS)
def read_prometheus(reading_id: int) -> None:
    """Read what a team's Prometheus saw around one run, unless every place for slow work, or of the team, is taken."""
    if_there_is_room(reading.read, reading_id, team_id=reading.team_of(reading_id))
