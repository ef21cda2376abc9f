"""How long a team keeps its runs: what would go is counted before it is switched on; then it goes to the trash."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.db.models import Max, Min

from experiments.keeping.retention.batches import while_there_is_time
from experiments.keeping.retention.exemptions import exemptions, past_retention, without_exempt
from experiments.keeping.retention.trash import refresh
from experiments.models import Member, Role, Run, Team
from experiments.registry.database_clock import database_now
from experiments.registry.errors import RequestError
from experiments.registry.teams import audit
from experiments.registry.teams.access import require
from experiments.registry.teams.quotas import bytes_of_files

logger = logging.getLogger(__name__)

MIN_DAYS, MAX_DAYS = 7, 3660
MOST_AT_ONCE = 200
"""Runs of one team that go in one transaction."""
SERIES_AT_ONCE = 20
"""Series that they are of at most: the trends of each are made again under its lock, which takes most of the time."""


@dataclass(frozen=True)
class Forecast:
    """What a retention of `days` would take now: runs, when they ended, the size of their files.

    `kept` are the older runs that it leaves, by the reason; a run may have several.
    """

    days: int
    runs: int
    oldest_at: datetime | None
    newest_at: datetime | None
    artifact_bytes: int
    kept: Mapping[str, int]


def forecast(team: Team, days: int) -> Forecast:
    """Count without changing anything. RequestError when the days are out of range."""
    _check(days)
    runs = past_retention(team, days)
    taken = without_exempt(team, runs)
    numbers = taken.aggregate(first=Min("finished_at"), last=Max("finished_at"))
    size = bytes_of_files(run__in=taken.values("pk"))
    kept = {why: count for why, condition in exemptions(team).items() if (count := runs.filter(condition).count())}
    return Forecast(days, taken.count(), numbers["first"], numbers["last"], size, kept)


def set_retention(member: Member, days: int | None) -> None:
    """Keep runs that nothing exempts for so many days; None = for ever. Admins may."""
    require(member, Role.ADMIN)
    if days is not None:
        _check(days)
    with transaction.atomic():
        team = Team.objects.select_for_update(of=("self",), no_key=True).get(pk=member.team_id)
        before = team.retention_days
        if before == days:
            return
        Team.objects.filter(pk=team.pk).update(retention_days=days)
        said = {"retention_days": "for ever" if days is None else days}
        audit.record(
            member,
            "retention.set",
            f"team {team.name}",
            before={"retention_days": "for ever" if before is None else before},
            after=said,
        )
    member.team.retention_days = days


def apply_retention() -> int:
    """Move runs of each team that has a retention to the trash, for as long as a round goes on; returns how many went.

    The teams take turns, and chance says who begins, so that where time is short it is not always the same one's.
    """
    moved = 0
    waiting = deque(Team.objects.filter(retention_days__isnull=False).order_by("?").values_list("pk", flat=True))
    for _ in while_there_is_time():
        if not waiting:
            break
        team_id = waiting.popleft()
        try:
            went = _apply(team_id)
        except Exception:  # the other teams have their turn, and this one has it in the next round
            logger.exception("the retention of the team %s cannot be applied", team_id)
            continue
        if went:
            moved += went
            waiting.append(team_id)
    return moved


def _apply(team_id: int) -> int:
    """Move the team's oldest runs that are due and others of their series; returns how many.

    Its retention is read anew, for it may have been changed since the round began.
    """
    with transaction.atomic():
        team = Team.objects.filter(pk=team_id, retention_days__isnull=False).first()
        if team is None or (days := team.retention_days) is None:
            return 0
        due = without_exempt(team, past_retention(team, days)).order_by("pk")
        series = set(due.values_list("fingerprint", flat=True)[:SERIES_AT_ONCE])
        ids = list(due.filter(fingerprint__in=series).values_list("pk", flat=True)[:MOST_AT_ONCE])
        list(Run.objects.select_for_update(of=("self",)).filter(pk__in=ids).order_by("pk").values_list("pk"))
        # Asked once more: somebody may have tagged or archived one while its lock was waited for.
        runs = list(due.filter(pk__in=ids).only("number", "fingerprint", "experiment_id", "team_id"))
        if not runs:
            return 0
        Run.objects.filter(pk__in=[run.pk for run in runs]).update(trashed_at=database_now())
        after = {"runs": sorted(run.number for run in runs)}
        audit.record(team, "retention.trash", f"{len(runs)} runs older than {days} days", after=after)
        refresh(team, runs)
    return len(runs)


def _check(days: int) -> None:
    if not MIN_DAYS <= days <= MAX_DAYS:
        raise RequestError(f"Runs are kept for {MIN_DAYS} to {MAX_DAYS} days, or for ever.", field="days")
