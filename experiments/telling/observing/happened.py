"""What happened between two moments, as annotations of dashboards."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, get_args

from django.db.models import Q, QuerySet

from experiments.models import Run, Team
from experiments.registry.errors import RequestError
from experiments.telling.observing.mark import Mark
from experiments.telling.observing.of_hosts import out_of_service
from experiments.telling.observing.of_runs import marks_of_runs, measured_loads, phases, steps
from experiments.telling.observing.of_series import level_changes, notes_of_people
from experiments.telling.run_list.filters import RunFilter, matching

Kind = Literal["run", "measured", "phase", "step", "alert", "host", "note"]
KINDS: tuple[Kind, ...] = get_args(Kind)
USUAL: tuple[Kind, ...] = ("run", "measured", "alert", "host", "note")
"""Without the two of which a run has a dozen each."""
MOST_RUNS = 2000
MOST_MARKS = 10_000
_LATEST_MS = int(datetime(2200, 1, 1, tzinfo=UTC).timestamp() * 1000)


@dataclass(frozen=True)
class Asked:
    """A window in milliseconds since 1970, and what narrows it: names of hosts and labels that a run must have."""

    from_ms: int
    to_ms: int
    kinds: tuple[Kind, ...] = USUAL
    hosts: tuple[str, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()

    def check(self) -> None:
        """RequestError names the field that is wrong."""
        for name, value in (("to", self.to_ms), ("from", self.from_ms)):
            if not 0 <= value < _LATEST_MS:
                raise RequestError(
                    f"{name} is a moment in milliseconds since 1970, such as ${{__from}} of Grafana.", field=name
                )
        if self.to_ms < self.from_ms:
            raise RequestError("to is before from.", field="to")

    @property
    def start(self) -> datetime:
        return datetime.fromtimestamp(self.from_ms / 1000, UTC)

    @property
    def end(self) -> datetime:
        return datetime.fromtimestamp(self.to_ms / 1000, UTC)


def kinds_in(text: str) -> tuple[Kind, ...]:
    """Kinds with commas between; the usual ones of an empty text. RequestError (field `kinds`) for any other word."""
    given = [part.strip() for part in text.split(",") if part.strip()]
    found = tuple(kind for kind in KINDS if kind in given)
    if unknown := sorted(set(given) - set(KINDS)):
        raise RequestError(f"There is no kind {unknown[0][:40]!r}; there are {', '.join(KINDS)}.", field="kinds")
    return found or USUAL


def happened(team: Team, asked: Asked, now: datetime) -> list[Mark]:
    """The marks that touch the window, the newest first; at most 10,000, of the newest 2,000 runs."""
    asked.check()
    runs = list(_runs(team, asked)) if {"run", "measured", "phase", "step"} & set(asked.kinds) else []
    makers: dict[Kind, Callable[[], Collection[Mark]]] = {
        "run": lambda: marks_of_runs(runs, now),
        "measured": lambda: measured_loads(runs),
        "phase": lambda: phases(runs),
        "step": lambda: steps(runs),
        "alert": lambda: level_changes(team, asked.start, asked.end, _of_runs(asked, "run_after")),
        "host": lambda: () if asked.labels else out_of_service(team, asked.hosts),
        "note": lambda: notes_of_people(team, asked.start, asked.end, _of_runs(asked, "run")),
    }
    found = [mark for kind in asked.kinds for mark in makers[kind]()]
    inside = [mark for mark in found if mark.touches(asked.from_ms, asked.to_ms)]
    return sorted(inside, key=lambda mark: (-mark.time_ms, mark.title))[:MOST_MARKS]


def _runs(team: Team, asked: Asked) -> QuerySet[Run]:
    touching = Q(started_at__lte=asked.end) & (Q(finished_at__gte=asked.start) | Q(finished_at=None))
    found = matching(team, RunFilter(label=asked.labels)).filter(touching)
    if asked.hosts:
        found = found.filter(pk__in=Run.objects.filter(_used(asked.hosts, "")).values("pk"))
    return found.with_names().order_by("-started_at")[:MOST_RUNS]


def _of_runs(asked: Asked, run: str) -> Q:
    """What a mark must have of its run, if it has one: what `matching` asks of a run that is shown itself."""
    found = Q(**{run: None}) | Q(**{f"{run}__trashed_at": None, f"{run}__archived": False})
    if asked.hosts:
        found &= _used(asked.hosts, f"{run}__")
    for key, value in asked.labels:
        found &= Q(**{f"{run}__labels__contains": {key: value}})
    return found


def _used(hosts: Collection[str], before: str) -> Q:
    return Q(**{f"{before}sut__name__in": hosts}) | Q(**{f"{before}drivers__hosts__name__in": hosts})
