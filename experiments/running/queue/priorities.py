"""How urgent a run is: chosen at launch, changed while it waits. `high` is for editors and above."""

from __future__ import annotations

import functools

from django.db import transaction

from experiments.models import Member, Role, Run
from experiments.registry.errors import Conflict, Forbidden, RequestError
from experiments.registry.teams import audit
from experiments.registry.teams.access import require
from experiments.registry.workers.outbox import announce

MAX_RETRIES = 3

PRIORITIES: dict[str, Run.Priority] = {priority.label.lower(): priority for priority in Run.Priority}
"""The names that the API, the forms and `benchhub-ci` use: low, normal, high."""


@functools.cache
def name_of(priority: int) -> str:
    return Run.Priority(priority).label.lower()


def check_priority(member: Member, priority: int) -> None:
    """Forbidden, at the field, when the member may not ask for it."""
    if priority not in Run.Priority.values:
        raise RequestError(f"A priority is one of {', '.join(PRIORITIES)}.", field="priority")
    if priority == Run.Priority.HIGH and not Role(member.role).covers(Role.EDITOR):
        raise Forbidden(f"High priority needs the role editor; yours is {member.role}.", field="priority")


def check_retries(retries: int) -> None:
    if not 0 <= retries <= MAX_RETRIES:
        raise RequestError(f"Retries are between 0 and {MAX_RETRIES}.", field="retries")


def change_priority(member: Member, run: Run, priority: int) -> None:
    """Give a queued run another priority. One that has started no longer waits for anybody."""
    require(member, Role.LAUNCHER)
    check_priority(member, priority)
    with transaction.atomic():
        locked = Run.objects.select_for_update(of=("self",)).get(pk=run.pk)
        if locked.state != Run.State.QUEUED:
            raise Conflict(f"Run #{locked.number} does not wait any more.", field="priority")
        if locked.priority != priority:
            before = {"priority": name_of(locked.priority)}
            locked.priority = priority
            locked.save(update_fields=["priority"])
            after = {"priority": name_of(priority)}
            audit.record(member, "run.priority", f"run #{locked.number}", before=before, after=after)
            announce(locked)
    run.refresh_from_db(fields=["priority"])
