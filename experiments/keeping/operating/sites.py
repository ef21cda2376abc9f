"""How each site is doing: who works there, what is live and what waits, and what an operator should do about it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.db.models import Count

from experiments.models import CENTRAL, Host, Run, Site, Worker
from experiments.registry.workers.presence import SILENT_AFTER
from experiments.running.queue.workers import executes

CENTRAL_LABEL = "central"


@dataclass(frozen=True)
class SiteState:
    """One site and its workers that execute runs, whose team's ever; `most_live` runs may be live there.

    `trouble`: what is wrong in a sentence, "" when nothing is.
    """

    name: str
    description: str
    hosts: int
    workers: int
    slots: int
    live: int
    most_live: int
    waiting: int
    trouble: str

    @property
    def label(self) -> str:
        return self.name or CENTRAL_LABEL


def site_states(now: datetime) -> list[SiteState]:
    """The central site, then the others by name. Five queries, however many there are."""
    sites = {CENTRAL: Site(name=CENTRAL)} | {site.name: site for site in Site.objects.order_by("name")}
    hosts = _by_site(Host.objects.values_list("site__name"))
    live = _by_site(Run.objects.filter(state__in=Run.ACTIVE).values_list("sut__site__name"))
    waiting = _by_site(Run.objects.filter(state=Run.State.QUEUED).values_list("sut__site__name"))
    stay = {name for name, site in sites.items() if site.keys_stay}
    everyone = [worker for worker in Worker.objects.all() if executes(worker, stay)]
    found = []
    for name, site in sites.items():
        there = [worker for worker in everyone if worker.site == name]
        alive = [worker for worker in there if abs(now - worker.seen_at) <= SILENT_AFTER]
        found.append(
            SiteState(
                name=name,
                description=site.description,
                hosts=hosts[name],
                workers=len(alive),
                slots=sum(worker.slots for worker in alive),
                live=live[name],
                most_live=site.most_live_runs or settings.BENCHHUB_SITE_LIVE_RUNS,
                waiting=waiting[name],
                trouble=_trouble(name, hosts[name], there, bool(alive), waiting[name], now),
            )
        )
    return found


def workers_of_no_site() -> list[str]:
    """A sentence for each worker that was started at a site that does not exist, or does not any more."""
    lost = Worker.objects.exclude(site=CENTRAL).exclude(site__in=Site.objects.values("name"))
    return [
        f"The worker {worker.name} is at the site {worker.site}, which does not exist: "
        f"`{settings.BENCHHUB_COMMAND} sites add {worker.site}`, or start it with another BENCHHUB_SITE."
        for worker in lost.order_by("name")
    ]


def _trouble(name: str, hosts: int, there: list[Worker], is_there: bool, waiting: int, now: datetime) -> str:
    """The central site's workers are told of by its queues."""
    if name == CENTRAL or not hosts or is_there:
        return ""
    waits = {0: "", 1: " One run waits there."}.get(waiting, f" {waiting} runs wait there.")
    if not there:
        return f"No worker is at site {name}.{waits}"
    minutes = max(int((now - max(worker.seen_at for worker in there)).total_seconds() // 60), 1)
    return f"No worker at site {name} has been seen for {minutes} min.{waits}"


def _by_site(names: object) -> Counter[str]:
    found: Counter[str] = Counter()
    for name, count in names.annotate(count=Count("pk")).order_by():  # type: ignore[attr-defined]
        found[name or CENTRAL] += count
    return found
