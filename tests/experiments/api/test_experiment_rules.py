"""Stop rules, forecasts, and holding an experiment, as a client sees them."""

from __future__ import annotations

from typing import Any

import pytest

from experiments.models import Experiment, Run
from experiments.telling.reports.repeat import repeat_of
from tests.experiments.api.conftest import ApiClient

PARTS = {"application": "tomcat", "recipe": "limits", "sut": "sut-1", "drivers": ["driver-1"]}
BODY: dict[str, Any] = {
    "name": "q",
    "workload": "home page",
    "variants": [{"name": "a", **PARTS}, {"name": "b", **PARTS, "parameters": {"nofile": 2048}}],
}


def test_rules_are_stored_shown_and_copied(api: ApiClient, stock: dict[str, Any]) -> None:
    rules = {
        "stop_rule": "until_precise",
        "target_ratio": 0.01,
        "max_blocks": 40,
        "max_hours": 6.5,
        "aa_first": True,
        "gate_metrics": ["latency_p99_ms"],
    }
    made = api.post("/experiments", BODY | rules)
    assert made.status_code == 201, made.content
    shown = made.json()
    assert {name: shown[name] for name in rules} == rules
    assert (shown["repetitions"], shown["aa_result"], shown["spent_s"]) == (8, None, 0.0)
    copied = api.post("/experiments/copies", {"experiment": "q"}).json()
    assert {name: copied[name] for name in rules} == rules
    assert len(copied["runs"]) == 10  # the A/A check goes first


@pytest.mark.parametrize(
    ("rules", "field"),
    [
        ({"stop_rule": "until_clear", "max_blocks": 40}, "max_blocks"),
        ({"stop_rule": "until_precise"}, "target_ratio"),
        ({"stop_rule": "until_clear", "order": "sequential"}, "order"),
        ({"gate_metrics": ["speed"]}, "gate_metrics"),
        ({"stop_rule": "whenever"}, "stop_rule"),
        ({"variants": [{"name": "a", **PARTS, "concurrency": 0}]}, "variants.0.concurrency"),
    ],
)
@pytest.mark.parametrize("path", ["/experiments", "/experiments/forecasts"])
def test_rules_that_make_no_sense_name_their_field(
    api: ApiClient, stock: dict[str, Any], path: str, rules: dict[str, Any], field: str
) -> None:
    refused = api.post(path, BODY | rules)
    assert (refused.status_code, refused.json()["field"]) == (422, field)
    assert Experiment.objects.count() == 0


def test_variants_have_connections_of_their_own(api: ApiClient, stock: dict[str, Any]) -> None:
    variants = [{"name": f"{count}", **PARTS, "concurrency": count} for count in (8, 32)]
    made = api.post("/experiments", BODY | {"variants": variants})
    assert made.status_code == 201, made.content
    assert [one["concurrency"] for one in made.json()["variants"]] == [8, 32]
    experiment = Experiment.objects.get()
    shown = repeat_of(experiment, list(experiment.variants.all()), [], "https://bench").experiment_yaml
    again = api.post("/experiments", shown.encode(), content_type="application/yaml")
    assert again.status_code == 201, again.content
    assert [one["concurrency"] for one in again.json()["variants"]] == [8, 32]
    refused = api.post("/experiments", BODY | {"variants": [{"name": "odd", **PARTS, "concurrency": 33}]})
    assert (refused.status_code, refused.json()["field"]) == (422, "concurrency")
    assert "Variant odd: wrk cannot use 33 connections: connections (33) must be a multiple" in refused.json()["detail"]


def test_a_forecast_stores_and_starts_nothing(api: ApiClient, stock: dict[str, Any]) -> None:
    found = api.post("/experiments/forecasts", BODY | {"stop_rule": "until_clear"})
    assert found.status_code == 200, found.content
    said = found.json()
    assert said["first"] == {"blocks": 5, "runs": 10, "duration_s": 200.0}
    assert (said["most"]["blocks"], said["noise"], said["finds"]) == (20, None, [])
    assert said["arms"][0]["basis"] == "usual"
    assert (Experiment.objects.count(), Run.objects.count()) == (0, 0)


def test_an_experiment_is_paused_and_resumed(api: ApiClient, stock: dict[str, Any]) -> None:
    number = api.post("/experiments", BODY).json()["id"]
    assert api.post(f"/experiments/{number}/pause").status_code == 409
    api.post(f"/experiments/{number}/launch")
    paused = api.post(f"/experiments/{number}/pause")
    assert (paused.status_code, paused.json()["state"], paused.json()["state_reason"]) == (
        202,
        "paused",
        "Paused by ada.",
    )
    verdict = api.get(f"/experiments/{number}/verdict").json()
    assert (verdict["outcome"], verdict["finished"]) == ("inconclusive", False)
    assert api.get("/experiments?state=paused").json()["items"][0]["id"] == number
    assert api.post(f"/experiments/{number}/launch", {"repetitions": 1}).status_code == 409
    resumed = api.post(f"/experiments/{number}/resume")
    assert (resumed.status_code, resumed.json()["state"]) == (202, "running")


def test_a_gate_does_not_wait_for_an_experiment_that_its_a_a_check_blocked(
    api: ApiClient, stock: dict[str, Any]
) -> None:
    number = api.post("/experiments", BODY | {"aa_first": True}).json()["id"]
    Experiment.objects.update(state="blocked", state_reason="The baseline differs from itself.")
    verdict = api.get(f"/experiments/{number}/verdict?wait=60").json()
    assert (verdict["outcome"], verdict["finished"]) == ("error", True)
    assert verdict["reasons"] == ["The baseline differs from itself."]


def test_looks_so_far_are_told(api: ApiClient, stock: dict[str, Any]) -> None:
    number = api.post("/experiments", BODY | {"stop_rule": "until_clear"}).json()["id"]
    api.post(f"/experiments/{number}/launch")
    assert api.get(f"/experiments/{number}").json()["looks"] == []
    for run in Run.objects.select_related("variant"):
        assert run.variant is not None
        value = 1000.0 * (1.2 if run.variant.position else 1.0) * (1 + 0.001 * (run.number % 3))
        Run.objects.filter(pk=run.pk).update(
            state="finished", outcome="succeeded", validity="valid", metrics={"throughput_rps": value}
        )
    (look,) = api.get(f"/experiments/{number}").json()["looks"]
    assert (look["candidate"], look["metric"], look["number"], look["blocks"]) == ("b", "throughput_rps", 1, 5)
    assert (look["alpha"], look["outcome"], look["planned"]) == (0.016, "better", True)
    assert look["low_pct"] < look["change_pct"] < look["high_pct"]
