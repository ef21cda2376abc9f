"""A team's own rules for alerts over the API, and results that break them."""

from __future__ import annotations

from experiments.judging.alerts.saving_rules import WantedRule, create_rule
from experiments.models import BrokenRule, Member
from tests.experiments.api.conftest import ApiClient


def test_results_that_are_sent_break_rules_as_well(api: ApiClient, admin: Member) -> None:
    create_rule(admin, WantedRule("too few", "figure", "throughput_rps", "below", 5000.0, labels={"branch": "main"}))
    for branch in ("main", "other"):
        sent = {"tool": "k6", "metrics": {"throughput_rps": 4000.0}, "labels": {"branch": branch}}
        assert api.post("/results", sent).status_code == 201
    assert [one.run.labels for one in BrokenRule.objects.select_related("run") if one.run] == [{"branch": "main"}]


def test_rules_over_the_api(api: ApiClient, admin: Member) -> None:
    made_rule = api.post(
        "/alert-rules", {"name": "slow", "kind": "figure", "metric": "latency_p99_ms", "side": "above", "limit": 100}
    )
    assert made_rule.status_code == 201
    place = f"/alert-rules/{made_rule.json()['id']}"
    assert made_rule.json()["in_words"] == "Latency, p99 above 100 ms"
    assert api.send("PATCH", place, {"limit": 120, "is_active": False}).json()["limit"] == 120
    assert [one["is_active"] for one in api.get("/alert-rules").json()] == [False]
    refused = api.send("PATCH", place, {"metric": "happiness"})
    assert (refused.status_code, refused.json()["field"]) == (422, "metric")
    assert api.send("DELETE", place).json() == {"deleted": "slow"}
    assert api.get(place).status_code == 404
