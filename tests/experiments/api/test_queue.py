"""The queue by API: priorities, retries, why a run waits, and reservations."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from experiments.models import Experiment, Host, Member, Reservation, Role, Run
from experiments.running.queue import waiting
from experiments.running.queue.dispatch import claim_next
from tests.experiments.api.conftest import ApiClient, MakeApi
from tests.experiments.api.test_auth import BODIES, NAMES
from tests.experiments.asking.test_retries import fail, grant_all
from tests.experiments.conftest import MakeMember


def iso(hours: float) -> str:
    return (timezone.now() + timedelta(hours=hours)).isoformat()


@pytest.fixture
def launcher(admin: Member, stock: dict[str, Any], make_member: MakeMember) -> Member:
    member = make_member(admin.team, Role.LAUNCHER, "anna")
    grant_all(admin, member)
    return member


def test_a_run_is_launched_with_its_priority_and_retries(api: ApiClient, stock: dict[str, Any]) -> None:
    usual = api.post("/runs", NAMES).json()
    assert (usual["priority"], usual["retries_left"], usual["retry_of"]) == ("normal", 0, None)
    asked = api.post("/runs", {**NAMES, "priority": "high", "retries": 2}).json()
    assert (asked["priority"], asked["retries_left"]) == ("high", 2)
    whole = api.post("/runs", {"spec": asked["spec"], "priority": "low"}).json()
    assert whole["priority"] == "low"
    listed = api.get("/runs?fields=number,priority").json()["items"]
    assert [run["priority"] for run in listed] == ["low", "high", "normal"]


@pytest.mark.parametrize(
    "change, field",
    [
        ({"priority": "urgent"}, "priority"),
        ({"priority": 1}, "priority"),
        ({"retries": 4}, "retries"),
        ({"retries": -1}, "retries"),
        ({"retries": True}, "retries"),
    ],
)
def test_a_wrong_priority_or_number_of_retries_is_named(
    api: ApiClient, stock: dict[str, Any], change: dict[str, Any], field: str
) -> None:
    answer = api.post("/runs", {**NAMES, **change})
    assert (answer.status_code, answer.json()["field"]) == (422, field)
    assert not Run.objects.exists()


def test_high_is_for_editors_and_nothing_is_stored_for_others(
    api: ApiClient, launcher: Member, make_api: MakeApi
) -> None:
    limited = make_api(launcher)
    for path, body in (
        ("/runs", NAMES),
        ("/experiments/copies", {"experiment": "q"}),
    ):
        if "copies" in path:
            api.post("/experiments", BODIES["create_experiment"])
        answer = limited.post(path, {**body, "priority": "high"})
        assert (answer.status_code, answer.json()["field"]) == (403, "priority"), answer.content
    assert not Run.objects.exists()
    assert Experiment.objects.count() == 1
    assert limited.post("/runs", NAMES).status_code == 202
    refused = limited.send("PATCH", "/runs/1", {"priority": "high"})
    assert (refused.status_code, refused.json()["field"]) == (403, "priority")
    assert limited.send("PATCH", "/runs/1", {"priority": "low"}).json()["priority"] == "low"


def test_a_run_that_has_started_keeps_its_priority(api: ApiClient, stock: dict[str, Any]) -> None:
    api.post("/runs", NAMES)
    claim_next("worker")
    assert api.send("PATCH", "/runs/1", {"priority": "low"}).status_code == 409
    assert api.send("PATCH", "/runs/1", {"priority": None}).status_code == 422
    assert api.send("PATCH", "/runs/2", {"priority": "low"}).status_code == 404


def test_experiments_get_one_retry_per_repetition_unless_asked_otherwise(api: ApiClient, stock: dict[str, Any]) -> None:
    made = api.post("/experiments", BODIES["create_experiment"]).json()
    assert made["expected_end_at"] is None
    launched = api.post(f"/experiments/{made['id']}/launch").json()
    assert {(run["priority"], run["retries_left"]) for run in launched["runs"]} == {("normal", 1)}
    assert launched["expected_end_at"] > iso(0)
    copied = api.post("/experiments/copies", {"experiment": "q", "priority": "low", "retries": 0}).json()
    assert {(run["priority"], run["retries_left"]) for run in copied["runs"]} == {("low", 0)}


def test_a_waiting_run_says_why_and_how_long(api: ApiClient, stock: dict[str, Any]) -> None:
    for _ in range(2):
        api.post("/runs", NAMES)
    claim_next("worker")
    waits = api.get("/runs/2").json()["waiting"]
    assert (waits["reason"], waits["runs_before"]) == ("sut-1 is used by run #1.", 1)
    assert waits["expected_start_at"] > iso(0)
    assert api.get("/runs/1").json()["waiting"] is None
    Host.objects.filter(name="sut-1").update(state="dirty", state_reason="x is 1")
    waits = api.get("/runs/2").json()["waiting"]
    assert waits["reason"].startswith("sut-1 is dirty: x is 1.")
    assert waits["expected_start_at"] is None


def test_a_launch_is_answered_with_the_reason_and_without_a_time_when_many_others_wait(
    api: ApiClient, stock: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "FORESEEN", 1)
    assert api.post("/runs", NAMES).json()["waiting"]["expected_start_at"] is not None
    claim_next("worker")
    for _ in range(2):
        api.post("/runs", NAMES)
    for path, body in (("/runs", NAMES), ("/runs/1/rerun", None)):
        made = api.post(path, body).json()
        said = made["waiting"]
        assert (said["reason"], said["expected_start_at"]) == ("sut-1 is used by run #1.", None)
        later = api.get(f"/runs/{made['number']}").json()["waiting"]
        assert (later["runs_before"], later["expected_start_at"] > iso(0)) == (said["runs_before"], True)
    assert api.get("/runs/4?fields=number,state").json() == {"number": 4, "state": "queued"}
    assert api.get("/runs/4?fields=waiting").json()["waiting"]["runs_before"] == 3


def test_a_retry_and_what_it_repeats_name_each_other(api: ApiClient, stock: dict[str, Any]) -> None:
    api.post("/runs", {**NAMES, "retries": 1})
    fail("host")
    failed, retry = api.get("/runs/1").json(), api.get("/runs/2").json()
    assert (failed["cause"], failed["retried_as"], failed["retry_of"]) == ("host", 2, None)
    assert (retry["retry_of"], retry["retried_as"], retry["retries_left"]) == (1, None, 0)


def test_hosts_are_reserved_extended_and_given_back(api: ApiClient, launcher: Member, make_api: MakeApi) -> None:
    mine = make_api(launcher)
    made = mine.post("/reservations", {"hosts": ["sut-1", "driver-1"], "until": iso(1), "reason": "profiling"})
    assert made.status_code == 201, made.content
    said = made.json()
    assert (said["hosts"], said["member"], said["reason"]) == (["driver-1", "sut-1"], "anna", "profiling")
    host = api.get("/hosts/sut-1").json()
    assert (host["reserved_by"], host["reserved_until"]) == ("anna", said["until"])
    assert [host["reserved_by"] for host in api.get("/hosts").json()] == ["anna", "anna"]
    refused = api.post("/reservations", {"hosts": ["sut-1"], "until": iso(1)})
    assert (refused.status_code, refused.json()["field"]) == (409, "hosts")
    assert "reserved by anna until" in refused.json()["detail"]
    address = f"/reservations/{said['id']}"
    assert mine.send("PATCH", address, {"until": iso(2)}).json()["until"] > said["until"]
    assert api.send("PATCH", address, {"until": iso(2)}).status_code == 403
    assert [found["id"] for found in api.get("/reservations").json()] == [said["id"]]
    assert api.post(f"{address}/end").status_code == 200  # an admin
    assert mine.post(f"{address}/end").status_code == 409
    assert api.get("/reservations").json() == []


@pytest.mark.parametrize(
    "body, field",
    [
        ({"hosts": []}, "hosts"),
        ({"hosts": ["sut-1", "nope"]}, "hosts.1"),
        ({"hosts": "sut-1"}, "hosts"),
        ({"until": "2026-08-01T10:00:00"}, "until"),
        ({"until": "soon"}, "until"),
        ({"until": "2020-01-01T00:00:00Z"}, "until"),
        ({"until": "2999-01-01T00:00:00Z"}, "until"),
        ({"until": "9999-12-31T23:59:59-23:59"}, "until"),
        ({"starts_at": "0001-01-01T00:00:00+23:59"}, ""),
        ({"reason": "x" * 201}, "reason"),
        ({"member": "ada"}, "member"),
    ],
)
def test_a_reservation_that_cannot_be(api: ApiClient, stock: dict[str, Any], body: dict[str, Any], field: str) -> None:
    answer = api.post("/reservations", {"hosts": ["sut-1"], "until": iso(1), **body})
    if field:
        assert (answer.status_code, answer.json()["field"]) == (422, field), answer.content
        assert not Reservation.objects.exists()
    else:
        assert answer.status_code < 500
