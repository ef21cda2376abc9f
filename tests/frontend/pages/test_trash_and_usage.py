"""Deleting in the browser, the trash, and what a team uses."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from django.test import Client
from django.urls import reverse
from django.utils import timezone

from experiments.models import Member, PinnedBaseline, Role, Run, Team
from tests.experiments.conftest import MakeMember
from tests.experiments.keeping.test_retention import experiment_of
from tests.frontend.conftest import MakeRun
from tests.frontend.flat import flat


def page(name: str, *args: object) -> str:
    return reverse(name, args=["perf", *args])


def test_a_run_is_deleted_and_restored(browser: Client, make_run: MakeRun) -> None:
    number = make_run(throughput_rps=10.0).number
    assert page("delete_run", number).encode() in browser.get(page("run", number)).content
    answer = browser.post(page("delete_run", number), follow=True)
    assert f"Run #{number} is in the trash" in answer.content.decode()
    assert browser.get(page("run", number)).status_code == 404
    answer = browser.post(page("restore_trashed"), {"kind": "run", "key": number}, follow=True)
    assert b"The trash is empty." in answer.content
    assert browser.get(page("run", number)).status_code == 200
    assert browser.post(page("restore_trashed"), {"kind": "run", "key": number}).status_code == 404


def test_ticked_runs_are_deleted_together(browser: Client, make_run: MakeRun) -> None:
    numbers = [make_run(throughput_rps=10.0).number for _ in range(3)]
    assert b'value="delete"' in browser.get(page("runs")).content
    answer = browser.post(page("bulk_runs"), {"action": "delete", "runs": numbers[:2]}, follow=True)
    assert b"2 runs moved to the trash" in answer.content
    assert Run.objects.filter(trashed_at=None).get().number == numbers[2]


def test_an_experiment_is_deleted_and_restored(browser: Client, admin: Member, make_run: MakeRun) -> None:
    experiment = experiment_of(admin, [make_run(throughput_rps=10.0), make_run(throughput_rps=11.0)])
    assert page("delete_experiment", experiment.pk).encode() in browser.get(page("experiment", experiment.pk)).content
    assert b"A question" in browser.post(page("delete_experiment", experiment.pk), follow=True).content
    assert browser.get(page("experiment", experiment.pk)).status_code == 404
    browser.post(page("restore_trashed"), {"kind": "experiment", "key": experiment.pk})
    assert browser.get(page("experiment", experiment.pk)).status_code == 200


def test_what_cannot_be_deleted_is_said_on_its_page(browser: Client, admin: Member, make_run: MakeRun) -> None:
    run = make_run(throughput_rps=10.0)
    PinnedBaseline.objects.create(team=admin.team, name="release", run=run)
    answer = browser.post(page("delete_run", run.number), follow=True)
    assert b"it is a pinned baseline" in answer.content
    assert answer.redirect_chain[-1][0] == page("run", run.number)


def test_a_launcher_sees_the_trash_and_deletes_nothing(
    admin: Member, make_member: MakeMember, browser_of: Callable[[Member], Client], make_run: MakeRun
) -> None:
    launcher, number = browser_of(make_member(admin.team, Role.LAUNCHER)), make_run(throughput_rps=10.0).number
    assert launcher.get(page("trash")).status_code == 200
    assert page("delete_run", number).encode() not in launcher.get(page("run", number)).content
    for address in (page("delete_run", number), page("restore_trashed")):
        assert launcher.post(address, {"kind": "run", "key": number}).status_code == 403


def test_retention_is_counted_before_it_is_switched_on(browser: Client, make_run: MakeRun) -> None:
    run = make_run(throughput_rps=10.0, finished_at=timezone.now() - timedelta(days=100))
    shown = browser.get(page("usage"), {"days": 90}).content.decode()
    assert "<strong>1 run</strong> would go to the trash now" in flat(shown)
    assert Team.objects.get(slug="perf").retention_days is None
    answer = browser.post(page("retention"), {"days": 90}, follow=True)
    assert "Runs are kept for <strong>90 days</strong>" in flat(answer.content.decode())
    assert Run.objects.get(pk=run.pk).trashed_at is None  # the hourly task takes it
    browser.post(page("retention"), {"off": "1"})
    assert Team.objects.get(slug="perf").retention_days is None
    assert browser.get(page("usage"), {"days": 1}).status_code == 422
    assert browser.post(page("retention"), {"days": "x"}).status_code == 422


def test_only_staff_see_the_form_of_the_quotas_and_change_them(browser: Client, admin: Member) -> None:
    values = {"quota_artifact_bytes": 5, "quota_runs_per_day": 10, "quota_queued_runs": 10, "quota_hosts": 3}
    values |= {"quota_live_runs": 7}
    assert b"Change quotas" not in browser.get(page("usage")).content
    assert browser.post(page("quotas"), values).status_code == 403
    assert browser.post(page("quotas"), {}).status_code == 403
    admin.user.is_staff = True
    admin.user.save()
    assert b"Change quotas" in browser.get(page("usage")).content
    assert browser.post(page("quotas"), values).status_code == 302
    team = Team.objects.get(slug="perf")
    assert (team.quota_artifact_bytes, team.quota_hosts, team.quota_live_runs) == (5 << 30, 3, 7)
    assert browser.post(page("quotas"), values | {"quota_hosts": -1}).status_code == 422
