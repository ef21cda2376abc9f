"""The list of runs for programs: the same pages, read without an object for each run and all that it refers to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from django.contrib.auth.models import User
from django.db.models import Case, TextField, Value, When
from django.db.models.functions import Cast, Concat

from experiments.models import Application, DriverSet, Host, Recipe, Run, Team, Variant, Workload
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
    "profiled",
)

_AS_DRIVER = Concat(Value("(^|,)", TextField()), Cast("host_id", TextField()), Value("(,|;|$)", TextField()))
_PLACE_OF_DRIVER = Case(When(driverset__key__regex=_AS_DRIVER, then="host_id"), default=Value(-1))
"""A set holds the hosts of a system's members, too; they have no place among the driver hosts."""

_REFERENCES: Mapping[str, tuple[Any, str, Any, str]] = {
    "application_id": (Application, "pk", "version", "name"),
    "recipe_id": (Recipe, "pk", "version", "name"),
    "workload_id": (Workload, "pk", "version", "name"),
    "sut_id": (Host, "pk", Value(0), "name"),
    "variant_id": (Variant, "pk", Value(0), "name"),
    "created_by_id": (User, "pk", Value(0), "username"),
    "drivers_id": (DriverSet.hosts.through, "driverset_id", _PLACE_OF_DRIVER, "host__name"),
}
"""Column -> the model that it refers to, and of that the key, the version or the place in a set, and the name."""


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
        return [] if pk is None else [name for place, name in self.found.get((column, pk), ()) if place >= 0]


def lines_page(
    team: Team, runs: RunFilter, *, sort: str = "-number", cursor: str = "", limit: int = 50
) -> tuple[Page[Any], Names]:
    """A page whose rows have `COLUMNS`, and the names that these refer to. Two queries, however many runs."""
    lines = cast(RunQuerySet, Run.objects.values_list(*COLUMNS, named=True))
    page = page_of(matching(team, runs, lines), sort=sort, cursor=cursor, limit=limit)
    return page, names_of({column: [getattr(row, column) for row in page.rows] for column in _REFERENCES})


def names_of(table: Mapping[str, Sequence[Any]]) -> Names:
    """The names of what the columns of these runs refer to: ids by column. One query."""
    queries = [
        model._default_manager.filter(**{f"{key}__in": wanted}).values_list(Value(column), key, place, name)
        for column, (model, key, place, name) in _REFERENCES.items()
        if (wanted := set(table[column]) - {None})
    ]
    found: dict[tuple[str, int], list[tuple[int, str]]] = {}
    if not queries:
        return Names(found)
    for column, pk, place, name in queries[0].union(*queries[1:], all=True):
        found.setdefault((column, pk), []).append((place, name))
    for several in found.values():
        several.sort()
    return Names(found)
