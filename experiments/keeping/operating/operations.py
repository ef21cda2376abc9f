"""The state of the installation for whoever operates it: workers, queues, live runs, hosts, database, broker."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.models import Count, Min, Q

from experiments.keeping.operating.broker import Broker, broker_name, look_at_broker
from experiments.keeping.operating.canaries import STUCK_AFTER, QueueState, queue_states
from experiments.keeping.operating.clocks import WrongClock, hosts_with_wrong_clocks, wrong_clocks
from experiments.keeping.operating.sites import SiteState, site_states, workers_of_no_site
from experiments.keeping.operating.watched import watched_queues
from experiments.models import Host, Run, Worker
from experiments.registry.database_clock import database_now
from experiments.registry.replica import ReplicaState, replica_state
from experiments.registry.workers.presence import SILENT_AFTER
from experiments.registry.workers.queues import queues_of
from experiments.running.queue.waiting import expected_of

MOST_HOSTS = 100


@dataclass(frozen=True)
class WorkerState:
    """A worker and what it runs now. `silent`: it has not said for a while that it is there."""

    worker: Worker
    silent: bool
    runs: list[Run]


@dataclass(frozen=True)
class LiveState:
    """The runs of one state. `lease_age_s`: since the last sign of life of the quietest one; None: nobody has it."""

    state: str
    runs: int
    lease_age_s: float | None

    @property
    def label(self) -> str:
        return Run.State(self.state).label.capitalize()


@dataclass(frozen=True)
class Database:
    """Size and connections of PostgreSQL. `connections` counts this database's, `used` all of the server's."""

    version: str
    size_bytes: int
    connections: int
    used: int
    most: int


@dataclass(frozen=True)
class Operations:
    """Everything at the database's time `now`."""

    now: datetime
    version: str
    workers: list[WorkerState]
    queues: list[QueueState]
    last_beat: datetime | None
    beat_silent: bool
    queued: dict[str, int]
    oldest: Run | None
    oldest_reason: str
    live: list[LiveState]
    hosts: list[Host]
    hosts_by_state: dict[str, int]
    database: Database
    replica: ReplicaState | None
    broker: Broker
    wrong_clocks: list[WrongClock]
    sites: list[SiteState]

    @property
    def beat_age_s(self) -> float | None:
        return None if self.last_beat is None else (self.now - self.last_beat).total_seconds()


def look() -> Operations:
    """Look at everything. The broker gets 2 s; the database is asked small questions on indexes."""
    now = database_now()
    names = watched_queues()
    queues = queue_states(names, now)
    beat = max((state.sent_at for state in queues if state.sent_at), default=None)
    oldest = oldest_waiting()
    by_state = hosts_by_state()
    return Operations(
        now=now,
        version=settings.VERSION,
        workers=workers(now),
        queues=queues,
        last_beat=beat,
        beat_silent=beat is None or abs(now - beat) > STUCK_AFTER,
        queued=queued_by_priority(),
        oldest=oldest,
        oldest_reason=why_it_waits(oldest) if oldest else "",
        live=live_states(now),
        hosts=hosts_not_ready(),
        hosts_by_state=by_state,
        database=database(),
        replica=replica_state(),
        broker=look_at_broker(names),
        wrong_clocks=wrong_clocks(now) + hosts_with_wrong_clocks(),
        sites=site_states(now),
    )


def troubles(
    queues: list[QueueState],
    broker: Broker,
    clocks: list[WrongClock],
    sites: list[SiteState],
    replica: ReplicaState | None = None,
) -> list[str]:
    """What is wrong although the pages work, in plain words; empty = nothing known."""
    found = [site.trouble for site in sites if site.trouble] + workers_of_no_site()
    said_already = {name for site in sites if site.trouble for name in queues_of(site.name)}
    found += [one.sentence for one in queues if one.level in ("stuck", "unknown") and one.name not in said_already]
    if not broker.answers:
        found.append(f"The broker ({broker_name()}) does not answer: {broker.trouble}.")
    if replica and replica.trouble:
        found.append(replica.sentence)
    return found + [clock.sentence for clock in clocks]


def workers(now: datetime) -> list[WorkerState]:
    """Workers by name, each with the live runs that it holds."""
    live = list(Run.objects.filter(state__in=Run.ACTIVE).exclude(owner="").select_related("team").defer("spec"))
    return [
        WorkerState(
            worker,
            silent=abs(now - worker.seen_at) > SILENT_AFTER,
            runs=[run for run in live if run.owner.startswith(f"{worker.process}:")],
        )
        for worker in Worker.objects.order_by("name", "process")
    ]


def queued_by_priority() -> dict[str, int]:
    rows = Run.objects.filter(state=Run.State.QUEUED).values_list("priority").annotate(runs=Count("pk"))
    return {Run.Priority(priority).label: runs for priority, runs in rows.order_by("-priority")}


def oldest_waiting() -> Run | None:
    queued = Run.objects.filter(state=Run.State.QUEUED).select_related("team").defer("spec")
    oldest: Run | None = queued.order_by("queued_at").first()
    return oldest


def why_it_waits(run: Run) -> str:
    """The queue's own reason for a waiting run; "" when it has been started meanwhile."""
    expected = expected_of(run)
    return expected.reason if expected else ""


def live_states(now: datetime) -> list[LiveState]:
    """Live runs by state, in the order of a run's life."""
    lease = timedelta(seconds=settings.BENCHHUB_LEASE_S)
    rows = (
        Run.objects.filter(state__in=Run.ACTIVE)
        .values("state")
        .annotate(runs=Count("pk"), quietest=Min("lease_until", filter=~Q(owner="")))
    )
    by_state: dict[str, dict[str, Any]] = {row["state"]: row for row in rows}
    return [
        LiveState(state, row["runs"], _age_s(row["quietest"], lease, now))
        for state in Run.ACTIVE
        if (row := by_state.get(state))
    ]


def _age_s(lease_until: datetime | None, lease: timedelta, now: datetime) -> float | None:
    return None if lease_until is None else max((now - (lease_until - lease)).total_seconds(), 0.0)


def hosts_not_ready() -> list[Host]:
    """Hosts of all teams on which nothing can run."""
    hosts = Host.objects.exclude(state=Host.State.READY).select_related("team").defer("private_key")
    return list(hosts.order_by("team__slug", "name")[:MOST_HOSTS])


def hosts_by_state() -> dict[str, int]:
    return dict(Host.objects.values_list("state").annotate(hosts=Count("pk")).order_by("state"))


def database() -> Database:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT current_setting('server_version'), pg_database_size(current_database()),"
            " (SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()),"
            " (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),"
            " current_setting('max_connections')::int"
        )
        return Database(*cursor.fetchone())
