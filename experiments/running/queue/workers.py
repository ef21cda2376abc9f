"""What is known of the workers that execute runs at a site, and why none of them takes a run whose hosts are free."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Q

from experiments.models import CENTRAL, Run, Team, Worker
from experiments.registry.hosts.sites import said
from experiments.registry.workers.presence import SILENT_AFTER
from experiments.registry.workers.queues import RUNS


@dataclass(frozen=True)
class Workers:
    """The workers of one site. `slots` None = nothing is known: none of them has ever said so.

    `busy`: runs that are active at the site, of all teams. `last_seen_at` is of the one that was seen last.
    """

    slots: int | None
    busy: int
    last_seen_at: datetime | None
    others_first: bool
    site: str = CENTRAL

    def reason(self, now: datetime) -> str:
        """Why none of them takes a run whose hosts are free; "" when one may be on its way."""
        if self.slots is None:
            return ""
        if self.slots == 0:
            return self._nobody(now)
        if self.busy < self.slots:
            return ""
        where = f" at {said(self.site)}" if self.site != CENTRAL else ""
        if self.slots == 1:
            all_busy = f"The only worker slot{where} is busy"
        else:
            all_busy = f"All {self.slots} worker slots{where} are busy"
        return f"{all_busy}{', and it is another team’s turn' if self.others_first else ''}."

    def _nobody(self, now: datetime) -> str:
        start = f"an operator must start one (worker --site {self.site})." if self.site != CENTRAL else ""
        if self.last_seen_at is None:
            return f"No worker is at {said(self.site)}; {start}"
        minutes = max(int((now - self.last_seen_at).total_seconds() // 60), 1)
        if self.site == CENTRAL:
            return f"No worker has been seen for {minutes} min; an operator must start one (worker-runs)."
        return f"No worker at {said(self.site)} has been seen for {minutes} min; {start}"


def workers_at(sites: Collection[str], team: Team, busy: Mapping[str, int], now: datetime) -> dict[str, Workers]:
    """Those of each of these sites, as the team's runs find them. Two queries."""
    everyone = [worker for worker in Worker.objects.all() if executes(worker.queues)]
    live = (
        Run.objects.exclude(state=Run.State.FINISHED)
        .values("team")
        .annotate(
            active=Count("pk", filter=~Q(state=Run.State.QUEUED)), queued=Count("pk", filter=Q(state=Run.State.QUEUED))
        )
    )
    teams = {row["team"]: row for row in live}
    mine = teams[team.pk]["active"] if team.pk in teams else 0
    others_first = any(row["queued"] and row["active"] < mine for pk, row in teams.items() if pk != team.pk)
    found = {}
    for site in sites:
        there = [worker for worker in everyone if worker.site == site]
        alive = [worker for worker in there if worker.seen_at > now - SILENT_AFTER]
        slots = sum(worker.slots for worker in alive) if all(worker.slots for worker in alive) else None
        if not there and site == CENTRAL:
            slots = None
        last_seen_at = max((worker.seen_at for worker in there), default=None)
        found[site] = Workers(slots, busy.get(site, 0), last_seen_at, others_first, site)
    return found


def manned_sites(now: datetime) -> frozenset[str]:
    """The sites at which a worker that executes runs has shown itself lately."""
    alive = Worker.objects.filter(seen_at__gt=now - SILENT_AFTER)
    return frozenset(worker.site for worker in alive if executes(worker.queues))


def executes(queues: Collection[str]) -> bool:
    """Whether a worker of these queues executes runs, of whichever site."""
    return any(name.partition(".")[0] == RUNS for name in queues)
