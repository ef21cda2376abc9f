"""Pinned baselines: a team gives a run a name, and other runs are held against it."""

from __future__ import annotations

from collections.abc import Iterable

from django.db import transaction
from django.db.models import QuerySet

from experiments.models import Member, PinnedBaseline, Role, Run, Team
from experiments.registry.errors import Conflict, NotFound, RequestError
from experiments.registry.runs.holding import hold
from experiments.registry.teams import audit
from experiments.registry.teams.access import require

MAX_NAME = 80
MAX_BASELINES = 200


def pin(member: Member, run: Run, name: str, *, for_series: bool = False) -> PinnedBaseline:
    """Give the run a name to compare with; a name that is there already moves to this run. Editors may.

    `for_series`: every run of the same series is held against it from now on; the series' earlier one keeps its name.
    """
    require(member, Role.EDITOR)
    name = _name(name)
    if not run.is_usable:
        raise Conflict("Only a run that succeeded and is valid or suspect can be a baseline.")
    if for_series and not run.fingerprint:
        raise Conflict("This run belongs to no series; give it a name only.", field="for_series")
    with transaction.atomic():
        if not hold(run):
            raise NotFound(f"There is no run #{run.number}.", field="run")
        # Two people who pin at once wait for each other: one run per name, one baseline per series.
        Team.objects.select_for_update(of=("self",), no_key=True).get(pk=run.team_id)
        pinned = PinnedBaseline.objects.for_team(run.team)
        found = baselines_of(run.team).filter(name=name).first()
        if found is None and pinned.count() >= MAX_BASELINES:
            raise Conflict(f"A team pins at most {MAX_BASELINES} baselines; unpin one first.")
        before = _said(found) if found else None
        if for_series:
            pinned.filter(fingerprint=run.fingerprint).exclude(name=name).update(fingerprint="")
        found = found or PinnedBaseline(team=run.team, name=name)
        found.run, found.pinned_by = run, member.user
        found.fingerprint = run.fingerprint if for_series else ""
        found.save()
        audit.record(member, "baseline.pin", f"baseline {name}", before=before, after=_said(found))
    return found


def unpin(member: Member, baseline: PinnedBaseline) -> None:
    """Take the name off its run. Editors may."""
    require(member, Role.EDITOR)
    with transaction.atomic():
        if not PinnedBaseline.objects.filter(pk=baseline.pk).delete()[0]:
            raise NotFound(f"There is no baseline {baseline.name!r}.", field="baseline")
        audit.record(member, "baseline.unpin", f"baseline {baseline.name}", before=_said(baseline))


def baselines_of(team: Team) -> QuerySet[PinnedBaseline]:
    """The team's pinned baselines with their runs, by name."""
    found: QuerySet[PinnedBaseline] = PinnedBaseline.objects.for_team(team).select_related("run", "pinned_by")
    return found.defer("run__spec", "run__findings").order_by("name")


def baseline_named(team: Team, name: str) -> PinnedBaseline:
    """The baseline of this name. NotFound when the team has none."""
    found = None if "\0" in name else baselines_of(team).filter(name=name).first()
    if found is None:
        raise NotFound(f"There is no baseline {name[:MAX_NAME]!r}.", field="baseline")
    return found


def series_baselines(team: Team, fingerprints: Iterable[str]) -> dict[str, PinnedBaseline]:
    """Fingerprint -> the baseline that every run of that series is held against. One query."""
    wanted = {fingerprint for fingerprint in fingerprints if fingerprint}
    found = baselines_of(team).filter(fingerprint__in=wanted) if wanted else ()
    return {baseline.fingerprint: baseline for baseline in found}


def _name(name: str) -> str:
    name = name.strip()
    if not name or len(name) > MAX_NAME or not name.isprintable():
        raise RequestError(f"A baseline's name has 1 to {MAX_NAME} printable characters.", field="name")
    if any(part in ("", ".", "..") for part in name.split("/")):
        # Branches are called so (feature/pool); addresses with such parts are rewritten on their way.
        raise RequestError("A baseline's name, and each part between slashes, is more than a dot or two.", field="name")
    return name


def _said(baseline: PinnedBaseline) -> dict[str, object]:
    return {"run": baseline.run.number, "for_series": bool(baseline.fingerprint)}
