"""Sharing and deleting over the API."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from experiments.models import Member, Run, ShareLink
from tests.experiments.api.conftest import ApiClient
from tests.experiments.api.test_auth import NAMES
from tests.experiments.telling.test_sharing import Kind, runs, subject_of
from tests.frontend.conftest import FINGERPRINT, make_run

__all__ = ["make_run", "runs"]  # fixtures of the pages and the use cases


def body(kind: str, found: list[Run]) -> dict[str, Any]:
    """What shares these runs as each kind."""
    first, second = (run.number for run in found)
    subject = subject_of(kind, found)
    bodies: dict[str, dict[str, Any]] = {
        "run": {"runs": [second]},
        "comparison": {"runs": [first, second]},
        "experiment": {"experiment": found[0].experiment_id},
        "scaling": {"experiment": found[0].experiment_id},
        "trend": {"series": FINGERPRINT, "metric": "latency_p99_ms", "since": "2020-01-01"},
    }
    return bodies.get(kind, {kind: subject.inquiry_id})


@pytest.mark.parametrize("kind", Kind.values)
def test_a_share_is_made_listed_and_revoked(kind: str, api: ApiClient, runs: list[Run]) -> None:
    made = api.post("/shares", {"kind": kind, **body(kind, runs)})
    assert made.status_code == 201, made.content
    url = made.json()["url"]
    assert Client().get(url).status_code == 200
    listed = api.get("/shares").json()["items"]
    assert [(one["id"], one["state"], one["opened_count"]) for one in listed] == [(made.json()["id"], "live", 1)]
    assert "url" not in listed[0]
    ended = api.send("DELETE", f"/shares/{made.json()['id']}")
    assert (ended.status_code, ended.json()["state"]) == (200, "revoked")
    assert Client().get(url).status_code == 404


@pytest.mark.parametrize(
    "given, status, field",
    [
        ({"kind": "run"}, 422, "runs"),
        ({"kind": "run", "runs": [1, 2]}, 422, "runs"),
        ({"kind": "run", "runs": [99]}, 404, "runs"),
        ({"kind": "run", "runs": [1], "days": 0}, 422, "days"),
        ({"kind": "run", "runs": [1], "days": 367}, 422, "days"),
        ({"kind": "comparison", "runs": [1]}, 422, "runs"),
        ({"kind": "comparison", "runs": [1, 99]}, 404, "runs"),
        ({"kind": "experiment"}, 422, "experiment"),
        ({"kind": "experiment", "experiment": 999}, 404, "experiment"),
        ({"kind": "scaling", "experiment": 999}, 404, "experiment"),
        ({"kind": "search"}, 422, "search"),
        ({"kind": "bisection", "bisection": 999}, 404, ""),
        ({"kind": "trend", "series": "0" * 64}, 404, "series"),
        ({"kind": "trend", "series": FINGERPRINT, "metric": "nothing"}, 422, "metric"),
        ({"kind": "trend", "series": FINGERPRINT, "since": "yesterday"}, 422, "since"),
        ({"kind": "trend", "series": FINGERPRINT, "recipe": "a\0b"}, 422, ""),
        ({"kind": "nothing"}, 422, "kind"),
        ({"kind": "run", "runs": [1], "sheet": {}}, 422, "sheet"),
    ],
)
def test_what_cannot_be_shared_is_named(
    given: dict[str, Any], status: int, field: str, api: ApiClient, runs: list[Run]
) -> None:
    answer = api.post("/shares", given)
    assert (answer.status_code, answer.json()["field"]) == (status, field), answer.content
    assert not ShareLink.objects.exists()


def test_runs_and_experiments_go_to_the_trash_and_come_back(api: ApiClient, runs: list[Run]) -> None:
    number, experiment = runs[0].number, runs[0].experiment_id
    gone = api.post("/trash", {"runs": [number]})
    assert [(row["kind"], row["number"]) for row in gone.json()["items"]] == [("run", number)]
    assert api.get(f"/runs/{number}").status_code == 404
    assert api.post("/trash/restore", {"runs": [number]}).json()["items"] == []
    assert api.get(f"/runs/{number}").status_code == 200
    assert api.post("/trash", {"experiment": experiment}).json()["items"][0]["runs"] == 2
    assert api.get(f"/experiments/{experiment}").status_code == 404
    assert api.post("/trash/restore", {"experiment": experiment}).json()["items"] == []
    for wrong in ({}, {"runs": [number], "experiment": experiment}):
        assert api.post("/trash", wrong).status_code == 422
    assert api.post("/trash", {"runs": [99]}).status_code == 404


def test_a_quota_that_is_used_up_is_a_conflict(api: ApiClient, admin: Member, stock: dict[str, Any]) -> None:
    type(admin.team).objects.update(quota_queued_runs=0)
    answer = api.post("/runs", NAMES)
    assert answer.status_code == 409, answer.content
    assert "runs waiting in the queue, at most 0" in answer.json()["detail"]


def test_the_report_of_a_run_comes_as_data_as_markdown_and_as_csv(api: ApiClient, runs: list[Run]) -> None:
    path = f"/runs/{runs[0].number}/report"
    assert api.get(path).json()["title"].startswith(f"Run #{runs[0].number}")
    assert api.get(f"{path}?format=markdown").content.decode().startswith(f"# Run \\#{runs[0].number}")
    assert api.get(f"{path}?format=csv")["Content-Type"].startswith("text/csv")
    Run.objects.filter(pk=runs[0].pk).update(state="measuring")
    assert api.get(path).status_code == 409
