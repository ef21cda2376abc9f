"""`Idempotency-Key`: one start per key, also when two requests come at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from experiments.keeping.retention.removal import forget_answers
from experiments.models import IdempotencyRecord, Member, Run
from tests.experiments.api.conftest import ApiClient, MakeApi
from tests.experiments.api.test_auth import BODIES, NAMES, full  # noqa: F401 - the fixture

KEY = {"Idempotency-Key": "key-1"}


def test_the_same_request_gets_the_same_answer_and_starts_nothing_twice(api: ApiClient, stock: dict[str, Any]) -> None:
    first, again = (api.post("/runs", NAMES, headers=KEY) for _ in range(2))
    assert (first.status_code, first.content) == (again.status_code, again.content)
    assert Run.objects.count() == 1
    api.post("/runs", NAMES)
    assert Run.objects.count() == 2


def test_another_body_or_address_under_the_same_key_is_refused(api: ApiClient, stock: dict[str, Any]) -> None:
    api.post("/runs", NAMES, headers=KEY)
    for path, body in (
        ("/runs", {**NAMES, "notes": "x"}),
        ("/runs/1/rerun", None),
        ("/experiments", BODIES["create_experiment"]),
    ):
        answer = api.post(path, body, headers=KEY)
        assert (answer.status_code, answer.json()["field"]) == (422, "Idempotency-Key"), path
    assert Run.objects.count() == 1


def test_a_key_is_of_one_team(api: ApiClient, other_admin: Member, make_api: MakeApi, stock: dict[str, Any]) -> None:
    api.post("/runs", NAMES, headers=KEY)
    assert make_api(other_admin).post("/runs", NAMES, headers=KEY).json()["field"] == "application"


def test_an_error_leaves_the_key_free(api: ApiClient, stock: dict[str, Any]) -> None:
    assert api.post("/runs", {**NAMES, "parameters": {"nofile": 1}}, headers=KEY).status_code == 422
    assert not IdempotencyRecord.objects.exists()
    assert api.post("/runs", NAMES, headers=KEY).status_code == 202


@pytest.mark.parametrize("key", ["x" * 256, "\u00e9"])
def test_a_key_that_cannot_be_stored_is_refused(api: ApiClient, stock: dict[str, Any], key: str) -> None:
    assert api.post("/runs", NAMES, headers={"Idempotency-Key": key}).status_code == 422


@pytest.mark.parametrize(
    "path", ["/experiments/{id}/launch", "/experiments/copies", "/runs/{number}/rerun", "/experiments"]
)
def test_everything_that_starts_takes_a_key(api: ApiClient, stock: dict[str, Any], path: str) -> None:
    values = {
        "id": api.post("/experiments", BODIES["create_experiment"]).json()["id"],
        "number": api.post("/runs", NAMES).json()["number"],
    }
    bodies = {"/experiments": BODIES["create_experiment"], "/experiments/copies": {"experiment": "q"}}
    body = bodies.get(path, {})
    first, again = (api.post(path.format(**values), body, headers=KEY) for _ in range(2))
    assert (first.status_code // 100, first.content) == (2, again.content)
    assert ("Idempotency-Replayed" in first, again["Idempotency-Replayed"]) == (False, "true")


def test_an_end_a_pause_or_a_return_that_is_asked_for_twice_has_the_first_answer(
    api: ApiClient,
    full: dict[str, str],  # noqa: F811 - the fixture
) -> None:
    assert api.post("/experiments/{experiment_id}/launch".format(**full)).status_code == 202
    full["tuning_id"] = str(api.post("/tunings", BODIES["start_tuning"]).json()["id"])
    for path, body in (
        ("/experiments/{experiment_id}/pause", None),
        ("/experiments/{experiment_id}/resume", None),
        ("/experiments/{experiment_id}/cancel", None),
        ("/tunings/{tuning_id}/pause", None),
        ("/tunings/{tuning_id}/resume", None),
        ("/tunings/{tuning_id}/cancel", None),
        ("/schedules/{schedule_id}/pause", None),
        ("/schedules/{schedule_id}/resume", None),
        ("/bisections/{bisection_id}/cancel", None),
        ("/searches/{search_id}/cancel", None),
        ("/reservations/{reservation_id}/end", None),
        ("/runs/2/cancel", None),
        ("/trash", {"runs": [2]}),
        ("/trash/restore", {"runs": [2]}),
    ):
        first, again = (api.post(path.format(**full), body, headers={"Idempotency-Key": path}) for _ in range(2))
        assert (first.status_code // 100, again.status_code) == (2, first.status_code), (path, again.content)
        assert (again.content, again["Idempotency-Replayed"]) == (first.content, "true"), path


def test_a_list_is_answered_again_as_it_was(api: ApiClient, stock: dict[str, Any]) -> None:
    name = api.get("/library").json()["published"][0]["name"]
    first, again = (api.post(f"/library/published/{name}/import", {}, headers=KEY) for _ in range(2))
    assert (first.status_code, first.json()) == (201, again.json())
    assert again["Idempotency-Replayed"] == "true"


def test_answers_are_forgotten_after_a_month(api: ApiClient, stock: dict[str, Any]) -> None:
    for key in ("old", "new"):
        api.post("/runs", NAMES, headers={"Idempotency-Key": key})
    IdempotencyRecord.objects.filter(key="old").update(created_at=timezone.now() - timedelta(days=31))
    assert forget_answers() == 1
    assert [record.key for record in IdempotencyRecord.objects.all()] == ["new"]


def test_duplicates_at_the_same_moment_start_one_run(
    transactional_db: None, admin: Member, make_api: MakeApi, stock: dict[str, Any]
) -> None:
    header = make_api(admin).header
    together = Barrier(4)

    def start(_: int) -> tuple[int, bytes]:
        together.wait(timeout=300)
        try:
            answer = ApiClient(header, Client()).post("/runs", NAMES, headers=KEY)
            return answer.status_code, answer.content
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        answers = set(pool.map(start, range(4)))
    assert [status for status, _ in answers] == [202]
    assert Run.objects.count() == 1
