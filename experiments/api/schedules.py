"""Schedules: experiments and runs that are launched again by the clock."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction
from django.http import HttpRequest
from ninja import Router
from ninja.responses import Status
from pydantic import BaseModel, Field

from experiments.api.choices import OccasionOutcome, PriorityName, ScheduleState
from experiments.api.finding import find_experiment, find_run
from experiments.api.plumbing.auth import LAUNCH, READ, member_of
from experiments.api.plumbing.idempotency import idempotent
from experiments.api.plumbing.paging import paged
from experiments.api.shapes import Body, Flag, Labels, Priority, Whole, experiment_url, run_url, schedule_url
from experiments.asking.schedules import saving
from experiments.asking.schedules.clock import MOST_CHARS, expression_of, in_words
from experiments.asking.schedules.reading import find_schedule, occasions_of, result_of, times_of, with_names
from experiments.models import Experiment, Member, Occasion, Role, Run, Schedule
from experiments.registry.errors import NotFound, RequestError
from experiments.registry.teams.access import require
from experiments.running.queue.priorities import PRIORITIES, name_of

router = Router(auth=READ, tags=["schedules"])


class OccasionOut(BaseModel):
    due_at: datetime
    at: datetime
    outcome: OccasionOutcome
    sentence: str
    url: str = Field(description="What was launched; empty when nothing was")
    result: str = Field(description="State of the experiment, or outcome of the run; empty when nothing was launched")
    gate: str = Field(description="Of an experiment that is over: pass, fail, inconclusive or error")

    @classmethod
    def of(cls, occasion: Occasion, team: str) -> OccasionOut:
        url = ""
        if occasion.experiment is not None:
            url = experiment_url(team, occasion.experiment.pk)
        elif occasion.run is not None:
            url = run_url(team, occasion.run.number)
        result = result_of(occasion)
        return cls(
            due_at=occasion.due_at,
            at=occasion.at,
            outcome=occasion.outcome,
            sentence=occasion.sentence,
            url=url,
            result=result.value if result else "",
            gate=result.gate if result else "",
        )


class ScheduleRow(BaseModel):
    id: int
    url: str
    name: str
    experiment: int | None
    run: int | None = Field(description="Its number")
    cron: str
    time_zone: str
    in_words: str
    newest_versions: bool
    skips_unchanged: bool
    labels: dict[str, str]
    priority: PriorityName
    state: ScheduleState
    state_reason: str
    runs_as: str | None
    next_times: list[datetime]
    last: OccasionOut | None

    @classmethod
    def of(cls, schedule: Schedule) -> ScheduleRow:
        team = schedule.team.slug
        newest: list[Occasion] = schedule.newest  # type: ignore[attr-defined]  # prefetched by with_names
        return cls(
            id=schedule.pk,
            url=schedule_url(team, schedule.pk),
            name=schedule.name,
            experiment=schedule.experiment_id,
            run=schedule.run.number if schedule.run else None,
            cron=expression_of(schedule.crontab),
            time_zone=str(schedule.crontab.timezone),
            in_words=in_words(schedule.crontab),
            newest_versions=schedule.newest_versions,
            skips_unchanged=schedule.skips_unchanged,
            labels=schedule.labels,
            priority=name_of(schedule.priority),
            state=schedule.state,
            state_reason=schedule.state_reason,
            runs_as=schedule.runs_as.get_username() if schedule.runs_as else None,
            next_times=times_of(schedule),
            last=OccasionOut.of(newest[0], team) if newest else None,
        )


class ScheduleOut(ScheduleRow):
    occasions: list[OccasionOut] = Field(description="The newest 50")


class ScheduleIn(Body):
    name: str = Field(min_length=1, max_length=120)
    experiment: Whole | None = Field(None, description="The id of the experiment to launch copies of; or `run`")
    run: Whole | None = Field(None, description="The number of the run to launch again")
    cron: str = Field(
        max_length=MOST_CHARS,
        examples=["30 2 * * 1-5"],
        description="Minute, hour, day of the month, month, day of the week (0 is Sunday)",
    )
    time_zone: str = Field("UTC", max_length=60, examples=["Europe/Berlin"])
    newest_versions: Flag = Field(True, description="Take the newest versions of application, recipe and workload")
    skips_unchanged: Flag = Field(False, description="Launch nothing when nothing changed since the last launch")
    labels: Labels = {}
    priority: Priority = "normal"


class ScheduleChange(Body):
    """What is left out stays. CI may send `labels` (such as the commit) before each night."""

    name: str | None = Field(None, min_length=1, max_length=120)
    experiment: Whole | None = None
    run: Whole | None = None
    cron: str | None = Field(None, max_length=MOST_CHARS)
    time_zone: str | None = Field(None, max_length=60)
    newest_versions: Flag | None = None
    skips_unchanged: Flag | None = None
    labels: Labels | None = None
    priority: Priority | None = None


class Deleted(BaseModel):
    deleted: str


@router.get("", response=list[ScheduleRow])
@paged
def list_schedules(request: HttpRequest) -> list[ScheduleRow]:
    """The team's schedules by name."""
    found = with_names(Schedule.objects.for_team(member_of(request).team)).order_by("name")
    return [ScheduleRow.of(schedule) for schedule in found]


