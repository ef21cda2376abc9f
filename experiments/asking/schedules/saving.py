"""Making, changing, pausing and resuming schedules. A schedule acts for whoever saved or resumed it last."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db import IntegrityError, transaction

from experiments.asking.schedules.clock import crontab_of, expression_of, next_time
from experiments.models import Experiment, Member, Role, Run, Schedule
from experiments.registry.database_clock import database_now
from experiments.registry.errors import Conflict, Forbidden, NotFound, RequestError
from experiments.registry.notes.labels import check_labels
from experiments.registry.runs.holding import hold
from experiments.registry.teams import audit
from experiments.registry.teams.access import require, require_launch_on
from experiments.running.queue.priorities import check_priority, name_of

MOST_SCHEDULES = 200


@dataclass(frozen=True)
class Plan:
    """What is launched when: one of `experiment` and `run`; `cron` has five fields, by the clock of `time_zone`."""

    name: str
    cron: str
    time_zone: str = "UTC"
    experiment: Experiment | None = None
    run: Run | None = None
    newest_versions: bool = True
    skips_unchanged: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    priority: int = Run.Priority.NORMAL


def create_schedule(member: Member, plan: Plan) -> Schedule:
    """Store a schedule; its first time is the next one of the clock. RequestError names the field that does not fit."""
    if Schedule.objects.for_team(member.team).count() >= MOST_SCHEDULES:
        raise Conflict(f"A team has at most {MOST_SCHEDULES} schedules; delete one first.")
    schedule = Schedule(team=member.team)
    with transaction.atomic():
        _fill(schedule, member, plan)
        _save(schedule)
        audit.record(member, "schedule.create", f"schedule {schedule.name}", after=_described(schedule))
    return schedule


def locked_schedule(schedule: Schedule) -> Schedule:
    """The schedule as it is now; nobody else changes it until the end of the transaction. NotFound when it is gone."""
    rows = Schedule.objects.select_for_update(of=("self",)).select_related("crontab")
    found: Schedule | None = rows.filter(pk=schedule.pk).first()
    if found is None:
        raise NotFound(f"There is no schedule {schedule.pk} any more.")
    return found


def change_schedule(member: Member, schedule: Schedule, plan: Plan) -> None:
    """Replace what it launches and when; it acts for this member from now on, and stays paused if it was."""
    with transaction.atomic():
        locked = locked_schedule(schedule)
        before = _described(locked)
        _fill(locked, member, plan)
        _save(locked)
        audit.record(member, "schedule.change", f"schedule {locked.name}", before=before, after=_described(locked))
        schedule.refresh_from_db()


def pause_schedule(member: Member, schedule: Schedule) -> None:
    """Launch nothing until somebody resumes it."""
    require(member, Role.LAUNCHER)
    with transaction.atomic():
        locked = locked_schedule(schedule)
        if locked.state == Schedule.State.PAUSED:
            raise Conflict("This schedule is paused already.")
        pause(locked, f"Paused by {member.user.get_username()}.")
        audit.record(member, "schedule.pause", f"schedule {locked.name}")
        schedule.refresh_from_db()


def resume_schedule(member: Member, schedule: Schedule) -> None:
    """Go on at the next time of the clock, on behalf of this member; what was missed meanwhile is not made up for."""
    require(member, Role.LAUNCHER)
    with transaction.atomic():
        locked = locked_schedule(schedule)
        if locked.state == Schedule.State.ACTIVE:
            raise Conflict("This schedule is not paused.")
        _may_launch(member, locked.experiment, locked.run)
        check_priority(member, locked.priority)
        before = {"runs_as": _name(locked), "reason": locked.state_reason}
        locked.state, locked.state_reason, locked.runs_as_id = Schedule.State.ACTIVE, "", member.user_id
        locked.due_at = next_time(locked.crontab, database_now())
        locked.save()
        audit.record(member, "schedule.resume", f"schedule {locked.name}", before, {"runs_as": _name(locked)})
        schedule.refresh_from_db()


def delete_schedule(member: Member, schedule: Schedule) -> None:
    """Delete it with its list of occasions; what it launched stays. Its own member may, and an editor."""
    require(member, Role.LAUNCHER)
    with transaction.atomic():
        locked = locked_schedule(schedule)
        if locked.runs_as_id != member.user_id and not Role(member.role).covers(Role.EDITOR):
            raise Forbidden("Only an editor may delete the schedule of someone else; you may pause it.")
        audit.record(member, "schedule.delete", f"schedule {locked.name}", before=_described(locked))
        locked.delete()


def pause(schedule: Schedule, reason: str) -> None:
    """Stop launching, for this reason. Call with its row locked."""
    schedule.state, schedule.state_reason, schedule.due_at = Schedule.State.PAUSED, reason, None
    schedule.save(update_fields=["state", "state_reason", "due_at"])


def _fill(schedule: Schedule, member: Member, plan: Plan) -> None:
    if not plan.name.strip() or not plan.name.isprintable():
        raise RequestError("Give the schedule a name of printable characters.", field="name")
    if (plan.experiment is None) == (plan.run is None):
        raise RequestError("A schedule launches an experiment or a run: give one of the two.", field="experiment")
    _may_launch(member, plan.experiment, plan.run)
    check_priority(member, plan.priority)
    schedule.name, schedule.experiment, schedule.run = plan.name.strip(), plan.experiment, plan.run
    schedule.crontab = crontab_of(plan.cron, plan.time_zone)
    schedule.newest_versions, schedule.skips_unchanged = plan.newest_versions, plan.skips_unchanged
    schedule.labels, schedule.priority = check_labels(plan.labels), plan.priority
    schedule.runs_as_id = member.user_id
    if schedule.state == Schedule.State.ACTIVE:
        schedule.due_at = next_time(schedule.crontab, database_now())


def _save(schedule: Schedule) -> None:
    try:
        with transaction.atomic():
            schedule.save()
    except IntegrityError as error:
        raise Conflict("Another schedule of the team has this name.", field="name") from error


def _may_launch(member: Member, experiment: Experiment | None, run: Run | None) -> None:
    """Forbidden when the member could not launch this by hand; RequestError when nobody could."""
    require(member, Role.LAUNCHER)
    target = experiment or run
    if target is not None and not hold(target):
        raise RequestError("What it launches is in the trash.", field="experiment" if experiment else "run")
    if experiment is not None:
        for variant in experiment.variants.select_related("sut", "drivers").prefetch_related("drivers__hosts"):
            require_launch_on(member, variant.sut, *variant.drivers.everyone)
    if run is not None:
        if not (run.spec and run.application and run.recipe and run.workload and run.sut and run.drivers):
            raise RequestError("An imported run has nothing to execute again.", field="run")
        require_launch_on(member, run.sut, *run.drivers.everyone)


def _described(schedule: Schedule) -> dict[str, Any]:
    return {
        "launches": f"experiment {schedule.experiment_id}" if schedule.experiment_id else f"run {schedule.run}",
        "cron": expression_of(schedule.crontab),
        "time_zone": str(schedule.crontab.timezone),
        "newest_versions": schedule.newest_versions,
        "skips_unchanged": schedule.skips_unchanged,
        "labels": schedule.labels,
        "priority": name_of(schedule.priority),
        "runs_as": _name(schedule),
    }


def _name(schedule: Schedule) -> str | None:
    return schedule.runs_as.get_username() if schedule.runs_as else None
