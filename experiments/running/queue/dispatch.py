"""The queue: which run may start, on hosts leased all or none, and which one lost its worker.

PostgreSQL decides. All claims of an installation are made one after the other (an advisory lock: they are rare and
short), so that no two workers see the same hosts as free. A host stays leased until the restore is verified.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from django.db import connection, transaction
from django.db.models import BigIntegerField, F, Func, Min
from django.db.models.functions import Coalesce, Now

from experiments.models import CENTRAL, Host, Run
from experiments.models.experiments import HELD
from experiments.registry.hosts.driver_sets import members_of
from experiments.registry.hosts.machines import sisters_of, who_uses
from experiments.registry.hosts.sites import at, sites_whose_keys_stay
from experiments.running.queue.availability import look_at_machines
from experiments.running.queue.fairness import shares_of, urgency
from experiments.running.queue.leases import lease_end, lost_runs
from experiments.running.queue.live_limits import live_limits
from experiments.running.queue.workers import teams_served_at

logger = logging.getLogger(__name__)

_NEXT_FENCE_SQL = "nextval('experiments_fence')"
NEXT_FENCE = Func(template=_NEXT_FENCE_SQL, output_field=BigIntegerField())
"""One number for the whole installation, always growing: whoever holds a host by a greater one is the newer holder."""

_CLAIM_LOCK = 0x42656E6368  # "Bench"
_SPARE_FENCES = 1000
_FURTHEST_FENCES = 10**10
"""How far a host may be ahead of the database: no installation claims as often in its life. A host that says more is
broken or hostile, and the number is that of all hosts: near its end none of them would take a run any more."""
CANARIES_TAKE = timedelta(minutes=4)
"""Longer than the checks of a host can take: connecting, the survey and each check are bounded below that."""


@dataclass(frozen=True)
class _Claimable:
    """A run as it was seen: it is claimed only while it is still so. `hosts` are leased with it."""

    run_id: int
    state: str
    fence: int | None = None
    hosts: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Claim:
    """A run that was claimed, and whether another one was due at that moment, as far as the same look told."""

    run: Run
    more_due: bool


def claim_next(owner: str, site: str = CENTRAL, team_id: int | None = None) -> Run | None:
    """As `claim`, for whoever wakes nobody."""
    found = claim(owner, site, team_id)
    return None if found is None else found.run


def claim(owner: str, site: str = CENTRAL, team_id: int | None = None) -> Claim | None:
    """Take the next run for this worker: first one whose worker is gone, else the next whose hosts are all free.

    Only runs whose hosts are all at the worker's `site` are taken: it reaches no others. Of a
    site whose keys stay there, only a worker that has fetched them takes some; it acts for one team, and `team_id` says
    for which.

    The claim raises the fence (one number for the whole installation, always growing) and starts a lease.
    """
    began_s = time.monotonic()
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_CLAIM_LOCK])
        due = _due(site, team_id)
        found = next(due, None)
        if found is None:
            return None
        more_due = next(due, None) is not None
        # A cancel, a conclusion or a heartbeat may have come between the look and the claim: only what is still so is
        # claimed.
        same = Run.objects.all() if found.fence is None else lost_runs().filter(fence=found.fence)
        claimed = same.filter(pk=found.run_id, state=found.state).update(
            fence=NEXT_FENCE,
            owner=owner,
            lease_until=lease_end(),
            doubted_at=None,
            attempts=F("attempts") + 1,
            started_at=Coalesce(F("started_at"), Now()),
            state=Run.State.PREPARING if found.state == Run.State.QUEUED else found.state,
        )
        if not claimed:
            return None
        if found.hosts:
            in_order = Host.objects.select_for_update(of=("self",)).filter(pk__in=found.hosts).order_by("pk")
            list(in_order.values_list("pk"))  # as whoever reserves them locks them
            Host.objects.filter(pk__in=found.hosts).update(leased_by=found.run_id, last_restore={})
    run: Run = Run.objects.get(pk=found.run_id)
    took_ms = 1000 * (time.monotonic() - began_s)
    told = (run.pk, run.number, run.fence, run.attempts, took_ms)
    logger.info("run %s (#%s): claimed with fence %s, attempt %s, in %.0f ms", *told)
    return Claim(run, more_due)


def next_fence() -> int:
    """A fence for work on a host that is no run."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {_NEXT_FENCE_SQL}")
        return int(cursor.fetchone()[0])


@dataclass(frozen=True)
class Ahead:
    """What a fence that a host has seen means: whether the database was behind it, and whether it may be believed."""

    behind: bool
    believed: bool


