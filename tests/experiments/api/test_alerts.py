"""Alerts and histories over the API: what is listed, what a member may say, what another team sees."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from experiments.asking.launching.choices import Choice
from experiments.asking.launching.launch import launch_run
from experiments.judging.alerts.trends import rebuild
from experiments.models import Alert, Member, Role, Run, Trend
from experiments.registry.runs.numbers import reserve_numbers
from experiments.registry.runs.series import extend_series
from tests.experiments.api.conftest import ApiClient, MakeApi
from tests.experiments.conftest import MakeMember

FINGERPRINT = "f" * 64


@pytest.fixture
def alert(admin: Member, stock: dict[str, Any]) -> Alert:
    """The change point of twelve nights at 1,000 requests/s and six at 900."""
    template = launch_run(admin, Choice(**stock))
    levels = [1000.0, 1004.0, 996.0] * 4 + [900.0, 903.0, 897.0] * 2
    for day, value in enumerate(levels):
        run = Run.objects.get(pk=template.pk)
        run.pk, run.number = None, reserve_numbers(admin.team, 1)
        run.state, run.outcome, run.validity = Run.State.FINISHED, Run.Outcome.SUCCEEDED, Run.Validity.VALID
        run.fingerprint, run.metrics, run.throughput_rps = FINGERPRINT, {"throughput_rps": value}, value
        run.finished_at = datetime(2026, 3, 1, tzinfo=UTC) + timedelta(days=day)
        run.save()
    rebuild(extend_series(run, application="app", workload="load", tool="wrk 4", latency_basis="service_time"))
    return Alert.objects.get()


def test_the_list_holds_open_alerts_with_their_numbers(api: ApiClient, alert: Alert) -> None:
    (found,) = api.get("/alerts").json()["items"]

    assert found["sentence"].startswith("Throughput fell by 10.0 % with run #")
    assert (found["kind"], found["state"], found["triage"], found["worse"]) == (
        "change",
        "confirmed",
        "untriaged",
        True,
    )
    assert found["change_pct"] == pytest.approx(-10, abs=0.1)
    assert (found["series"], found["recipe"], found["unit"]) == (FINGERPRINT, "limits", "requests/s")
    nothing: dict[str, Any] = {"asked": [], "drift": [], "noise": []}
    assert api.get(f"/alerts/{found['id']}").json()["configuration"] == nothing


@pytest.mark.parametrize(
    "query, count",
    [
        ("", 1),
        ("triage=all", 1),
        ("triage=fixed", 0),
        ("kind=missing", 0),
        ("state=confirmed&metric=throughput_rps", 1),
    ],
)
def test_the_list_is_filtered(api: ApiClient, alert: Alert, query: str, count: int) -> None:
    assert len(api.get(f"/alerts?{query}").json()["items"]) == count


@pytest.mark.parametrize("query", ["triage=done", "state=sure", "kind=x", "metric=speed", "limit=0"])
def test_a_word_that_no_filter_knows_is_refused(api: ApiClient, alert: Alert, query: str) -> None:
    answer = api.get(f"/alerts?{query}")

    assert answer.status_code == 422
    assert answer.json()["field"] in (query.partition("=")[0], f"query.{query.partition('=')[0]}")


def test_the_list_is_paged(api: ApiClient, alert: Alert) -> None:
    other = Trend.objects.get()
    Alert.objects.create(team=alert.team, trend=other, kind="missing", state="confirmed", before_at_s=0.0)
    first = api.get("/alerts?limit=1").json()
    second = api.get(f"/alerts?limit=1&cursor={first['next_cursor']}").json()

    assert [first["items"][0]["kind"], second["items"][0]["kind"]] == ["missing", "change"]
    assert second["next_cursor"] == ""


def test_an_editor_triages(api: ApiClient, alert: Alert) -> None:
    answer = api.send("PATCH", f"/alerts/{alert.pk}", {"triage": "infra", "owner": "ada", "note": "switch replaced"})

    assert answer.status_code == 200
    assert [answer.json()[name] for name in ("triage", "owner", "note")] == ["infra", "ada", "switch replaced"]
    assert api.send("PATCH", f"/alerts/{alert.pk}", {"owner": ""}).json()["owner"] is None
    assert api.get("/alerts").json()["items"] == []


@pytest.mark.parametrize(
    "body, field", [({"triage": "done"}, "triage"), ({"owner": "nobody"}, "owner"), ({"because": "x"}, "because")]
)
def test_what_cannot_be_said_is_refused(api: ApiClient, alert: Alert, body: dict[str, str], field: str) -> None:
    answer = api.send("PATCH", f"/alerts/{alert.pk}", body)

    assert answer.status_code == 422
    assert answer.json()["field"] == field


def test_roles_and_teams_are_kept_apart(
    alert: Alert, make_api: MakeApi, make_member: MakeMember, other_admin: Member
) -> None:
    launcher, stranger = make_api(make_member(alert.team, Role.LAUNCHER)), make_api(other_admin)

    assert launcher.get(f"/alerts/{alert.pk}").status_code == 200
    assert launcher.send("PATCH", f"/alerts/{alert.pk}", {"triage": "fixed"}).status_code == 403
    assert stranger.get("/alerts").json()["items"] == []
    assert stranger.get(f"/alerts/{alert.pk}").status_code == 404
    assert stranger.send("PATCH", f"/alerts/{alert.pk}", {"triage": "fixed"}).status_code == 404
    assert stranger.post(f"/series/{FINGERPRINT}/expected-level", {"metric": "throughput_rps"}).status_code == 404


def test_a_history_says_where_it_changed_and_what_is_expected(api: ApiClient, alert: Alert) -> None:
    assert api.get(f"/series/{FINGERPRINT}").json()["change_points"][0]["alert"] == alert.pk
    answer = api.post(f"/series/{FINGERPRINT}/expected-level", {"metric": "throughput_rps", "recipe": "limits"})

    history = api.get(f"/series/{FINGERPRINT}").json()
    assert answer.status_code == 200
    assert history["change_points"][0]["triage"] == "expected"
    assert history["expected_levels"] == answer.json() != []
    assert api.get(f"/series/{FINGERPRINT}?recipe=other").json()["change_points"] == []
    api.send("PATCH", f"/alerts/{alert.pk}", {"triage": "invalid"})
    assert api.get(f"/series/{FINGERPRINT}").json()["change_points"] == []
