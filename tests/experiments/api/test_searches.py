"""Searches over the API."""

from __future__ import annotations

from typing import Any

import pytest

from experiments.models import Member, Role, Run, Workload
from experiments.registry.documents.versions import save_version
from tests.experiments.api.conftest import ApiClient, MakeApi
from tests.experiments.asking.test_searches import RATED, load
from tests.experiments.conftest import WORKLOAD, MakeMember
from tests.experiments.finished import finish_next, whole_run

SEARCH = {
    "name": "capacity",
    "application": "tomcat",
    "recipe": "limits",
    "workload": "rated",
    "sut": "sut-1",
    "drivers": ["driver-1"],
    "objective_ms": 50,
    "low_rps": 1000,
    "high_rps": 4000,
}


@pytest.fixture
def rated(admin: Member, stock: dict[str, Any]) -> Workload:
    return save_version(admin, Workload, "rated", WORKLOAD | RATED)


def test_a_search_is_started_followed_and_cancelled(api: ApiClient, rated: Workload) -> None:
    headers = {"Idempotency-Key": "one"}
    made = api.post("/searches", {**SEARCH, "labels": {"commit": "abc"}}, headers=headers)
    assert made.status_code == 202, made.content
    again = api.post("/searches", {**SEARCH, "labels": {"commit": "abc"}}, headers=headers)
    assert again.json()["id"] == made.json()["id"]
    search = made.json()
    assert (search["state"], search["objective_metric"], search["low_rps"]) == ("running", "latency_p99_ms", None)
    assert [(t["rate_rps"], t["result"], t["run"]) for t in search["trials"]] == [(1000, "", 1)]
    finish_next(whole_run(load(1000)))
    found = api.get(f"/searches/{search['id']}").json()
    assert [(t["rate_rps"], t["result"], t["latency_ms"]) for t in found["trials"]] == [
        (1000, "pass", 20.0),
        (4000, "", None),
    ]
    assert api.get("/searches?state=running&limit=1").json()["items"][0]["name"] == "capacity"
    cancelled = api.post(f"/searches/{search['id']}/cancel")
    assert (cancelled.status_code, cancelled.json()["state"]) == (202, "cancelled")
    assert api.post(f"/searches/{search['id']}/cancel").status_code == 409
    assert not Run.objects.exclude(state="finished").exists()


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"workload": "home page"}, "workload"),
        ({"workload": "nothing"}, "workload"),
        ({"low_rps": 5000}, "low_rps"),
        ({"objective_metric": "errors_total"}, "objective_metric"),
        ({"sut": "nowhere"}, "sut"),
        ({"parameters": {"nofile": 1}}, "parameters.nofile"),
    ],
)
def test_what_makes_no_search_is_answered_with_its_field(
    api: ApiClient, rated: Workload, change: dict[str, Any], field: str
) -> None:
    refused = api.post("/searches", SEARCH | change)
    assert (refused.status_code, refused.json()["field"]) == (422, field)
    assert not Run.objects.exists()


def test_another_teams_search_does_not_exist_and_a_viewer_starts_none(
    api: ApiClient, rated: Workload, make_api: MakeApi, other_admin: Member, admin: Member, make_member: MakeMember
) -> None:
    number = api.post("/searches", SEARCH).json()["id"]
    stranger = make_api(other_admin)
    assert stranger.get(f"/searches/{number}").status_code == 404
    assert stranger.post(f"/searches/{number}/cancel").status_code == 404
    assert stranger.get("/searches").json()["items"] == []
    viewer = make_api(make_member(admin.team, Role.VIEWER), "read")
    assert viewer.get(f"/searches/{number}").status_code == 200
    assert viewer.post("/searches", SEARCH).status_code == 403
    assert viewer.post(f"/searches/{number}/cancel").status_code == 403
