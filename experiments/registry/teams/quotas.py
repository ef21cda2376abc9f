"""What a team may use: files, runs a day, runs that wait, hosts. Set by staff, checked where something is added."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Sum
from django.db.models.expressions import Combinable
from django.db.models.functions import Length

from experiments.models import ARTIFACT_BYTES, Artifact, Host, Member, Run, RunProfile, Team
from experiments.registry.database_clock import database_now
from experiments.registry.errors import Conflict, Forbidden, RequestError
from experiments.registry.teams import audit

_LIMITS = ("quota_runs_per_day", "quota_artifact_bytes", "quota_queued_runs")
MAX_QUOTA = 2**31 - 1
MAX_BYTES = 2**50
FILES: tuple[tuple[type[Artifact | RunProfile], Combinable], ...] = (
    (Artifact, ARTIFACT_BYTES),
    (RunProfile, Length("folded")),
)
"""What counts as files of runs: the model, and the size of what a row holds, wherever that is."""


@dataclass(frozen=True)
class Quota:
    """One limit: the field of the team that holds it, what it is in words, what its numbers count."""

    field: str
    label: str
    unit: str
    most: int


QUOTAS = (
    Quota("quota_artifact_bytes", "files of runs", "bytes", MAX_BYTES),
    Quota("quota_runs_per_day", "runs per day (UTC), imports too", "runs", MAX_QUOTA),
    Quota("quota_queued_runs", "runs waiting in the queue", "runs", MAX_QUOTA),
    Quota("quota_hosts", "hosts", "hosts", MAX_QUOTA),
    Quota("quota_live_runs", "live runs at the same time; more wait", "runs", MAX_QUOTA),
)


class QuotaExceeded(Conflict):
    """The team has used what it may use."""


@dataclass(frozen=True)
class Use:
    """How much of a quota is used; the size of files is as measured in the last hour."""

    quota: Quota
    used: int
    limit: int

    @property
    def ratio(self) -> float:
        return self.used / self.limit if self.limit else 1.0


def admit_runs(team: Team, count: int, *, queued: bool = True) -> int:
    """Reserve run numbers for runs that somebody asks for and return the first; QuotaExceeded names what is used up.

    Call it in the transaction that stores the runs: its lock on the team's row makes the count exact.
    """
    locked = Team.objects.select_for_update(no_key=True)
    now = locked.only("next_run_number", "runs_day", "runs_on_day", "artifact_bytes", *_LIMITS).get(pk=team.pk)
    today = database_now().date()
    on_day = count + (now.runs_on_day if now.runs_day == today else 0)
    if on_day > now.quota_runs_per_day:
        raise _exceeded("runs per day", f"{now.quota_runs_per_day:,}", "It begins anew at midnight UTC.")
    _admit_files(now)
    if queued and waiting(team) + count > now.quota_queued_runs:
        raise _exceeded("runs waiting in the queue", f"{now.quota_queued_runs:,}", "Wait, or cancel some.")
    first = now.next_run_number
    Team.objects.filter(pk=team.pk).update(next_run_number=first + count, runs_on_day=on_day, runs_day=today)
    return first


def admit_files(team: Team) -> None:
    """QuotaExceeded when the files of the team's runs, as measured last, fill its quota."""
    _admit_files(Team.objects.only("artifact_bytes", "quota_artifact_bytes").get(pk=team.pk))


def admit_host(team: Team) -> None:
    """QuotaExceeded when the team has as many hosts as it may have."""
    limit = Team.objects.select_for_update(no_key=True).get(pk=team.pk).quota_hosts
    if Host.objects.for_team(team).count() >= limit:
        raise _exceeded("hosts", f"{limit:,}", "Remove one that nothing was measured on.")


def waiting(team: Team) -> int:
    """The team's runs in the queue."""
    return Run.objects.filter(team=team, state=Run.State.QUEUED).count()


def usage(team: Team) -> list[Use]:
    """All quotas with what is used of them."""
    now = Team.objects.get(pk=team.pk)
    today = now.runs_on_day if now.runs_day == database_now().date() else 0
    live = Run.objects.filter(team=now, state__in=Run.ACTIVE).count()
    used = (now.artifact_bytes, today, waiting(now), Host.objects.for_team(now).count(), live)
    return [Use(quota, count, getattr(now, quota.field)) for quota, count in zip(QUOTAS, used, strict=True)]


def set_quotas(user: User, member: Member, values: Mapping[str, int]) -> None:
    """Change quotas of the member's team, by field. Staff may; RequestError names a value that is out of range."""
    if not user.is_staff:
        raise Forbidden("Quotas are changed by the staff of this installation.")
    for quota in QUOTAS:
        if not 0 <= values.get(quota.field, 0) <= quota.most:
            raise RequestError(f"The quota of {quota.label} must be between 0 and {quota.most:,}.", field=quota.field)
    with transaction.atomic():
        team = Team.objects.select_for_update(no_key=True).get(pk=member.team_id)
        changed = {
            quota.field: values[quota.field]
            for quota in QUOTAS
            if quota.field in values and values[quota.field] != getattr(team, quota.field)
        }
        if not changed:
            return
        before = {name: getattr(team, name) for name in changed}
        Team.objects.filter(pk=team.pk).update(**changed)
        audit.record(member, "quota.set", f"team {team.name}", before=before, after=changed)


def measure_files() -> None:
    """Measure the files of every team's runs: adding them up takes too long to do it whenever a run is launched."""
    sizes: Counter[int] = Counter()
    for model, size in FILES:
        sizes.update(dict(model.objects.values_list("run__team").annotate(size=Sum(size)).order_by()))
    for team in Team.objects.only("pk"):
        Team.objects.filter(pk=team.pk).update(artifact_bytes=sizes[team.pk], measured_at=database_now())


def bytes_of_files(**of: Any) -> int:
    """The size of the files and folded profiles of some runs, chosen by lookups from a file: `run__in=...`."""
    found = (model.objects.filter(**of).aggregate(size=Sum(size))["size"] for model, size in FILES)
    return sum(one or 0 for one in found)


def _admit_files(team: Team) -> None:
    if team.artifact_bytes >= team.quota_artifact_bytes:
        limit = f"{team.quota_artifact_bytes / 2**30:,.1f} GiB"
        raise _exceeded("files of runs", limit, "Delete runs that nobody needs, or set a retention.")


def _exceeded(quota: str, limit: str, advice: str) -> QuotaExceeded:
    return QuotaExceeded(f"The team's quota is used up: {quota}, at most {limit}. {advice} Staff can raise it.")
