"""Launching what is due: once for each time, whatever becomes of the clock, the broker and the worker.

The occasion, the experiment with its runs and the next due time are one transaction under the lock of the schedule's
row. A tick that is lost is made up for by the next one, and of two ticks at once one finds nothing to do.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models.functions import Now

from experiments.asking.launching.choices import Choice
from experiments.asking.launching.copies import copy_experiment, newest_version
from experiments.asking.launching.launch import launch_experiment, launch_run
from experiments.asking.schedules.clock import next_time
from experiments.asking.schedules.contents import changes, contents_of_choice, contents_of_experiment
from experiments.asking.schedules.saving import pause
from experiments.models import Experiment, Member, Occasion, Run, Schedule
from experiments.models.experiments import OPEN
from experiments.registry.database_clock import database_now
from experiments.registry.documents.contents import content_of
from experiments.registry.documents.own_load import own_load
from experiments.registry.errors import DATABASE_AWAY, Forbidden, RequestError
from experiments.registry.events import OccasionMissed, tell
from experiments.registry.teams import audit
from experiments.registry.teams.access import acting_member

logger = logging.getLogger(__name__)

MOST_AT_ONCE = 100
LATE = timedelta(minutes=2)
Outcome = Occasion.Outcome


@dataclass(frozen=True)
class Launched:
    """What came of one occasion. `pauses`: nothing can be launched until a person has acted."""

    outcome: Occasion.Outcome
    sentence: str
    experiment: Experiment | None = None
    run: Run | None = None
    contents: Mapping[str, str] | None = None
    pauses: bool = False


def launch_due() -> None:
    """Launch every schedule whose time has come."""
    due = Schedule.objects.filter(state=Schedule.State.ACTIVE, due_at__lte=Now()).order_by("due_at")
    for schedule_id in due.values_list("pk", flat=True)[:MOST_AT_ONCE]:
        launch_if_due(schedule_id)


def launch_if_due(schedule_id: int) -> Occasion | None:
    """Launch this schedule for the time at which it is due; None when it is not, or somebody else is at it."""
    with transaction.atomic():
        schedule = (
            Schedule.objects.select_for_update(of=("self",), skip_locked=True)
            .select_related("team", "crontab", "runs_as")
            .filter(pk=schedule_id, state=Schedule.State.ACTIVE, due_at__lte=Now())
            .first()
        )
        if schedule is None:
            return None
        due_at, now = schedule.due_at, database_now()
        came = _attempt(schedule)
        occasion = Occasion.objects.create(
            schedule=schedule,
            due_at=due_at,
            outcome=came.outcome,
            sentence=" ".join(filter(None, (came.sentence, _lateness(due_at, now)))),
            experiment=came.experiment,
            run=came.run,
            contents=dict(came.contents or {}),
        )
        schedule.due_at = next_time(schedule.crontab, now)
        schedule.save(update_fields=["due_at"])
        if came.pauses:
            pause(schedule, came.sentence)
        if came.outcome != Outcome.LAUNCHED:
            tell(OccasionMissed(occasion))
    return occasion


def last_launch(schedule: Schedule) -> Occasion | None:
    """The last occasion on which something was launched."""
    launched: Occasion | None = (
        schedule.occasions.filter(outcome=Outcome.LAUNCHED).select_related("experiment", "run").order_by("-id").first()
    )
    return launched


def _attempt(schedule: Schedule) -> Launched:
    """Launch, or say why not. What was half done is rolled back."""
    member = acting_member(schedule.team_id, schedule.runs_as_id)
    if member is None:
        who = schedule.runs_as.get_username() if schedule.runs_as else "The member for whom it ran"
        return Launched(
            Outcome.FAILED,
            f"{who} is no longer a member of the team, so it is paused. Whoever resumes it takes it over.",
            pauses=True,
        )
    try:
        with transaction.atomic():
            return _launch(member, schedule)
    except Forbidden as error:
        return Launched(
            Outcome.FAILED,
            f"{member.user.get_username()}, for whom it runs, may not launch this any more: {error.message} "
            "It is paused; whoever resumes it takes it over.",
            pauses=True,
        )
    except RequestError as error:
        return Launched(Outcome.FAILED, f"It could not be launched: {error.message}")
    except DATABASE_AWAY:  # the next tick tries again
        raise
    except Exception:
        logger.exception("schedule %s could not be launched", schedule.pk)
        return Launched(Outcome.FAILED, "BenchHub failed to launch it; the worker's log says why.")


def _launch(member: Member, schedule: Schedule) -> Launched:
    target = schedule.experiment or schedule.run
    if target is None or target.trashed_at is not None:
        return Launched(Outcome.FAILED, "What it launches is in the trash, so it is paused.", pauses=True)
    last = last_launch(schedule)
    if last is not None and (open_one := _still_open(last)):
        return Launched(Outcome.OVERLAP, f"{open_one} of the last time is not finished yet.")
    labels = {**schedule.labels, "schedule": schedule.name[:200]}
    if schedule.experiment is not None:
        draft = copy_experiment(member, schedule.experiment, labels=labels, newest=schedule.newest_versions)
        contents = contents_of_experiment(draft)
        if (same := _unchanged(schedule, last, contents)) is not None:
            transaction.set_rollback(True)  # the draft was only made to be looked at
            return same
        launch_experiment(member, draft, priority=schedule.priority)
        came = Launched(Outcome.LAUNCHED, _news(last, contents), experiment=draft, contents=contents)
    else:
        choice = _choice(schedule)
        labels = {**(schedule.run.labels if schedule.run else {}), **labels}
        contents = contents_of_choice(choice, labels)
        if (same := _unchanged(schedule, last, contents)) is not None:
            return same
        run = launch_run(member, choice, labels=labels, priority=schedule.priority)
        came = Launched(Outcome.LAUNCHED, _news(last, contents), run=run, contents=contents)
    audit.record(member, "schedule.launch", f"schedule {schedule.name}", after={"launched": _name(came)})
    return came


def _choice(schedule: Schedule) -> Choice:
    run = schedule.run
    if run is None or run.spec is None or not (run.application and run.recipe and run.workload):
        raise RequestError("The run that it repeats has nothing to execute.")
    if run.sut is None or run.drivers is None:
        raise RequestError("The run that it repeats has lost its hosts.")
    application, recipe, workload = run.application, run.recipe, run.workload
    if schedule.newest_versions:
        application, recipe, workload = newest_version(application), newest_version(recipe), newest_version(workload)
    parameters = run.spec["recipe"]["parameters"]
    if schedule.newest_versions:  # what was only a default is the new version's business
        declared, known = content_of(run.recipe).parameters, content_of(recipe).parameters
        parameters = {
            name: value
            for name, value in parameters.items()
            if name in known and not (name in declared and declared[name].default == value)
        }
    hosts, load = (run.sut, run.drivers.in_order), own_load(run.spec)
    return Choice(application, recipe, workload, *hosts, parameters, *load, run.drivers.members)


def _still_open(last: Occasion) -> str:
    """What the last occasion launched and is not finished; empty when all is."""
    if last.experiment is not None and last.experiment.state in OPEN:
        return f"Experiment {last.experiment.name}"
    if last.run is not None and last.run.state != Run.State.FINISHED:
        return f"Run #{last.run.number}"
    return ""


def _unchanged(schedule: Schedule, last: Occasion | None, contents: Mapping[str, str]) -> Launched | None:
    if not schedule.skips_unchanged or last is None or changes(last.contents, contents):
        return None
    return Launched(
        Outcome.UNCHANGED,
        f"Nothing changed since the launch of {last.at:%Y-%m-%d %H:%M} UTC: the same document versions, parameters, "
        "labels, hosts and hardware profiles.",
    )


def _news(last: Occasion | None, contents: Mapping[str, str]) -> str:
    if last is None:
        return "The first launch."
    changed = changes(last.contents, contents)
    return f"Changed since the last launch: {'; '.join(changed)}." if changed else "Nothing changed since the last one."


def _lateness(due_at: datetime, now: datetime) -> str:
    if now - due_at < LATE:
        return ""
    return f"It was due at {due_at:%Y-%m-%d %H:%M} UTC, when BenchHub did not get to it."


def _name(came: Launched) -> str:
    return f"experiment {came.experiment.pk}" if came.experiment else f"run #{came.run.number if came.run else 0}"
