"""Once more, by itself: a run that failed by no fault of its own is queued again, as often as its launch allows."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Q

from experiments.asking.launching.factory import queue_again
from experiments.models import Experiment, Run
from experiments.registry.events import RunEnded

FAULTS_OF_OTHERS = (Run.Cause.HOST, Run.Cause.BENCHHUB)
"""A specification that fails once fails again, and what a person ended stays ended."""


@dataclass(frozen=True)
class RetryLinks:
    """The numbers of the run that this one repeats, and of the one that repeats it."""

    retry_of: int | None = None
    retried_as: int | None = None


def run_ended(event: RunEnded) -> None:
    """Once more, when the run deserves it."""
    queue_retry(event.run)


def queue_retry(run: Run) -> Run | None:
    """Queue the run once more when it has a retry left; None when it has not. Call in the transaction that ends it.

    The new run waits like any other: while the host is dirty, until somebody has put it right.
    """
    if not _deserves_another(run):
        return None
    return queue_again(run)


def _deserves_another(run: Run) -> bool:
    if run.retries_left == 0 or run.cancel_requested_at is not None or run.state != Run.State.FINISHED:
        return False
    if run.outcome == Run.Outcome.LOST:  # by then BenchHub has given it up, unless it is known better
        fault = run.cause in ("", *FAULTS_OF_OTHERS)
    else:
        fault = run.outcome == Run.Outcome.FAILED and run.cause in FAULTS_OF_OTHERS
    if not fault or run.sut_id is None or run.drivers_id is None or run.retries.exists():
        return False
    return run.experiment is None or run.experiment.state != Experiment.State.CANCELLED


def links_of(run: Run) -> RetryLinks:
    """The run's neighbours in its chain of retries, in one query; none for a run that never had one."""
    if run.retry_of_id is None and run.outcome not in Run.TRIED_AGAIN:
        return RetryLinks()
    near = Q(retry_of=run.pk) if run.retry_of_id is None else Q(retry_of=run.pk) | Q(pk=run.retry_of_id)
    found = dict(Run.objects.filter(near).values_list("pk", "number"))
    retry_of = found.pop(run.retry_of_id, None) if run.retry_of_id is not None else None
    return RetryLinks(retry_of, next(iter(found.values()), None))
