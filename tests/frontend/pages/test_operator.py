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
from experiments.models import Canary, Host, Member, Worker
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
    run = make_run(state="measuring", owner="box:7:1", lease_until=lease, events=())
    moments = {"started_at": Now() - timedelta(hours=2), "seen_at": Now()}
    Worker.objects.create(name="runs@box", process="box:7", queues=["runs"], slots=4, version="0.1.0", **moments)
    Canary.objects.create(queue="runs", sent_at=Now(), taken_at=Now(), delay_s=0.012)
    foreign = add_host(other_admin, name="theirs", address="127.0.0.1", port=22, user="bench", roles="both")
    Host.objects.filter(pk=foreign.pk).update(state="dirty", state_reason="somaxconn differs")

    answer = page(browser_of(staff), staff)

    text = answer.content.decode()
    assert answer.status_code == 200
    for piece in ("runs@box", f"perf #{run.number}", "Messages are taken.", "theirs", "somaxconn differs", "12.0 ms"):
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
