"""A team's limits for the validity checks, over the API."""

from __future__ import annotations

from typing import Any

import pytest

from experiments.models import AuditEntry, HistoryLimits, Member, Role, Team
from tests.experiments.api.conftest import ApiClient, MakeApi
from tests.experiments.conftest import MakeMember


def patch(api: ApiClient, values: dict[str, Any]) -> tuple[int, Any]:
    answer = api.send("PATCH", "/thresholds", {"values": values})
    return answer.status_code, answer.json()


def test_every_limit_is_listed_with_its_default_and_the_reason(api: ApiClient) -> None:
    found = {one["name"]: one for one in api.get("/thresholds").json()}
    steal = found["steal_warn_ratio"]
    assert (steal["value"], steal["default"], steal["unit"], steal["checks"]) == (0.01, 0.01, "ratio", ["steal"])
    assert found["driver_cpu_invalid"]["value"] is False
    assert all(one["reason"].endswith(".") and one["source"] for one in found.values())
    assert all(one["low"] <= one["default"] <= one["high"] for one in found.values())


def test_a_change_is_stored_as_what_differs_and_is_in_the_audit_trail(api: ApiClient, team: Team) -> None:
    status, body = patch(api, {"error_budget_ratio": 0.001, "driver_cpu_invalid": True, "sut_cpu_ratio": 0.9})
    assert status == 200
    assert {one["name"]: one["value"] for one in body}["error_budget_ratio"] == 0.001
    team.refresh_from_db()
    assert team.thresholds == {"error_budget_ratio": 0.001, "driver_cpu_invalid": True}
    patch(api, {"error_budget_ratio": None})
    team.refresh_from_db()
    assert team.thresholds == {"driver_cpu_invalid": True}
    entry = AuditEntry.objects.filter(action="thresholds.change").latest("id")
    assert entry.before == {"error_budget_ratio": 0.001, "driver_cpu_invalid": True}
    assert entry.after == {"driver_cpu_invalid": True}
    count = AuditEntry.objects.count()
    patch(api, {"driver_cpu_invalid": True})
    assert AuditEntry.objects.count() == count


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"no_such_limit": 1}, "no_such_limit"),
        ({"steal_warn_ratio": 1.5}, "steal_warn_ratio"),
        ({"steal_warn_ratio": -0.1}, "steal_warn_ratio"),
        ({"steal_warn_ratio": 0.2}, "steal_warn_ratio"),  # above the limit that makes a run invalid
        ({"clock_warn_s": 61}, "clock_warn_s"),
        ({"driver_cpu_invalid": 0.5}, "driver_cpu_invalid"),
    ],
)
def test_a_value_that_makes_no_sense_is_refused_and_named(
    api: ApiClient, team: Team, values: dict[str, Any], field: str
) -> None:
    status, body = patch(api, values)
    assert status == 422
    assert field in str(body)
    team.refresh_from_db()
    assert team.thresholds == {}


@pytest.mark.parametrize(("role", "scopes", "expected"), [(Role.EDITOR, (), 403), (Role.ADMIN, ("read", "write"), 403)])
def test_only_admins_with_an_admin_token_set_limits(
    team: Team, make_member: MakeMember, make_api: MakeApi, role: Role, scopes: tuple[str, ...], expected: int
) -> None:
    caller = make_api(make_member(team, role, "somebody"), *scopes)
    assert patch(caller, {"steal_warn_ratio": 0.02})[0] == expected
    assert caller.get("/thresholds").status_code == 200


def test_another_team_keeps_its_own(api: ApiClient, other_admin: Member, make_api: MakeApi) -> None:
    patch(api, {"steal_warn_ratio": 0.02})
    theirs = {one["name"]: one["value"] for one in make_api(other_admin).get("/thresholds").json()}
    assert theirs["steal_warn_ratio"] == 0.01


def test_the_limits_of_a_part_of_the_histories_say_where_each_was_set(api: ApiClient, team: Team) -> None:
    patch(api, {"history_p": 0.0001})
    part = {"metric": "latency_p99_ms", "values": {"history_margin_ratio": 0.08, "history_mutes_improvements": True}}

    answer = api.send("PATCH", "/thresholds/history", part)

    assert answer.status_code == 200, answer.content
    found = {
        one["name"]: (one["value"], one["origin"])
        for one in api.get("/thresholds/history?metric=latency_p99_ms").json()
    }
    assert found["history_p"] == (0.0001, "team")
    assert found["history_margin_ratio"] == (0.08, "metric")
    assert found["history_mutes_improvements"] == (True, "metric")
    assert found["history_window"] == (50, "default")
    others = {
        one["name"]: (one["value"], one["origin"])
        for one in api.get("/thresholds/history?metric=throughput_rps").json()
    }
    assert others["history_margin_ratio"] == (0.02, "metric's default")
    assert HistoryLimits.objects.get().values == part["values"]

    api.send("PATCH", "/thresholds/history", {**part, "values": dict.fromkeys(part["values"])})

    assert not HistoryLimits.objects.exists()
    assert AuditEntry.objects.filter(action="thresholds.change", subject__contains="latency_p99_ms").count() == 2


@pytest.mark.parametrize(
    ("part", "status"),
    [
        ({"values": {"history_p": 0.001}}, 422),
        ({"metric": "latency_p99_ms", "values": {"steal_warn_ratio": 0.02}}, 422),
        ({"metric": "latency_p99_ms", "values": {"history_p": 0.5}}, 422),
        ({"metric": "speed", "values": {"history_p": 0.001}}, 422),
        ({"series": "f" * 64, "values": {"history_p": 0.001}}, 404),
    ],
)
def test_a_limit_that_is_not_of_a_part_of_the_histories_is_refused(
    api: ApiClient, part: dict[str, Any], status: int
) -> None:
    assert api.send("PATCH", "/thresholds/history", part).status_code == status
    assert not HistoryLimits.objects.exists()
