"""The pages of schedules, webhooks and bisections."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from experiments.asking.launching.choices import Candidate
from experiments.asking.launching.creating import create_experiment
from experiments.asking.schedules.clock import expression_of
from experiments.asking.schedules.launching import launch_due
from experiments.asking.schedules.saving import Plan, create_schedule
from experiments.models import Bisection, Delivery, DeliveryAttempt, Experiment, Member, Role, Schedule, Webhook
from experiments.telling.notifying.webhooks import Wanted, create_webhook, secret_of
from tests.experiments.asking.test_bisections import COMMITS, plan, play, slow_from, start
from tests.experiments.conftest import MakeMember
from tests.experiments.finished import finish_next
from tests.frontend.conftest import MakeRun
from tests.frontend.flat import flat

__all__ = ["plan"]

SCHEDULES = "/t/perf/experiments/schedules/"
BISECTIONS = "/t/perf/experiments/bisections/"
WEBHOOKS = "/t/perf/settings/webhooks/"


@pytest.fixture
def experiment(admin: Member, stock: dict[str, Any]) -> Experiment:
    parts = {name: stock[name] for name in ("application", "recipe", "sut", "drivers")}
    candidates = [Candidate("one", **parts)]
    return create_experiment(admin, name="Nightly", workload=stock["workload"], candidates=candidates, repetitions=1)


def test_a_schedule_is_made_launches_and_shows_its_times(browser: Client, experiment: Experiment) -> None:
    form = browser.get(f"{SCHEDULES}new/?experiment={experiment.pk}").content.decode()
    assert f'<option value="{experiment.pk}" selected>' in form
    given = {"name": "every night", "experiment": experiment.pk, "cron": "30 2 * * 1-5", "time_zone": "Europe/Berlin"}
    answer = browser.post(f"{SCHEDULES}new/", {**given, "newest_versions": "on", "priority": "normal"})
    made = Schedule.objects.get()
    assert (answer.status_code, answer.headers["Location"]) == (302, f"{SCHEDULES}{made.pk}/")
    Schedule.objects.update(due_at=timezone.now())
    launch_due()
    finish_next()
    page = browser.get(f"{SCHEDULES}{made.pk}/").content.decode()
    assert "At 02:30, Monday through Friday, Europe/Berlin" in page
    assert page.count(" 02:30") >= 3
    assert "The first launch." in page
    assert "Finished" in page
    assert "every night" in browser.get(SCHEDULES).content.decode()
    assert (
        f"{SCHEDULES}new/?experiment="
        in browser.get(f"/t/perf/experiments/{made.occasions.get().experiment_id}/").content.decode()
    )


def test_a_schedule_is_paused_resumed_changed_and_deleted(
    browser: Client, admin: Member, experiment: Experiment, make_member: MakeMember, browser_of: Any
) -> None:
    made = create_schedule(admin, Plan("every night", "0 2 * * *", experiment=experiment))
    act = f"{SCHEDULES}{made.pk}/do"
    assert b"Paused by ada." in browser.post(act, {"do": "pause"}, follow=True).content
    assert b"Resumed." in browser.post(act, {"do": "resume"}, follow=True).content
    form = browser.get(f"{SCHEDULES}{made.pk}/edit/").content.decode()
    assert 'value="02:00"' in form
    given = {"name": "hourly", "experiment": experiment.pk, "cron": "0 * * * *", "time_zone": "UTC", "priority": "low"}
    wrong = browser.post(f"{SCHEDULES}{made.pk}/edit/", {**given, "cron": "often"})
    assert (wrong.status_code, b"Give five fields" in wrong.content) == (422, True)
    assert b"Every hour, UTC" in browser.post(f"{SCHEDULES}{made.pk}/edit/", given, follow=True).content
    viewer = browser_of(make_member(admin.team, Role.VIEWER))
    assert (viewer.get(SCHEDULES).status_code, viewer.post(act, {"do": "delete"}).status_code) == (200, 403)
    assert b"is deleted" in browser.post(act, {"do": "delete"}, follow=True).content


def test_the_list_of_schedules_needs_the_same_number_of_queries_for_any_number(
    browser: Client, admin: Member, experiment: Experiment, django_assert_num_queries: Any
) -> None:
    create_schedule(admin, Plan("0", "0 2 * * *", experiment=experiment))
    browser.get(SCHEDULES)
    with CaptureQueriesContext(connection) as one:
        browser.get(SCHEDULES)
    for number in range(1, 5):
        create_schedule(admin, Plan(str(number), "0 2 * * *", experiment=experiment))
    with django_assert_num_queries(len(one)):
        browser.get(SCHEDULES)


def test_a_webhook_shows_its_secret_once_and_its_deliveries(browser: Client, admin: Member) -> None:
    given = {"name": "chat", "url": "https://hooks.example.com/T1", "format": "slack", "events": ["run.finished"]}
    refused = browser.post(WEBHOOKS, {**given, "url": "http://hooks.example.com/"})
    assert (refused.status_code, b"begins with https://" in refused.content) == (422, True)
    shown = browser.post(WEBHOOKS, {**given, "is_active": "on"})
    made = Webhook.objects.get()
    assert secret_of(made) in shown.content.decode()
    here = f"{WEBHOOKS}{made.pk}/"
    browser.post(f"{here}do", {"do": "test"})
    delivery = Delivery.objects.get()
    DeliveryAttempt.objects.create(delivery=delivery, status=500, duration_ms=12.3, response="<script>no</script>")
    Delivery.objects.update(state="given_up", next_at=None)
    page = browser.get(here).content.decode()
    assert secret_of(made) not in page
    assert "500, 12.3 ms" in page
    assert "&lt;script&gt;no" in page
    browser.post(f"{here}deliveries/{delivery.pk}/redeliver")
    delivery.refresh_from_db()
    assert delivery.state == "waiting"
    rotated = browser.post(f"{here}do", {"do": "rotate"}).content.decode()
    made.refresh_from_db()
    assert secret_of(made) in rotated
    browser.post(here, {**given, "name": "other chat"})
    made.refresh_from_db()
    assert (made.name, made.is_active) == ("other chat", False)
    browser.post(f"{here}do", {"do": "delete"})
    assert not Webhook.objects.exists()


def test_a_member_chooses_mails_and_sees_no_webhook(admin: Member, make_member: MakeMember, browser_of: Any) -> None:
    create_webhook(admin, Wanted("secret chat", "https://hooks.example.com/T1", ["run.finished"]))
    viewer = make_member(admin.team, Role.VIEWER)
    browser = browser_of(viewer)
    page = browser.get(WEBHOOKS).content.decode()
    assert "secret chat" not in page
    assert browser.post(WEBHOOKS, {}).status_code == 403
    refused = browser.post(f"{WEBHOOKS}mails", {"mails_verdicts": "on"}, follow=True).content.decode()
    assert "Your account has no mail address" in refused
    viewer.user.email = "vera@example.com"
    viewer.user.save()
    browser.post(f"{WEBHOOKS}mails", {"mails_verdicts": "on"})
    viewer.refresh_from_db()
    assert (viewer.mails_verdicts, viewer.mails_failed_runs) == (True, False)


def bisection_form(plan: dict[str, Any], **more: Any) -> dict[str, Any]:
    parts = {name: plan[name].pk for name in ("application", "recipe", "workload", "sut")}
    drivers = [host.pk for host in plan["drivers"]]
    given = {"name": "Who?", "metric": "throughput_rps", "margin_pct": "3", "max_blocks": "8", "priority": "normal"}
    return {**parts, "drivers": drivers, **given, "parameter": "commit", "candidates": "c0\n c1 \n\nc2", **more}


def test_a_bisection_is_started_followed_and_made_again(browser: Client, plan: dict[str, Any]) -> None:
    assert browser.get(f"{BISECTIONS}new/").status_code == 200
    neither = browser.post(f"{BISECTIONS}new/", bisection_form(plan, parameter=""))
    assert (neither.status_code, b"Give a parameter and its values" in neither.content) == (422, True)
    twice = browser.post(f"{BISECTIONS}new/", bisection_form(plan, candidates="c0\nc0"))
    assert (twice.status_code, b"Two candidates are the same." in twice.content) == (422, True)
    answer = browser.post(f"{BISECTIONS}new/", bisection_form(plan))
    made = Bisection.objects.get()
    assert (answer.headers["Location"], made.candidates) == (f"{BISECTIONS}{made.pk}/", ["c0", "c1", "c2"])
    page = flat(browser.get(f"{BISECTIONS}{made.pk}/").content.decode())
    assert "First, c2 must be worse than c0 at all. At most 2 steps to go" in page
    assert 'hx-get="?part=answer"' in page
    play(made, slow_from("c2", COMMITS))
    page = browser.get(f"{BISECTIONS}{made.pk}/").content.decode()
    assert "c2 is the first bad one." in page
    assert "hx-get=" not in page.partition('id="answer"')[2].partition(">")[0]
    assert "c2" in browser.get(BISECTIONS).content.decode()
    assert "c0\nc1\nc2" in browser.get(f"{BISECTIONS}new/?from={made.pk}").content.decode()


def test_a_bisection_is_cancelled_from_its_page(browser: Client, admin: Member, plan: dict[str, Any]) -> None:
    made = start(admin, plan)
    browser.post(f"{BISECTIONS}{made.pk}/cancel")
    assert b"Cancelled by ada." in browser.get(f"{BISECTIONS}{made.pk}/").content
    assert b"over already" in browser.post(f"{BISECTIONS}{made.pk}/cancel", follow=True).content


@pytest.mark.parametrize(
    ("chosen", "cron"),
    [
        ({"every": "1-5", "at": "02:30"}, "30 2 * * 1-5"),
        ({"every": "*", "at": "23:05", "cron": "0 0 1 1 *"}, "5 23 * * *"),
        ({"every": "0", "at": "00:00"}, "0 0 * * 0"),
        ({"every": "cron", "at": "02:30", "cron": "0 */6 * * *"}, "0 */6 * * *"),
    ],
)
def test_a_schedule_is_said_in_days_and_a_time_or_as_cron(
    browser: Client, make_run: MakeRun, chosen: dict[str, str], cron: str
) -> None:
    run = make_run(throughput_rps=100.0)
    given = {"name": "nightly", "run": run.number, "time_zone": "Europe/Berlin", "priority": "low"}
    assert browser.post(f"{SCHEDULES}new/", given | chosen).status_code == 302
    made = Schedule.objects.select_related("crontab").get()
    assert expression_of(made.crontab) == cron
    shown = browser.get(f"{SCHEDULES}{made.pk}/edit/").context["form"]
    assert shown["every"].value() == chosen["every"]
    if chosen["every"] == "cron":
        assert shown["cron"].value() == cron
    else:
        assert f"{shown['at'].value():%H:%M}" == chosen["at"]


@pytest.mark.parametrize(
    ("chosen", "field"),
    [({"every": "*"}, "at"), ({"every": "*", "at": "25:00"}, "at"), ({"every": "cron"}, "cron"), ({}, "cron")],
)
def test_a_schedule_without_a_time_is_refused_at_its_field(
    browser: Client, make_run: MakeRun, chosen: dict[str, str], field: str
) -> None:
    given = {"name": "nightly", "run": make_run(throughput_rps=100.0).number, "time_zone": "UTC", "priority": "low"}
    answer = browser.post(f"{SCHEDULES}new/", given | chosen)
    assert (answer.status_code, list(answer.context["form"].errors)) == (422, [field])


def test_a_new_schedule_takes_the_browsers_clock_and_a_stored_one_its_own(browser: Client, make_run: MakeRun) -> None:
    assert "data-browser-zone" in browser.get(f"{SCHEDULES}new/").content.decode()
    given = {"name": "nightly", "run": make_run(throughput_rps=100.0).number, "every": "*", "at": "01:00"}
    browser.post(f"{SCHEDULES}new/", given | {"time_zone": "Asia/Tokyo", "priority": "low"})
    page = browser.get(f"{SCHEDULES}{Schedule.objects.get().pk}/edit/").content.decode()
    assert "data-browser-zone" not in page
