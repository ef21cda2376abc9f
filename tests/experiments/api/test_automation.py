"""Schedules, webhooks and bisections over the API."""

from __future__ import annotations

from typing import Any

from experiments.models import Bisection, Member, Recipe
from experiments.registry.documents.versions import save_version
from tests.experiments.api.conftest import ApiClient
from tests.experiments.conftest import RECIPE

PARTS = {"application": "tomcat", "recipe": "limits", "workload": "home page", "sut": "sut-1", "drivers": ["driver-1"]}


def experiment_of(api: ApiClient) -> int:
    parts = {name: value for name, value in PARTS.items() if name != "workload"}
    body = {"name": "q", "workload": "home page", "variants": [{"name": "a", **parts}]}
    return int(api.post("/experiments", body).json()["id"])


def test_a_schedule_from_the_first_line_to_the_last(api: ApiClient, stock: dict[str, Any]) -> None:
    body = {"name": "n", "experiment": experiment_of(api), "cron": "30 2 * * *", "time_zone": "Europe/Berlin"}
    made = api.post("/schedules", body)
    assert made.status_code == 201, made.content
    said = made.json()
    here = f"/schedules/{said['id']}"
    assert (said["in_words"], said["runs_as"], said["last"], said["occasions"]) == (
        "At 02:30, Europe/Berlin", "ada", None, [],
    )  # fmt: skip
    assert len(said["next_times"]) == 3
    changed = api.send("PATCH", here, {"labels": {"commit": "4f2c"}, "cron": "0 4 * * *"}).json()
    assert (changed["labels"], changed["cron"], changed["time_zone"]) == (
        {"commit": "4f2c"},
        "0 4 * * *",
        "Europe/Berlin",
    )
    paused = api.post(f"{here}/pause").json()
    assert (paused["state"], paused["next_times"]) == ("paused", [])
    assert api.post(f"{here}/pause").status_code == 409
    assert api.post(f"{here}/resume").json()["state"] == "active"
    assert [one["name"] for one in api.get("/schedules").json()] == ["n"]
    assert api.send("DELETE", here).json() == {"deleted": "n"}
    for wrong, field in (({"cron": "x"}, "cron"), ({"experiment": 999999}, "experiment"), ({"run": 9}, "run")):
        answer = api.post("/schedules", {**body, **wrong})
        assert (answer.status_code, answer.json()["field"]) == (422, field), answer.content


def test_a_webhook_from_the_first_line_to_the_last(api: ApiClient) -> None:
    made = api.post("/webhooks", {"name": "w", "url": "https://hooks.example.com/x", "events": ["run.finished"]})
    assert made.status_code == 201, made.content
    secret, here = made.json()["secret"], f"/webhooks/{made.json()['id']}"
    assert secret.startswith("whsec_")
    assert "secret" not in api.get(here).json()
    assert api.post(f"{here}/secret").json()["secret"] != secret
    sent = api.post(f"{here}/test").json()
    assert (sent["event"], sent["state"], sent["attempts"]) == ("webhook.test", "waiting", [])
    listed = api.get(f"{here}/deliveries").json()
    assert [one["id"] for one in listed["items"]] == [sent["id"]]
    assert api.post(f"{here}/deliveries/{sent['id']}/redeliver").status_code == 409
    changed = api.send("PATCH", here, {"format": "slack", "is_active": False}).json()
    assert (changed["format"], changed["is_active"], changed["events"]) == ("slack", False, ["run.finished"])
    assert api.get(f"{here}/deliveries").json()["items"][0]["state"] == "given_up"
    refused = api.send("PATCH", here, {"url": "http://hooks.example.com/"})
    assert (refused.status_code, refused.json()["field"]) == (422, "url")
    assert api.send("DELETE", here).json() == {"deleted": "w"}


def test_a_bisection_from_the_first_line_to_the_last(api: ApiClient, admin: Member, stock: dict[str, Any]) -> None:
    save_version(admin, Recipe, "limits", {**RECIPE, "description": "second"})
    body = {"name": "b", **PARTS, "good_version": 1, "bad_version": 2}
    headers = {"Idempotency-Key": "once"}
    made = api.post("/bisections", body, headers=headers)
    assert made.status_code == 202, made.content
    assert api.post("/bisections", body, headers=headers).json()["id"] == made.json()["id"]
    said = made.json()
    assert (said["candidates"], said["last_good"], said["first_bad"]) == (["1", "2"], "1", None)
    assert (said["steps_left"], len(said["steps"]), said["steps"][0]["candidate"]) == (1, 1, "2")
    assert 0 < said["least_left_s"] < said["most_left_s"]
    assert [one["id"] for one in api.get("/bisections?state=running").json()["items"]] == [said["id"]]
    assert api.post(f"/bisections/{said['id']}/cancel").json()["state"] == "cancelled"
    assert Bisection.objects.count() == 1
    for wrong in ({"parameter": "nofile"}, {"bad_version": None}, {"good_version": 9}):
        assert api.post("/bisections", {**body, **wrong}).status_code == 422
    by_value = {"parameter": "nofile", "candidates": ["1024", "2048"], "good_version": None, "bad_version": None}
    assert api.post("/bisections", {**body, **by_value}).json()["candidates"] == ["1024", "2048"]
