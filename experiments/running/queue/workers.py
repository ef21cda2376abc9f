"""What is known of the workers that execute runs at a site, and why none of them takes a run whose hosts are free."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Q
from django.db.models.functions import Now

from experiments.models import CENTRAL, Run, Team, Worker
from experiments.registry.hosts.sites import said, sites_whose_keys_stay
from experiments.registry.workers.presence import SILENT_AFTER
from experiments.registry.workers.queues import RUNS


@dataclass(frozen=True)
class Workers:
    """The workers of one site. `slots` None = nothing is known: none of them has ever said so.

    `busy`: runs that are active on them, of all teams. `last_seen_at` is of the one that was seen last. `keys_stay`:
    they fetch their runs over HTTPS, and each of them works for one team; those of other teams are not counted here.
    """

    slots: int | None
    busy: int
    last_seen_at: datetime | None
    others_first: bool
    site: str = CENTRAL
    keys_stay: bool = False

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
        command = f"{'site-worker' if self.keys_stay else 'worker'} --site {self.site}"
        start = f"an operator must start one ({command})." if self.site != CENTRAL else ""
        who = "No worker of this team" if self.keys_stay else "No worker"
        if self.last_seen_at is None:
            return f"{who} is at {said(self.site)}; {start}"
        minutes = max(int((now - self.last_seen_at).total_seconds() // 60), 1)
        if self.site == CENTRAL:
            return f"No worker has been seen for {minutes} min; an operator must start one (worker-runs)."
        return f"{who} at {said(self.site)} has been seen for {minutes} min; {start}"


def workers_at(
    sites: Mapping[str, bool], team: Team, active: Mapping[tuple[str, int], int], now: datetime
) -> dict[str, Workers]:
    """Those of each of these sites, as the team's runs find them; whether its keys stay there stands beside each.

    `active`: how many runs are, by their site and team. Two queries.
    """
    stay = {site for site, keys_stay in sites.items() if keys_stay}
    everyone = [worker for worker in Worker.objects.all() if executes(worker, stay) and takes_runs_of(team, worker)]
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
    for site, keys_stay in sites.items():
        there = [worker for worker in everyone if worker.site == site]
        alive = [worker for worker in there if worker.seen_at > now - SILENT_AFTER]
        slots = sum(worker.slots for worker in alive) if all(worker.slots for worker in alive) else None
        if not there and site == CENTRAL:
            slots = None
        last_seen_at = max((worker.seen_at for worker in there), default=None)
        busy = sum(runs for (at, pk), runs in active.items() if at == site and (pk == team.pk or not keys_stay))
        found[site] = Workers(slots, busy, last_seen_at, others_first and not keys_stay, site, keys_stay)
    return found


def manned_sites(team: Team, now: datetime) -> frozenset[str]:
    """The sites at which a worker that executes runs of the team has shown itself lately."""
    alive, stay = Worker.objects.filter(seen_at__gt=now - SILENT_AFTER), sites_whose_keys_stay()
    return frozenset(worker.site for worker in alive if executes(worker, stay) and takes_runs_of(team, worker))


def teams_served_at(site: str) -> frozenset[int]:
    """The teams (by id) for which a worker that acts for one team has shown itself at the site lately."""
    alive = Worker.objects.filter(site=site, team__isnull=False, seen_at__gt=Now() - SILENT_AFTER)
    return frozenset(alive.values_list("team", flat=True))


def executes(worker: Worker, stay: Collection[str]) -> bool:
    """Whether it executes runs of its site: it takes their messages, or fetches them and has no queue at all.

    `stay`: the sites whose keys stay there; nobody executes runs of these by messages, nor others without them.
    """
    if worker.site in stay:
        return not worker.queues
    return any(name.partition(".")[0] == RUNS for name in worker.queues)


def takes_runs_of(team: Team, worker: Worker) -> bool:
    """Whether runs of the team are for this worker, too."""
    return worker.team_id in (None, team.pk)
