"""What was in the trash for 30 days is removed for good, a bounded number of runs at a time and for a bounded time.

Events and samples, which are most of it, stay where nobody finds them: `month_clearing` drops whole months of them.
"""

from __future__ import annotations

from datetime import timedelta

from django.db import transaction
from django.db.models import Exists, OuterRef

from experiments.keeping.retention.batches import while_there_is_time
from experiments.keeping.retention.trash import KEPT_DAYS
from experiments.models import ConfigSnapshot, Experiment, IdempotencyRecord, Run, Team
from experiments.registry.database_clock import database_now
from experiments.registry.teams.audit import record

BATCH = 50
"""Runs, or experiments, of one transaction: locks stay short."""


def remove_expired() -> int:
    """Remove runs and experiments whose time in the trash is over, for as long as a round goes on.

    Returns the number of runs that went.
    """
    before = database_now() - timedelta(days=KEPT_DAYS)
    removed = 0
    for _ in while_there_is_time():
        count = _remove_runs(before)
        removed += count
        if count < BATCH:
            break
    for _ in while_there_is_time():
        if _remove_experiments(before) < BATCH:
            break
    return removed


def forget_answers() -> int:
    """Remove the answers that were kept for an Idempotency-Key long enough; returns how many.

    Nobody asks again after a month, and an answer has a copy of what is removed elsewhere.
    """
    return IdempotencyRecord.objects.filter(created_at__lt=database_now() - timedelta(days=KEPT_DAYS)).delete()[0]


def _remove_runs(before: object) -> int:
    with transaction.atomic():
        due = Run.objects.filter(trashed_at__lt=before).order_by("trashed_at", "pk")
        runs = list(
            due.select_for_update(of=("self",), skip_locked=True).only("number", "team_id", "config_id")[:BATCH]
        )
        ids = [run.pk for run in runs]
        Run.objects.filter(pk__in=ids).delete()
        configs = {run.config_id for run in runs if run.config_id is not None}
        used = Run.objects.filter(config=OuterRef("pk"))
        ConfigSnapshot.objects.filter(~Exists(used), pk__in=configs).delete()
        for team_id in sorted({run.team_id for run in runs}):
            numbers = sorted(run.number for run in runs if run.team_id == team_id)
            _record(team_id, f"{len(numbers)} run{'s' if len(numbers) > 1 else ''}", {"runs": numbers})
    return len(runs)


def _remove_experiments(before: object) -> int:
    """Those whose runs have all gone: the last ones may need another round."""
    has_runs = Run.objects.filter(experiment=OuterRef("pk"))
    due = Experiment.objects.filter(~Exists(has_runs), trashed_at__lt=before)
    with transaction.atomic():  # the lock: one that is restored at this moment stays
        experiments = list(due.select_for_update(of=("self",), skip_locked=True).order_by("pk")[:BATCH])
        for experiment in experiments:
            _record(experiment.team_id, f"experiment {experiment.name}", {"experiment": experiment.pk})
            experiment.delete()
    return len(experiments)


def _record(team_id: int, subject: str, before: dict[str, object]) -> None:
    record(Team.objects.get(pk=team_id), "trash.remove", subject, before=before)