def go_on_above(seen: int) -> Ahead:
    """Give out only greater fences than this one, which a host has had, unless that cannot be.

    It is after the restore of a backup: the hosts have seen what this database has not given out yet.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_CLAIM_LOCK])
        cursor.execute("SELECT last_value FROM experiments_fence")
        (newest,) = cursor.fetchone()
        ahead = Ahead(behind=newest < seen, believed=seen <= newest + _FURTHEST_FENCES)
        if ahead.behind and ahead.believed:  # with some to spare, as the database may give one out at this moment
            cursor.execute("SELECT setval('experiments_fence', %s)", [seen + _SPARE_FENCES])
    return ahead


def something_to_do(site: str = CENTRAL, team_id: int | None = None) -> bool:
    """Whether a claim at the site could succeed now: a cheap look, the claim itself decides."""
    return next(_due(site, team_id), None) is not None


def _due(site: str, team_id: int | None) -> Iterator[_Claimable]:
    """What may be claimed now, in order: asked only as far as it is looked at."""
    # Where keys stay, a worker of the database has none for the hosts: it could only fail their runs.
    if team_id is None and site != CENTRAL and site in sites_whose_keys_stay():
        return
    lost = lost_runs().filter(at(site, "sut__"))
    rows = (lost if team_id is None else lost.filter(team=team_id)).values_list("pk", "state", "fence")[:2]
    yield from (_Claimable(*row) for row in sorted(rows))
    yield from _startable(site, team_id)


def _startable(site: str, team_id: int | None) -> Iterator[_Claimable]:
    """The runs in the fair order whose hosts are free and wanted by none before them: a wide run is not overtaken.

    Runs of one person with the same hosts and urgency stand or fall together, so that only the oldest of each such
    group is looked at, however many wait. A run that waits for a host out of service, or reserved for somebody else,
    holds up nobody, nor does one whose team has as many live runs as it may, or no worker at a site whose workers act
    for one team each. What is said of a host holds for all hosts that are the same machine.
    """
    groups = list(
        Run.objects.filter(state=Run.State.QUEUED)
        .exclude(experiment__state__in=HELD)
        .filter(at(site, "sut__"), sut__state=Host.State.READY, drivers__isnull=False)
        .order_by()
        .annotate(urgency=urgency())
        .values("team", "created_by", "urgency", "sut", "drivers")
        .annotate(first=Min("pk"))
    )
    limits = live_limits({group["team"] for group in groups})
    groups = [group for group in groups if not limits.team_is_full(group["team"])]
    if team_id is not None:
        there = teams_served_at(site) | {team_id}
        groups = [group for group in groups if group["team"] in there]
    if not groups or limits.site_is_full(site):
        return
    drivers = members_of({group["drivers"] for group in groups})
    hosts_of = {(sut, key): frozenset((sut, *drivers[key])) for sut, key in {(g["sut"], g["drivers"]) for g in groups}}
    machines = look_at_machines(frozenset().union(*hosts_of.values()), site)
    groups = [one for one in groups if machines.allow(hosts_of[one["sut"], one["drivers"]], one["created_by"])]
    shares = shares_of({group["team"] for group in groups}) if len(groups) > 1 else None
    if shares is not None:
        groups.sort(
            key=lambda group: shares.key(
                team_id=group["team"],
                user_id=group["created_by"],
                urgency=group["urgency"],
                run_id=group["first"],
            )
        )
    wanted: set[int] = set()
    for group in groups:
        hosts = hosts_of[group["sut"], group["drivers"]]
        if not machines.of(hosts) & (wanted | machines.taken) and team_id in (None, group["team"]):
            yield _Claimable(group["first"], Run.State.QUEUED, hosts=hosts)
        wanted |= machines.of(hosts)


def hold_for_canaries(host: Host) -> str:
    """Keep runs away from the host's machine while it is checked; "" when it is kept, else who has it, in words.

    The hold ends by itself after CANARIES_TAKE: a worker that dies keeps nobody away for longer.
    """
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_CLAIM_LOCK])
        here = Host.objects.select_related("leased_by").get(pk=host.pk)
        if here.leased_by is not None:
            return f"Run #{here.leased_by.number} is using {here.name}."
        sisters = sisters_of([here]).of(here.pk)
        if used := who_uses(here, sisters):
            return f"{used}."
        machine = Host.objects.filter(pk__in=[here.pk, *(one.pk for one in sisters)])
        if machine.filter(canaries_until__gt=Now()).exists():
            return f"{here.name} is being checked already."
        Host.objects.filter(pk=here.pk).update(canaries_until=Now() + CANARIES_TAKE)
    return ""


def let_go_after_canaries(host_id: int) -> None:
    """Its checks have ended: runs may start there again."""
    Host.objects.filter(pk=host_id).update(canaries_until=None)
