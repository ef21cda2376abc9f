"""Who holds a run, by the database's clock alone, and what becomes of leases when that clock is set.

A holder lets its lease last so many seconds from now, again every few seconds. Two things follow, whatever the clock
does: no lease lasts longer than that from now, and who lives has renewed his soon after all of them ended at once.
"""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.db.models.expressions import CombinedExpression
from django.db.models.functions import Now

from experiments.models import Run
from experiments.models.runs import RunQuerySet

HEARTBEATS_AWAITED = 1.5
SLACK = timedelta(seconds=1)


def lease_end() -> CombinedExpression:
    """When a lease ends that is taken or renewed now: an expression of the database's time."""
    return Now() + timedelta(seconds=settings.BENCHHUB_LEASE_S)


def renew(runs: RunQuerySet) -> None:
    """Hold these runs for another while, whose holder has shown that it lives; not those that nobody holds."""
    held = runs.filter(lease_until__isnull=False).exclude(owner="", state__in=Run.ACTIVE)
    with transaction.atomic():
        locked = list(held.select_for_update(of=("self",)).order_by("pk").values_list("pk", flat=True))
        Run.objects.filter(pk__in=locked).update(lease_until=lease_end(), doubted_at=None)


def look_over() -> None:
    """Make leases right whose end the clock has moved. Every few seconds; safe to repeat and to do twice at a time.

    Set back, the clock has made leases longer than any can be: they are cut. Set forward, it has ended those of workers
    that live: a lease that is over is doubted first. A row that somebody else has locked is left for the next look.
    """
    with transaction.atomic():
        _unlocked(Run.objects.filter(lease_until__gt=lease_end() + SLACK)).update(lease_until=lease_end())
        never_doubted = Q(doubted_at=None) | Q(doubted_at__gt=Now() + SLACK)
        over = Run.objects.filter(never_doubted, state__in=Run.ACTIVE, lease_until__lt=Now())
        _unlocked(over).update(doubted_at=Now())


def lost_runs() -> RunQuerySet:
    """Active runs whose worker is gone: it let them go, or did not renew a lease that has been doubted for a while."""
    awaited = timedelta(seconds=HEARTBEATS_AWAITED * settings.BENCHHUB_HEARTBEAT_S)
    let_go = Q(owner="")
    return Run.objects.filter(
        let_go | Q(doubted_at__lte=Now() - awaited), state__in=Run.ACTIVE, lease_until__lt=Now()
    ).order_by("lease_until")


def _unlocked(runs: RunQuerySet) -> RunQuerySet:
    """Those of them that nobody has locked, locked now."""
    rows = runs.select_for_update(of=("self",), skip_locked=True).order_by("pk")
    return Run.objects.filter(pk__in=list(rows.values_list("pk", flat=True)))
