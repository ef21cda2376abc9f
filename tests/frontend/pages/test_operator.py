"""The operator's page: for staff, across teams, and for nobody else."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db.models.functions import Now
from django.test import Client
from django.urls import reverse

from experiments.keeping.operating.broker import Broker
from experiments.models import AuditEntry, Canary, Host, Member, Site, Worker
from experiments.registry.hosts.inventory import add_host
from tests.frontend.conftest import MakeRun

BrowserOf = Callable[[Member], Client]


@pytest.fixture
def staff(admin: Member) -> Member:
    admin.user.is_staff = True
    admin.user.save()
    return admin


def page(client: Client, member: Member) -> Any:
    return client.get(reverse("operator", args=[member.team.slug]))


def test_a_member_who_is_no_staff_gets_the_404_of_a_page_that_does_not_exist(
    admin: Member, browser_of: BrowserOf
) -> None:
    client = browser_of(admin)

    answer, nowhere = page(client, admin), client.get(f"/t/{admin.team.slug}/no-such-page/")

    assert (answer.status_code, answer.content) == (404, nowhere.content)
    assert reverse("operator", args=[admin.team.slug]) not in client.get(f"/t/{admin.team.slug}/").content.decode()


def test_staff_sees_workers_queues_runs_and_hosts_of_all_teams(
    staff: Member, other_admin: Member, browser_of: BrowserOf, make_run: MakeRun
) -> None:
    lease = Now() + timedelta(seconds=40)
    run = make_run(state="measuring", owner="berlin/box:7:1", lease_until=lease, events=())
    moments = {"started_at": Now() - timedelta(hours=2), "seen_at": Now()}
    Worker.objects.create(name="runs@box", process="berlin/box:7", queues=["runs"], slots=4, version="0.1.0", **moments)
    Canary.objects.create(queue="runs", sent_at=Now(), taken_at=Now(), delay_s=0.012)
    foreign = add_host(other_admin, name="theirs", address="127.0.0.1", port=22, user="bench", roles="both")
    Host.objects.filter(pk=foreign.pk).update(state="dirty", state_reason="somaxconn differs")

    answer = page(browser_of(staff), staff)

    text = answer.content.decode()
    assert answer.status_code == 200
    assert "berlin/box" not in text
    for piece in (
        "runs@box",
        ">box:7<",
        f"perf #{run.number}",
        "Messages are taken.",
        "theirs",
        "somaxconn differs",
        "12.0 ms",
    ):
        assert piece in text
    assert "no message through the queue default" in text
    assert reverse("operator", args=["perf"]) in text  # the user menu leads here


def test_a_broker_that_does_not_answer_is_said_and_the_page_still_comes(
    staff: Member, browser_of: BrowserOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent = Broker(answers=False, trouble="no answer in 2 s")
    monkeypatch.setattr("experiments.keeping.operating.operations.look_at_broker", lambda _queues: silent)

    answer = page(browser_of(staff), staff)

    assert answer.status_code == 200
    assert "The broker (Redis) does not answer: no answer in 2 s." in answer.content.decode()


def test_staff_sees_the_last_backup_where_some_are_written(
    staff: Member, browser_of: BrowserOf, settings: Any, tmp_path: Path
) -> None:
    assert "backup" not in page(browser_of(staff), staff).content.decode()
    settings.BENCHHUB_BACKUP_DIR = tmp_path
    assert "No backup has been written yet" in page(browser_of(staff), staff).content.decode()
    (tmp_path / "benchhub-2026-11-21.backup").write_bytes(b"x" * 2048)
    assert "Last backup: 2026-11-21 (UTC), 2.0 KiB" in page(browser_of(staff), staff).content.decode()


def test_staff_adds_changes_and_removes_sites_and_is_told_what_does_not_fit(
    staff: Member, browser_of: BrowserOf
) -> None:
    client = browser_of(staff)

    def send(action: str, **given: str) -> Any:
        return client.post(reverse(f"{action}_site", args=[staff.team.slug]), given, follow=True)

    assert "There is no site besides the central one." in client.get(reverse("sites", args=["perf"])).content.decode()
    made = send("add", name="berlin", description="Lab in Berlin", most_live_runs="", keys_stay="on").content.decode()
    assert "manage.py site-worker --site berlin" in made
    twice = send("add", name="berlin")
    assert (twice.status_code, "There is a site named berlin already." in twice.content.decode()) == (422, True)
    assert send("add", name="Not one!").status_code == 422
    changed = send("change", name="berlin", description="Moved", most_live_runs="7").content.decode()
    assert "The site berlin is changed." in changed
    site = Site.objects.get()
    assert (site.name, site.description, site.most_live_runs, site.keys_stay) == ("berlin", "Moved", 7, True)
    assert send("change", name="berlin", most_live_runs="0").status_code == 422
    assert send("change", name="oslo").status_code == 404
    there = add_host(staff, name="one", address="127.0.0.1", port=22, user="bench", roles="both", site=site)
    assert "1 host is at site berlin" in send("remove", name="berlin").content.decode()
    there.delete()
    assert "The site berlin is removed." in send("remove", name="berlin").content.decode()
    assert not Site.objects.exists()
    trail = AuditEntry.objects.filter(action__startswith="site.").order_by("pk").values_list("action", "before")
    stored = {"description": "Lab in Berlin", "most_live_runs": None}
    assert list(trail) == [("site.add", None), ("site.change", stored), ("site.remove", {"name": "berlin"})]


def test_sites_are_there_for_staff_alone(admin: Member, browser_of: BrowserOf) -> None:
    client = browser_of(admin)
    assert client.get(reverse("sites", args=["perf"])).status_code == 404
    for action in ("add", "change", "remove"):
        assert client.post(reverse(f"{action}_site", args=["perf"]), {"name": "berlin"}).status_code == 404
    assert not Site.objects.exists()
