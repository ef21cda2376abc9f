"""Many runs at once: tag, untag, archive, take out of the archive, run again. All of them or none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from django.db import transaction

from experiments.asking.launching.launch import rerun
from experiments.models import Member, Role, Run
from experiments.models.runs import RunQuerySet
from experiments.registry.errors import Conflict, NotFound, RequestError
from experiments.registry.notes.labels import MAX_LABELS, check_tags
from experiments.registry.teams import audit
from experiments.registry.teams.access import require
from experiments.running.ending.rejudging import refresh_series

MAX_RUNS = 500


def tag_runs(member: Member, numbers: Iterable[int], tags: Iterable[str]) -> list[Run]:
    """Add the tags to each of the runs; returns those that were changed. Launchers may."""
    added = _tags(tags)

    def tagged(run: Run) -> list[str]:
        found = list(dict.fromkeys([*run.tags, *added]))
        if len(found) > MAX_LABELS:
            raise RequestError(f"Run #{run.number} would have more than {MAX_LABELS} tags.", field="tags")
        return found

    return _retag(member, "run.tag", numbers, tagged)


def untag_runs(member: Member, numbers: Iterable[int], tags: Iterable[str]) -> list[Run]:
    """Take the tags off each of the runs; returns those that were changed. Launchers may."""
    removed = set(_tags(tags))
    return _retag(member, "run.untag", numbers, lambda run: [tag for tag in run.tags if tag not in removed])


def archive_runs(member: Member, numbers: Iterable[int]) -> list[Run]:
    """Leave the runs out of lists and histories; experiments that they belong to keep them. Editors may.

    Returns those that were changed. Conflict names a run that is not finished.
    """
    return _archive(member, "run.archive", numbers, archived=True)


def unarchive_runs(member: Member, numbers: Iterable[int]) -> list[Run]:
    """Put archived runs back into lists and histories; returns those that were changed. Editors may."""
    return _archive(member, "run.unarchive", numbers, archived=False)


def rerun_runs(member: Member, numbers: Iterable[int]) -> list[Run]:
    """Queue each of the runs again, outside any experiment; returns the new runs in the order of the old numbers."""
    require(member, Role.LAUNCHER)
    wanted = _checked(numbers)
    with transaction.atomic():
        again = []
        for run in _with_parts(member, wanted):
            try:
                again.append(rerun(member, run))
            except RequestError as error:
                raise type(error)(f"Run #{run.number}: {error.message}", field="runs") from error
    return again


def _retag(member: Member, action: str, numbers: Iterable[int], tags_of: Callable[[Run], list[str]]) -> list[Run]:
    require(member, Role.LAUNCHER)
    with transaction.atomic():
        before, changed = {}, []
        for run in _locked(member, _checked(numbers)):
            tags = tags_of(run)
            if tags != run.tags:
                before[f"#{run.number}"], run.tags = run.tags, tags
                changed.append(run)
        if changed:
            Run.objects.bulk_update(changed, ["tags"])
            after = {f"#{run.number}": run.tags for run in changed}
            audit.record(member, action, _named(changed), before=before, after=after)
    return changed


def _archive(member: Member, action: str, numbers: Iterable[int], *, archived: bool) -> list[Run]:
    require(member, Role.EDITOR)
    with transaction.atomic():
        changed = [run for run in _locked(member, _checked(numbers)) if run.archived != archived]
        for run in changed:
            if run.is_live:
                raise Conflict(f"Run #{run.number} is not finished; cancel it first.", field="runs")
            run.archived = archived
        if changed:
            Run.objects.bulk_update(changed, ["archived"])
            audit.record(
                member,
                action,
                _named(changed),
                before=_archived(changed, not archived),
                after=_archived(changed, archived),
            )
        for fingerprint in sorted({run.fingerprint for run in changed if run.fingerprint}):
            refresh_series(member.team, fingerprint)
    return changed


def _locked(member: Member, numbers: Sequence[int]) -> list[Run]:
    return _found(Run.objects.for_team(member.team).select_for_update(of=("self",)), numbers)


def _with_parts(member: Member, numbers: Sequence[int]) -> list[Run]:
    parts = ("team", "application", "recipe", "workload", "sut__profile", "drivers")
    runs = Run.objects.for_team(member.team).select_related(*parts).prefetch_related("drivers__hosts")
    return _found(runs, numbers)


def _found(runs: RunQuerySet, numbers: Sequence[int]) -> list[Run]:
    """The runs of these numbers, in their order. NotFound names the first that is not there."""
    found = {run.number: run for run in runs.filter(number__in=numbers).order_by("pk")}
    for number in numbers:
        if number not in found:
            raise NotFound(f"There is no run #{number}.", field="runs")
    return [found[number] for number in numbers]


def _checked(numbers: Iterable[int]) -> list[int]:
    wanted = sorted(set(numbers))
    if not wanted:
        raise RequestError("Choose at least one run.", field="runs")
    if len(wanted) > MAX_RUNS:
        raise RequestError(f"At most {MAX_RUNS} runs can be changed at once; these are {len(wanted)}.", field="runs")
    if not 0 < wanted[0] <= wanted[-1] < 2**31:
        odd = wanted[0] if wanted[0] <= 0 else wanted[-1]
        raise NotFound(f"There is no run #{odd}.", field="runs")
    return wanted


def _tags(tags: Iterable[str]) -> list[str]:
    checked = check_tags(tags)
    if not checked:
        raise RequestError("Give at least one tag.", field="tags")
    return checked


def _archived(runs: Sequence[Run], archived: bool) -> dict[str, object]:
    return {"archived": archived, "runs": [run.number for run in runs]}


def _named(runs: Sequence[Run]) -> str:
    """The runs in words: "run #3", "3 runs from #2 to #9"."""
    if len(runs) == 1:
        return f"run #{runs[0].number}"
    return f"{len(runs)} runs from #{runs[0].number} to #{runs[-1].number}"
