"""The queue: which run may start, on hosts leased all or none, and which one lost its worker.

PostgreSQL decides. All claims of an installation are made one after the other (an advisory lock: they are rare and
short), so that no two workers see the same hosts as free. A host stays leased until the restore is verified.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.db import connection, transaction
from django.db.models import BigIntegerField, Exists, F, Func, Min, OuterRef, Q
from django.db.models.functions import Coalesce, Now

from experiments.models import Host, Reservation, Run
from experiments.models.experiments import HELD
from experiments.registry.hosts.driver_sets import members_of
from experiments.running.queue.fairness import shares_of, urgency

_NEXT_FENCE_SQL = "nextval('experiments_fence')"
NEXT_FENCE = Func(template=_NEXT_FENCE_SQL, output_field=BigIntegerField())
"""One number for the whole installation, always growing: whoever holds a host by a greater one is the newer holder."""

_CLAIM_LOCK = 0x42656E6368  # "Bench"
NOBODY = 0
"""Stands for the person of a run whose account is gone: no reservation is theirs."""


@dataclass(frozen=True)
class _Claimable:
    """A run as it was seen: it is claimed only while it is still so. `hosts` are leased with it."""

    run_id: int
    state: str
    fence: int | None = None
    hosts: frozenset[int] = frozenset()


def claim_next(owner: str) -> Run | None:
    """Take the next run for this worker: first one whose worker is gone, else the next whose hosts are all free.

    The claim raises the fence (one number for the whole installation, always growing) and starts a lease.
    """
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_CLAIM_LOCK])
        found = _orphan() or _startable()
        if found is None:
            return None
        # A cancel or a conclusion may have come between the look and the claim: only what is still so is claimed.
        same = Run.objects.filter(pk=found.run_id, state=found.state)
        claimed = (same if found.fence is None else same.filter(fence=found.fence)).update(
            fence=NEXT_FENCE,
            owner=owner,
            lease_until=Now() + timedelta(seconds=settings.BENCHHUB_LEASE_S),
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
    return run


def next_fence() -> int:
    """A fence for work on a host that is no run."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {_NEXT_FENCE_SQL}")
        return int(cursor.fetchone()[0])


def something_to_do() -> bool:
    """Whether a claim could succeed now: a cheap look, the claim itself decides."""
    return _orphan() is not None or _startable() is not None


def _orphan() -> _Claimable | None:
    lost = Run.objects.filter(state__in=Run.ACTIVE, lease_until__lt=Now()).order_by("lease_until")
    row = lost.values_list("pk", "state", "fence").first()
    return _Claimable(*row) if row else None


def _startable() -> _Claimable | None:
    """The first run in the fair order whose hosts are free and wanted by none before it: a wide run is not overtaken.

    Runs of one person with the same hosts and urgency stand or fall together, so that only the oldest of each such
    group is looked at, however many wait. A run that waits for a host out of service, or reserved for somebody else,
    holds up nobody.
    """
    kept = Reservation.objects.filter(Q(hosts=OuterRef("sut")) | Q(hosts__driver_sets=OuterRef("drivers")))
    kept = kept.filter(starts_at__lte=Now(), until__gt=Now()).exclude(
        member__user=Coalesce(OuterRef("created_by"), NOBODY)
    )
    out_of_service = Host.objects.filter(driver_sets=OuterRef("drivers")).exclude(state=Host.State.READY)
    groups = list(
        Run.objects.filter(~Exists(kept), ~Exists(out_of_service), state=Run.State.QUEUED)
        .exclude(experiment__state__in=HELD)
        .filter(sut__state=Host.State.READY, drivers__isnull=False)
        .order_by()
        .annotate(urgency=urgency())
        .values("team", "created_by", "urgency", "sut", "drivers")
        .annotate(first=Min("pk"))
    )
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
    if not groups:
        return None
    drivers = members_of({group["drivers"] for group in groups})
    leased = set(Host.objects.filter(leased_by__isnull=False).values_list("pk", flat=True))
    wanted: set[int] = set()
    for group in groups:
        hosts = frozenset((group["sut"], *drivers[group["drivers"]]))
        if not hosts & (wanted | leased):
            return _Claimable(group["first"], Run.State.QUEUED, hosts=hosts)
        wanted |= hosts
    return None
