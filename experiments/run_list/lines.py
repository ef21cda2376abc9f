"""The list of runs for programs: the same pages, read without an object for each run and all that it refers to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from django.db import connection

from experiments.models import Team
from experiments.run_list.filters import RunFilter, matching
from experiments.run_list.paging import Page, page_of

COLUMNS = (
    "number",
    "origin",
    "state",
    "outcome",
    "validity",
    "restore",
    "experiment_id",
    "variant_id",
    "block",
    "application_id",
    "recipe_id",
    "workload_id",
    "sut_id",
    "drivers_id",
    "labels",
    "tags",
    "priority",
    "retries_left",
    "created_by_id",
    "queued_at",
    "started_at",
    "finished_at",
    "throughput_rps",
    "latency_p50_ms",
    "latency_p99_ms",
    "errors_total",
    "sut_cpu_ratio",
    "driver_cpu_ratio",
    "hides_latency",
    "archived",
)

# One statement for what a page refers to; Django takes longer to word nine than PostgreSQL to answer them.
_NAMES = """
SELECT 'application_id', id, name, version FROM experiments_application WHERE id = ANY(%s)
UNION ALL SELECT 'recipe_id', id, name, version FROM experiments_recipe WHERE id = ANY(%s)
UNION ALL SELECT 'workload_id', id, name, version FROM experiments_workload WHERE id = ANY(%s)
UNION ALL SELECT 'sut_id', id, name, 0 FROM experiments_host WHERE id = ANY(%s)
UNION ALL SELECT 'variant_id', id, name, 0 FROM experiments_variant WHERE id = ANY(%s)
UNION ALL SELECT 'created_by_id', id, username, 0 FROM auth_user WHERE id = ANY(%s)
UNION ALL SELECT 'drivers_id', driverset_id, name, host_id FROM experiments_driverset_hosts
    JOIN experiments_host ON experiments_host.id = host_id WHERE driverset_id = ANY(%s)
"""
_REFERENCES = ("application_id", "recipe_id", "workload_id", "sut_id", "variant_id", "created_by_id", "drivers_id")


@dataclass(frozen=True)
class Names:
    """What the runs of a page refer to: by column and id its names, each with its version, or its place in a set."""

    found: Mapping[tuple[str, int], Sequence[tuple[int, str]]]

    def document(self, column: str, pk: int | None) -> tuple[int, str] | None:
        """Version and name."""
        return None if pk is None else self.found[column, pk][0]

    def one(self, column: str, pk: int | None) -> str | None:
        return None if pk is None else self.found[column, pk][0][1]

    def several(self, column: str, pk: int | None) -> list[str]:
        """The names of a set, in its order."""
        return [] if pk is None else [name for _, name in sorted(self.found.get((column, pk), ()))]


def lines_page(
    team: Team, runs: RunFilter, *, sort: str = "-number", cursor: str = "", limit: int = 50
) -> tuple[Page[Any], Names]:
    """A page whose rows have `COLUMNS`, and the names that these refer to. Two statements, however many runs."""
    page = page_of(matching(team, runs).values_list(*COLUMNS, named=True), sort=sort, cursor=cursor, limit=limit)
    return page, _names(page.rows)


def _names(rows: Iterable[Any]) -> Names:
    wanted: dict[str, set[int]] = {column: set() for column in _REFERENCES}
    for row in rows:
        for column, ids in wanted.items():
            if (pk := getattr(row, column)) is not None:
                ids.add(pk)
    if not any(chain(wanted.values())):
        return Names({})
    found: dict[tuple[str, int], list[tuple[int, str]]] = {}
    with connection.cursor() as cursor:
        cursor.execute(_NAMES, [list(ids) for ids in wanted.values()])
        for column, pk, name, place in cursor.fetchall():
            found.setdefault((column, pk), []).append((place, name))
    return Names(found)