@router.post("", response={201: ScheduleOut}, auth=LAUNCH)
@idempotent
def create_schedule(request: HttpRequest, payload: ScheduleIn) -> Status[ScheduleOut]:
    """Launch an experiment or a run again by the clock. It acts for you until somebody else saves or resumes it."""
    member = member_of(request)
    require(member, Role.LAUNCHER)
    experiment, run = _target(member, payload.experiment, payload.run)
    given = payload.model_dump(exclude={"experiment", "run", "priority"})
    plan = saving.Plan(**given, experiment=experiment, run=run, priority=PRIORITIES[payload.priority])
    return Status(201, _detail(member, saving.create_schedule(member, plan).pk))


@router.get("/{int:schedule_id}", response=ScheduleOut)
def get_schedule(request: HttpRequest, schedule_id: int) -> ScheduleOut:
    """One schedule with its last occasions."""
    return _detail(member_of(request), schedule_id)


@router.patch("/{int:schedule_id}", response=ScheduleOut, auth=LAUNCH)
def change_schedule(request: HttpRequest, schedule_id: int, payload: ScheduleChange) -> ScheduleOut:
    """Other values; it acts for you from now on."""
    member = member_of(request)
    given = payload.model_dump(exclude_none=True)
    with transaction.atomic():  # what is left out stays as it is now, not as it was when it was read
        schedule = saving.locked_schedule(find_schedule(member.team, schedule_id))
        experiment, run = schedule.experiment, schedule.run
        if "experiment" in given or "run" in given:
            experiment, run = _target(member, given.pop("experiment", None), given.pop("run", None))
        before = {name: getattr(schedule, name) for name in ("name", "newest_versions", "skips_unchanged", "labels")}
        before |= {"cron": expression_of(schedule.crontab), "time_zone": str(schedule.crontab.timezone)}
        priority = PRIORITIES[given.pop("priority")] if "priority" in given else schedule.priority
        plan = saving.Plan(**before | given, experiment=experiment, run=run, priority=priority)
        saving.change_schedule(member, schedule, plan)
    return _detail(member, schedule_id)


@router.post("/{int:schedule_id}/pause", response=ScheduleOut, auth=LAUNCH)
@idempotent
def pause_schedule(request: HttpRequest, schedule_id: int) -> Status[ScheduleOut]:
    """Launch nothing until it is resumed."""
    member = member_of(request)
    saving.pause_schedule(member, find_schedule(member.team, schedule_id))
    return Status(200, _detail(member, schedule_id))


@router.post("/{int:schedule_id}/resume", response=ScheduleOut, auth=LAUNCH)
@idempotent
def resume_schedule(request: HttpRequest, schedule_id: int) -> Status[ScheduleOut]:
    """Go on at the next time; it acts for you from now on."""
    member = member_of(request)
    saving.resume_schedule(member, find_schedule(member.team, schedule_id))
    return Status(200, _detail(member, schedule_id))


@router.delete("/{int:schedule_id}", response=Deleted, auth=LAUNCH)
def delete_schedule(request: HttpRequest, schedule_id: int) -> Deleted:
    """End a schedule; what it launched stays."""
    member = member_of(request)
    schedule = find_schedule(member.team, schedule_id)
    saving.delete_schedule(member, schedule)
    return Deleted(deleted=schedule.name)


def _target(member: Member, experiment_id: int | None, number: int | None) -> tuple[Experiment | None, Run | None]:
    try:
        experiment = None if experiment_id is None else find_experiment(member, experiment_id)
    except NotFound as error:
        raise RequestError(error.message, field="experiment") from error
    try:
        run = None if number is None else find_run(member, number)
    except NotFound as error:
        raise RequestError(error.message, field="run") from error
    return experiment, run


def _detail(member: Member, schedule_id: int) -> ScheduleOut:
    schedule = find_schedule(member.team, schedule_id)
    occasions = [OccasionOut.of(occasion, member.team.slug) for occasion in occasions_of(schedule)]
    return ScheduleOut(**ScheduleRow.of(schedule).model_dump(), occasions=occasions)
