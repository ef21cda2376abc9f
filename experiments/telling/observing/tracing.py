"""Traces of runs: noted when a run ends, and sent later by a worker of the default queue, never while one measures."""

from __future__ import annotations

import logging
from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q
from django.db.models.functions import Now

from agents.base.errors import MISTAKE_HINT
from experiments.models import Run, RunEvent, RunTrace
from experiments.registry.database_clock import database_now
from experiments.registry.events import RunEnded
from experiments.registry.hosts.installation import installation
from experiments.registry.workers.outbox import SEND_TRACE, send
from experiments.telling.observing.collector import CollectorError, send_trace
from experiments.telling.observing.spans import EVENT_KINDS, Origin, trace_of

logger = logging.getLogger(__name__)

PAUSES = tuple(timedelta(minutes=minutes) for minutes in (1, 5, 15, 60, 180, 360, 720))
"""Between the tries: eight of them in a little more than 22 hours."""
MOST_TRIES = len(PAUSES) + 1
LEASE = timedelta(minutes=2)
"""How long a worker may take for a try before another one repeats it: the collector sees the same ids again."""
KEPT = timedelta(days=30)
MOST_AT_ONCE = 50


def run_ended(event: RunEnded) -> None:
    """Note the trace of a run that had started, where the operator has a collector."""
    run = event.run
    if not settings.OTEL_EXPORTER_OTLP_ENDPOINT or run.started_at is None or run.is_demo:
        return
    run_id = run.pk
    RunTrace.objects.create(run_id=run_id, worker=event.worker, next_at=database_now())
    transaction.on_commit(lambda: send(SEND_TRACE, run_id), robust=True)


def due() -> list[int]:
    """The runs whose trace is to be sent now, the longest waiting first; none without a collector."""
    if not settings.OTEL_EXPORTER_OTLP_ENDPOINT:
        return []
    found = RunTrace.objects.filter(_is_due()).order_by("next_at").values_list("pk", flat=True)
    return list(found[:MOST_AT_ONCE])


def forget_old() -> None:
    """Drop what was noted for a run that has been over for a month."""
    RunTrace.objects.filter(next_at=None, run__finished_at__lt=Now() - KEPT).delete()


def export(run_id: int) -> None:
    """Send the trace of this run once if it is due; nothing of it concerns the run."""
    if not settings.OTEL_EXPORTER_OTLP_ENDPOINT:
        return
    if not RunTrace.objects.filter(_is_due(), pk=run_id).update(next_at=Now() + LEASE, tries=F("tries") + 1):
        return  # it is over, or somebody else is at it
    noted = RunTrace.objects.get(pk=run_id)
    try:
        _export(noted)
    except CollectorError as error:
        _store_failure(noted, error)
    except Exception:  # it would be repeated for ever, and nobody would be told
        logger.exception("the trace of run %s could not be sent, in a way that nobody foresaw", run_id)
        _store_failure(noted, CollectorError(f"BenchHub made a mistake in sending it. {MISTAKE_HINT}"))
    else:
        RunTrace.objects.filter(pk=run_id).update(next_at=None, sent_at=Now(), problem="")


def _export(noted: RunTrace) -> None:
    if noted.tries > MOST_TRIES:
        raise CollectorError(f"No worker came to the end of sending it. {MISTAKE_HINT}")
    parts = ("team", "recipe", "workload", "application", "sut", "drivers", "variant", "experiment")
    run = Run.objects.select_related(*parts).get(pk=noted.pk)
    events = RunEvent.objects.filter(run=run, kind__in=EVENT_KINDS).order_by("seq")
    origin = Origin(str(installation().id), settings.VERSION, settings.BENCHHUB_URL)
    send_trace(trace_of(run, events, noted.worker, origin))


def _is_due() -> Q:
    """Its time has come, or is further away than any pause is long: the clock was set back meanwhile."""
    return Q(next_at__lte=Now()) | Q(next_at__gt=Now() + max(PAUSES))


def _store_failure(noted: RunTrace, error: CollectorError) -> None:
    over = error.final or noted.tries >= MOST_TRIES
    next_at = None if over else database_now() + PAUSES[noted.tries - 1]
    RunTrace.objects.filter(pk=noted.pk).update(next_at=next_at, problem=str(error)[:500])
    what = "given up" if over else f"tried again at {next_at:%H:%M:%S} UTC"
    logger.warning("the trace of run %s was not taken by the collector, %s: %s", noted.pk, what, error)
