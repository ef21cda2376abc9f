"""Schedules: times by the clock of a zone, one launch per time, skips with their reason, and for whom they act."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.db import connection, transaction
from django.utils import timezone
from django_celery_beat.models import CrontabSchedule

from experiments.asking.launching.choices import Candidate, Choice
from experiments.asking.launching.creating import create_experiment
from experiments.asking.launching.launch import launch_run
from experiments.asking.schedules.clock import FIELDS, crontab_of, expression_of, in_words, next_times
from experiments.asking.schedules.launching import launch_due, launch_if_due
from experiments.asking.schedules.saving import (
    Plan,
    change_schedule,
    create_schedule,
    delete_schedule,
    pause_schedule,
    resume_schedule,
)
from experiments.models import AuditEntry, Experiment, Member, Occasion, Recipe, Role, Run, Schedule
from experiments.registry.documents.versions import save_version
from experiments.registry.errors import Conflict, Forbidden, RequestError
from tests.experiments.conftest import RECIPE, MakeMember
from tests.experiments.finished import finish_next


def cron(expression: str, zone: str) -> CrontabSchedule:
    return CrontabSchedule(**dict(zip(FIELDS, expression.split(), strict=True)), timezone=ZoneInfo(zone))


@pytest.mark.parametrize(
    ("expression", "zone", "after", "local"),
    [
        ("30 2 * * *", "Europe/Berlin", "2026-03-27T12:00", ["03-28 02:30", "03-29 03:30", "03-30 02:30"]),  # skipped
        ("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00", ["10-25 02:30", "10-26 02:30"]),  # twice, due once
        ("0 * * * *", "Europe/Berlin", "2026-03-28T23:30", ["03-29 01:00", "03-29 03:00", "03-29 04:00"]),
        ("0 9 * * 1-5", "America/New_York", "2026-03-06T20:00", ["03-09 09:00", "03-10 09:00"]),  # over a weekend
        ("0 0 * * 0", "UTC", "2026-03-06T00:00", ["03-08 00:00", "03-15 00:00"]),
        ("15 10 29 2 *", "UTC", "2026-01-01T00:00", ["02-29 10:15", "02-29 10:15"]),
        ("*/20 23 31 12 *", "Asia/Tokyo", "2026-12-31T14:10", ["12-31 23:20", "12-31 23:40", "12-31 23:00"]),
        ("30 23 * * *", "America/Asuncion", "2023-09-30T12:00", ["09-30 23:30", "10-01 23:30"]),
        ("30 0 * * *", "America/Asuncion", "2023-09-30T12:00", ["10-01 01:30", "10-02 00:30"]),  # midnight is skipped
    ],
)
def test_times_follow_the_clock_of_the_zone(expression: str, zone: str, after: str, local: list[str]) -> None:
    began = datetime.fromisoformat(after).replace(tzinfo=UTC)
    found = next_times(cron(expression, zone), began, len(local))
    assert [at.astimezone(ZoneInfo(zone)).strftime("%m-%d %H:%M") for at in found] == local
    assert all(earlier < later for earlier, later in zip([began, *found], found, strict=False))


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("expression", "zone", "field"),
    [
        ("30 2 * *", "UTC", "cron"),
        ("61 2 * * *", "UTC", "cron"),
        ("x 2 * * *", "UTC", "cron"),
        ("0 0 31 2 *", "UTC", "cron"),
        ("0 0 * * *" + " " * 200, "UTC", "cron"),
        ("0 0 * * *", "Mars/Olympus", "time_zone"),
        ("0 0 * * *", "../etc/passwd", "time_zone"),
    ],
)
def test_what_is_no_time_is_refused_at_its_field(expression: str, zone: str, field: str) -> None:
    with pytest.raises(RequestError) as refusal:
        crontab_of(expression, zone)
    assert refusal.value.field == field


@pytest.mark.django_db
def test_equal_times_are_one_crontab_that_is_said_in_words() -> None:
    stored = crontab_of("30 2 * * 1-5", "Europe/Berlin")
    assert crontab_of(" 30 2 * * 1-5", "Europe/Berlin").pk == stored.pk
    assert expression_of(stored) == "30 2 * * 1-5"
    assert in_words(stored) == "At 02:30, Monday through Friday, Europe/Berlin"


@pytest.fixture
def experiment(admin: Member, stock: dict[str, Any]) -> Experiment:
    parts = {name: stock[name] for name in ("application", "recipe", "sut")} | {"drivers": [stock["drivers"][0]]}
    return create_experiment(
        admin, name="Nightly", workload=stock["workload"], candidates=[Candidate("one", **parts)], repetitions=1
    )


def make(member: Member, experiment: Experiment | None, **more: Any) -> Schedule:
    given: dict[str, Any] = {"name": "every night", "cron": "30 2 * * *", "experiment": experiment, **more}
    return create_schedule(member, Plan(**given))


def make_due(schedule: Schedule, *, ago: timedelta = timedelta(seconds=5)) -> None:
    Schedule.objects.filter(pk=schedule.pk).update(due_at=timezone.now() - ago)


def tick(schedule: Schedule) -> Occasion:
    """One time of the clock."""
    make_due(schedule)
    launch_due()
    schedule.refresh_from_db()
    newest: Occasion = schedule.occasions.select_related("experiment", "run").get(
        pk=schedule.occasions.order_by("-pk").values_list("pk", flat=True)[0]
    )
    return newest


def test_a_due_schedule_launches_a_copy_and_moves_on(admin: Member, experiment: Experiment) -> None:
    schedule = make(admin, experiment, labels={"branch": "main"})
    launch_due()
    assert not Run.objects.exists()
    occasion = tick(schedule)
    assert (occasion.outcome, occasion.sentence) == ("launched", "The first launch.")
    assert occasion.experiment is not None
    assert occasion.experiment.pk != experiment.pk
    run = Run.objects.get()
    assert run.labels == {"branch": "main", "schedule": "every night"}
    assert run.experiment_id == occasion.experiment.pk
    assert run.created_by == admin.user
    assert schedule.due_at is not None
    assert schedule.due_at > timezone.now()
    launch_due()
    assert Run.objects.count() == 1


@pytest.mark.parametrize("behind", [timedelta(seconds=-60), timedelta(hours=1), timedelta(days=1)])
def test_a_worker_whose_clock_is_wrong_launches_a_due_schedule_once(
    admin: Member, experiment: Experiment, monkeypatch: pytest.MonkeyPatch, behind: timedelta
) -> None:
    schedule = make(admin, experiment, cron="0 * * * *")
    make_due(schedule)
    right = timezone.now
    monkeypatch.setattr(timezone, "now", lambda: right() - behind)

    launch_due()
    launch_due()

    assert Occasion.objects.count() == 1
    schedule.refresh_from_db()
    assert schedule.due_at is not None
    assert timedelta(0) < schedule.due_at - right() <= timedelta(hours=1)


def test_a_time_that_was_missed_is_made_up_for_once_and_says_so(admin: Member, experiment: Experiment) -> None:
    schedule = make(admin, experiment)
    make_due(schedule, ago=timedelta(days=3))
    launch_due()
    launch_due()
    occasion = Occasion.objects.get()
    assert "when BenchHub did not get to it" in occasion.sentence
    assert Experiment.objects.count() == 2


@pytest.mark.django_db(transaction=True)
def test_of_many_ticks_at_once_one_launches(admin: Member, experiment: Experiment) -> None:
    schedule = make(admin, experiment)
    make_due(schedule)
    start = threading.Barrier(4)

    def beat() -> None:
        try:
            start.wait()
            launch_if_due(schedule.pk)
        finally:
            connection.close()

    ticks = [threading.Thread(target=beat) for _ in range(4)]
    for one in ticks:
        one.start()
    for one in ticks:
        one.join()
    assert (Occasion.objects.count(), Run.objects.count()) == (1, 1)


@pytest.mark.django_db(transaction=True)
def test_a_launch_that_dies_before_its_commit_is_launched_by_the_next_tick(
    admin: Member, experiment: Experiment
) -> None:
    schedule = make(admin, experiment)
    make_due(schedule)

    def die() -> None:
        with transaction.atomic():
            launch_if_due(schedule.pk)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        die()
    assert (Occasion.objects.count(), Run.objects.count()) == (0, 0)
    launch_due()
    assert (Occasion.objects.count(), Run.objects.count()) == (1, 1)


def test_while_the_last_one_is_open_nothing_is_launched(admin: Member, experiment: Experiment) -> None:
    schedule = make(admin, experiment)
    tick(schedule)
    skipped = tick(schedule)
    assert skipped.outcome == "overlap"
    assert skipped.sentence == "Experiment Nightly of the last time is not finished yet."
    finish_next()
    assert tick(schedule).outcome == "launched"


def test_nothing_changed_is_skipped_when_asked_and_a_change_is_named(
    admin: Member, experiment: Experiment, stock: dict[str, Any]
) -> None:
    schedule = make(admin, experiment, skips_unchanged=True)
    tick(schedule)
    finish_next()
    before = (Experiment.objects.count(), Run.objects.count(), AuditEntry.objects.count())
    skipped = tick(schedule)
    assert skipped.outcome == "unchanged"
    assert skipped.sentence.startswith("Nothing changed since the launch of ")
    assert (Experiment.objects.count(), Run.objects.count(), AuditEntry.objects.count()) == before
    save_version(admin, Recipe, "limits", {**RECIPE, "description": "newer"})
    launched = tick(schedule)
    assert launched.outcome == "launched"
    assert launched.sentence == "Changed since the last launch: recipe of one limits v1 → limits v2."
    finish_next()
    plan = Plan("every night", "30 2 * * *", experiment=experiment, skips_unchanged=True, labels={"commit": "4f2c"})
    change_schedule(admin, schedule, plan)
    assert tick(schedule).sentence == "Changed since the last launch: label commit none → 4f2c."


def test_with_pinned_versions_a_newer_one_is_left_alone(admin: Member, experiment: Experiment) -> None:
    schedule = make(admin, experiment, newest_versions=False)
    save_version(admin, Recipe, "limits", {**RECIPE, "description": "newer"})
    tick(schedule)
    recipe = Run.objects.get().recipe
    assert recipe is not None
    assert recipe.version == 1


def test_a_run_is_launched_again_with_the_defaults_of_the_newest_recipe(admin: Member, stock: dict[str, Any]) -> None:
    parts = {name: stock[name] for name in ("application", "recipe", "workload", "sut")}
    run = launch_run(admin, Choice(**parts, drivers=[stock["drivers"][0]]), labels={"commit": "1"})
    finish_next()
    other = {"nofile": {"type": "int", "default": 4096, "minimum": 1024}}
    save_version(admin, Recipe, "limits", {**RECIPE, "parameters": other})
    schedule = make(admin, None, run=run)
    occasion = tick(schedule)
    assert occasion.run is not None
    assert occasion.run.spec is not None
    assert occasion.run.spec["recipe"]["parameters"] == {"nofile": 4096}
    assert occasion.run.labels == {"commit": "1", "schedule": "every night"}
    assert tick(schedule).sentence == f"Run #{occasion.run.number} of the last time is not finished yet."


def test_without_its_member_it_pauses_and_whoever_resumes_it_takes_it_over(
    admin: Member, experiment: Experiment, make_member: MakeMember
) -> None:
    eve = make_member(admin.team, Role.ADMIN, "eve")
    schedule = make(eve, experiment)
    eve.delete()
    occasion = tick(schedule)
    assert occasion.outcome == "failed"
    assert schedule.state == "paused"
    assert schedule.due_at is None
    assert schedule.state_reason.startswith("eve is no longer a member of the team")
    assert not Run.objects.exists()
    launch_due()
    resume_schedule(admin, schedule)
    assert (schedule.state, schedule.state_reason, schedule.runs_as) == ("active", "", admin.user)
    assert tick(schedule).outcome == "launched"


def test_without_the_right_to_launch_it_pauses(admin: Member, experiment: Experiment, make_member: MakeMember) -> None:
    eve = make_member(admin.team, Role.ADMIN, "eve")
    schedule = make(eve, experiment)
    Member.objects.filter(pk=eve.pk).update(role=Role.VIEWER)
    assert "eve, for whom it runs, may not launch this any more" in tick(schedule).sentence
    assert schedule.state == "paused"


def test_what_cannot_be_launched_fails_and_is_tried_at_the_next_time(admin: Member, experiment: Experiment) -> None:
    schedule = make(admin, experiment)
    broken = {**RECIPE, "parameters": {"nofile": {"type": "int", "minimum": 1}}}  # no default any more
    save_version(admin, Recipe, "limits", broken)
    occasion = tick(schedule)
    assert occasion.outcome == "failed"
    assert occasion.sentence.startswith("It could not be launched: Variant one:")
    assert schedule.state == "active"
    assert (Experiment.objects.count(), Run.objects.count()) == (1, 0)


def test_pause_resume_change_and_delete_are_audited(admin: Member, experiment: Experiment) -> None:
    schedule = make(admin, experiment)
    pause_schedule(admin, schedule)
    assert (schedule.state_reason, schedule.due_at) == ("Paused by ada.", None)
    with pytest.raises(Conflict):
        pause_schedule(admin, schedule)
    change_schedule(admin, schedule, Plan("every night", "0 4 * * *", "Europe/Berlin", experiment))
    assert schedule.due_at is None
    resume_schedule(admin, schedule)
    delete_schedule(admin, schedule)
    found = AuditEntry.objects.filter(action__startswith="schedule.").order_by("pk")
    assert [entry.action.partition(".")[2] for entry in found] == ["create", "pause", "change", "resume", "delete"]
    change = found[2]
    assert change.before is not None
    assert change.after is not None
    assert (change.before["cron"], change.after["cron"]) == ("30 2 * * *", "0 4 * * *")


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"name": " "}, "name"),
        ({"name": "a\nb"}, "name"),
        ({"cron": "nightly"}, "cron"),
        ({"labels": {"-": "x"}}, "labels"),
        ({"experiment": None}, "experiment"),
        ({"priority": 7}, "priority"),
    ],
)
def test_what_makes_no_schedule_is_refused_at_its_field(
    admin: Member, experiment: Experiment, given: dict[str, Any], field: str
) -> None:
    with pytest.raises(RequestError) as refusal:
        make(admin, **{"experiment": experiment, **given})
    assert refusal.value.field == field
    make(admin, experiment)
    with pytest.raises(RequestError, match="Another schedule"):
        make(admin, experiment)


def test_roles(admin: Member, experiment: Experiment, make_member: MakeMember) -> None:
    schedule = make(admin, experiment)
    launcher = make_member(admin.team, Role.LAUNCHER, "lou")
    with pytest.raises(Forbidden):
        make(make_member(admin.team, Role.VIEWER), experiment, name="other")
    with pytest.raises(Forbidden):  # no grant on the hosts
        make(launcher, experiment, name="other")
    pause_schedule(launcher, schedule)
    with pytest.raises(Forbidden):
        resume_schedule(launcher, schedule)
    with pytest.raises(Forbidden):
        delete_schedule(launcher, schedule)
