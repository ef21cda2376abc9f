"""The list of runs for programs: the same pages, read without an object for each run and all that it refers to."""

from __future__ import annotations

import functools
from collections import namedtuple
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from django.core.exceptions import EmptyResultSet
from django.db.models import QuerySet

from experiments.models import Run, Team
from experiments.models.prepared import execute, read
from experiments.models.runs import RunQuerySet
from experiments.telling.run_list.filters import RunFilter, matching
from experiments.telling.run_list.paging import Page, page_of

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

Line = namedtuple("Line", COLUMNS)  # type: ignore[misc]

# One statement for what a page refers to; Django takes longer to word nine than PostgreSQL to answer them.
_NAMES = """
SELECT 'application_id', id, name, version FROM experiments_application WHERE id = ANY(%s::bigint[])
UNION ALL SELECT 'recipe_id', id, name, version FROM experiments_recipe WHERE id = ANY(%s::bigint[])
UNION ALL SELECT 'workload_id', id, name, version FROM experiments_workload WHERE id = ANY(%s::bigint[])
UNION ALL SELECT 'sut_id', id, name, 0 FROM experiments_host WHERE id = ANY(%s::bigint[])
UNION ALL SELECT 'variant_id', id, name, 0 FROM experiments_variant WHERE id = ANY(%s::bigint[])
UNION ALL SELECT 'created_by_id', id, username, 0 FROM auth_user WHERE id = ANY(%s::bigint[])
UNION ALL SELECT 'drivers_id', driverset_id, name, host_id FROM experiments_driverset_hosts
    JOIN experiments_host ON experiments_host.id = host_id WHERE driverset_id = ANY(%s::bigint[])
"""
_REFERENCES = ("application_id", "recipe_id", "workload_id", "sut_id", "variant_id", "created_by_id", "drivers_id")
_PLACES = tuple(COLUMNS.index(column) for column in _REFERENCES)


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
        return [] if pk is None else [name for _, name in self.found.get((column, pk), ())]


def lines_page(
    team: Team, runs: RunFilter, *, sort: str = "-number", cursor: str = "", limit: int = 50
) -> tuple[Page[Any], Names]:
    """A page whose rows have `COLUMNS`, and the names that these refer to. Two statements, however many runs."""
    page = page_of(matching(team, runs, _lines()), sort=sort, cursor=cursor, limit=limit, reading=_read)
    return page, _names(page.rows)


@functools.cache
def _lines() -> RunQuerySet:
    """All runs as lines. Kept, because wording its columns anew takes longer than reading them."""
    return cast(RunQuerySet, Run.objects.values_list(*COLUMNS))


def _read(lines: QuerySet[Any, Any]) -> Iterator[Any]:
    """The rows of lines; Django only words the statement."""
    try:
        statement, values = lines.query.sql_with_params()
    except EmptyResultSet:  # Django sees that nothing can fit
        return iter(())
    return map(Line._make, read(statement, values))


def _names(rows: Sequence[Any]) -> Names:
    wanted = [{row[place] for row in rows} - {None} for place in _PLACES]
    if not any(wanted):
        return Names({})
    found: dict[tuple[str, int], list[tuple[int, str]]] = {}
    for column, pk, name, place in execute(_NAMES, [f"{{{','.join(map(str, ids))}}}" for ids in wanted]):
        found.setdefault((column, pk), []).append((place, name))
    for several in found.values():
        several.sort()
    return Names(found)
