"""Every operation of the schema as somebody who may not: anonymous, another team, a viewer, a limited token."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import polars as pl
import pytest
from django.test import Client
from django.utils import timezone

from experiments.api import api as ninja_api
from experiments.asking.prometheus.queries import ChannelQuery
from experiments.asking.prometheus.sources import Wanted as WantedSource
from experiments.asking.prometheus.sources import create_source
from experiments.asking.schedules.saving import Plan, create_schedule
from experiments.judging.alerts.saving_rules import WantedRule, create_rule
from experiments.models import (
    Alert,
    AuditEntry,
    Bisection,
    CapacitySearch,
    DryRun,
    HardwareProfile,
    Host,
    Member,
    PinnedBaseline,
    Recipe,
    Role,
    Run,
    Series,
    ShareLink,
    Token,
    Trend,
    Tuning,
)
from experiments.registry.hosts.reservations import reserve
from experiments.registry.notes.chart_notes import annotate
from experiments.registry.teams.invitations import invite
from experiments.registry.teams.tokens import issue
from experiments.telling.notifying.webhooks import Wanted, create_webhook, send_test
from experiments.telling.run_list.saved_views import save_view
from tests.experiments.api.conftest import ApiClient, MakeApi
from tests.experiments.conftest import APPLICATION, RECIPE, WORKLOAD, MakeMember

SCHEMA = json.loads(json.dumps(ninja_api.get_openapi_schema(path_prefix="/api/v1/")))
OPERATIONS = [
    (method.upper(), path.removeprefix("/api/v1"), said)
    for path, methods in SCHEMA["paths"].items()
    for method, said in methods.items()
]
NAMES = {"application": "tomcat", "recipe": "limits", "workload": "home page", "sut": "sut-1", "drivers": ["driver-1"]}
BODIES: dict[str, Any] = {
    "create_host": {"name": "new", "address": "127.0.0.1", "user": "bench"},
    "change_host": {"labels": {"a": "b"}},
    "approve_host_key": {"fingerprint": "SHA256:x"},
    "create_reservation": {"hosts": ["sut-1"], "until": "2999-01-01T00:00:00Z"},
    "change_reservation": {"until": "2999-01-01T00:00:00Z"},
    "change_run": {"priority": "low"},
    "save_baseline": {"run": 1},
    "set_experiment_baseline": {"variant": "b"},
    **{name: {"runs": [1], "tags": ["nightly"]} for name in ("tag_runs", "untag_runs")},
    **{name: {"runs": [1]} for name in ("archive_runs", "unarchive_runs", "rerun_runs")},
    "create_view": {"name": "mine"},
    "change_view": {"name": "another"},
    **{name: {"text": "a note"} for name in ("write_run_notes", "write_experiment_notes")},
    "create_annotation": {"run": 1, "text": "a note"},
    "change_annotation": {"text": "another"},
    "drain_host": {"drained": True},
    "clear_dirty_host": {"reason": "because"},
    "restore_host": {"force": False},
    "grant_host": {"user": "ada"},
    "save_application": {**APPLICATION, "description": "x"},
    "save_recipe": {**RECIPE, "description": "x"},
    "save_workload": {**WORKLOAD, "description": "x"},
    "create_experiment": {
        "name": "q",
        "workload": "home page",
        "variants": [{"name": "a", **{key: value for key, value in NAMES.items() if key != "workload"}}],
    },
    "launch_experiment": {},
    "change_experiment": {"question": "which?"},
    "start_dry_run": NAMES,
    "forecast_experiment": {
        "name": "q",
        "workload": "home page",
        "variants": [{"name": "a", **{key: value for key, value in NAMES.items() if key != "workload"}}],
    },
    "launch_copy": {"experiment": "q"},
    "create_run": NAMES,
    "create_import": {"kind": "wrk", "text": "x"},
    "create_result": {"tool": "x", "metrics": {"throughput_rps": 1}},
    "add_result_series": {"series": [{"channel": "heap", "at_s": [0], "values": [1]}]},
    "create_results": {"results": [{"tool": "x", "metrics": {"throughput_rps": 1}}]},
    "create_token": {"name": "t", "scopes": ["read"]},
    "change_mails": {"verdicts": False},
    "change_own_team": {"name": "Mine"},
    "change_member": {"role": "viewer"},
    "create_service": {"name": "ci"},
    "create_invitation": {"role": "viewer"},
    "create_recording": {"role": "sut", "kind": "nmon", "text": "x"},
    "import_timers": {"name": "t", "text": "x"},
    "add_run_profile": {"profiler": "perf", "content": "YTtiIDEK"},
    "start_search": {"name": "s", **NAMES, "objective_ms": 5, "low_rps": 100, "high_rps": 1000},
    "start_bisection": {"name": "b", **NAMES, "good_version": 1, "bad_version": 2},
    "start_tuning": {"name": "t", **NAMES, "space": {"parameters": [{"name": "nofile", "low": 1024, "high": 70000}]}},
    "add_tuning_budget": {"runs": 5},
    "leave_out_region": {"mixture": "nofile > 69000"},
    "create_schedule": {"name": "n", "experiment": 1, "cron": "0 0 * * *"},
    "change_schedule": {"labels": {}},
    "create_alert_rule": {"name": "failed", "kind": "run_failed"},
    "change_alert_rule": {"is_active": False},
    "create_webhook": {"name": "w", "url": "https://hooks.example.com/", "events": ["run.finished"]},
    "change_webhook": {"is_active": False},
    "create_prometheus_source": {
        "name": "p",
        "url": "https://p.example.com",
        "queries": [{"channel": "x", "query": "up"}],
    },
    "change_prometheus_source": {"is_active": False},
    "try_prometheus_source": {},
    "change_alert": {"note": "seen"},
    "change_metric": {"followed": True},
    "expect_present_level": {"metric": "throughput_rps"},
    "install_template": {},
    "read_jmeter_plan": {"jmx": "<jmeterTestPlan/>"},
    "set_thresholds": {"values": {}},
    "set_history_limits": {"metric": "throughput_rps", "values": {}},
    "create_share": {"kind": "run", "runs": [1]},
    "move_to_trash": {"runs": [1]},
    "restore_from_trash": {"runs": [1]},
}
QUERIES = {
    "compare_runs": "?baseline=1&candidate=2",
    "compare_timers": "?runs=1,2",
    "compare_functions": "?before=1&after=2",
    "machine_factors": "?runs=1,2",
}
for noun in ("application", "recipe", "workload"):
    QUERIES[f"diff_{noun}"] = "?a=1&b=1"
# Lists and own things that every member of any team may ask for; another team's caller sees its own, which is empty.
OF_THE_CALLER = {"me", "get_mails", "list_metrics", "list_library"}
FOR_ADMINS = {"list_audit", "list_invitations", "list_webhooks", "get_webhook", "list_deliveries"}
# The library is shipped with BenchHub: the same for every team.
SHIPPED = "/library"


def ids(operation: tuple[str, str, Any]) -> str:
    return str(operation[2]["operationId"])


@pytest.fixture
def full(api: ApiClient, admin: Member, stock: dict[str, Any]) -> dict[str, str]:
    """A team in which every address of the schema exists; returns what stands for the names in braces."""
    assert api.post("/runs", NAMES).status_code == 202
    assert api.post("/runs", NAMES).status_code == 202
    made = api.post("/experiments", BODIES["create_experiment"])
    assert made.status_code == 201
    run = Run.objects.get(number=1)
    run.artifacts.create(name="out.txt", sha256="0", content=b"x")
    HardwareProfile.objects.create(team=admin.team, digest="d" * 64, facts={})
    token, _ = issue(admin, name="mine", scopes=["read"])
    parts = ("application", "recipe", "workload", "sut", "drivers")
    same: dict[str, Any] = {name: getattr(run, name) for name in parts}
    search = CapacitySearch.objects.create(
        team=admin.team, name="limit", **same, objective_metric="latency_p99_ms", objective_ms=5,
        start_low_rps=1, start_high_rps=2,
    )  # fmt: skip
    series = Series.objects.create(team=admin.team, fingerprint="f" * 64, application="a", workload="w", tool="wrk")
    trend = Trend.objects.create(series=series, metric="throughput_rps")
    alert = Alert.objects.create(team=admin.team, trend=trend, kind="missing", state="confirmed", before_at_s=0.0)
    PinnedBaseline.objects.create(team=admin.team, name="sut-1", run=run)
    kept = reserve(admin, [run.sut], until=timezone.now() + timedelta(hours=1))  # type: ignore[list-item]
    link = ShareLink.objects.create(team=admin.team, kind="run", subject="run #1", token_digest="0" * 64, sheet={})
    return {
        "number": "1",
        "experiment_id": str(made.json()["id"]),
        "search_id": str(search.pk),
        "alert_id": str(alert.pk),
        "rule_id": str(create_rule(admin, WantedRule("failed", "run_failed")).pk),
        "reservation_id": str(kept.pk),
        **automation_of(admin, same),
        "view_id": str(save_view(admin, "sut-1 only", "sut=sut-1").pk),
        "annotation_id": str(annotate(admin, series, timezone.now(), "a note").pk),
        "digest": "d" * 64,
        "token_id": token.public_id,
        "user": admin.user.get_username(),
        "dry_run_id": str(DryRun.objects.create(team=admin.team, sut=same["sut"], drivers=same["drivers"], spec={}).pk),
        "invitation_id": str(invite(admin, "viewer").invitation.pk),
        "share_id": str(link.pk),
        "fingerprint": "f" * 64,
    }


def automation_of(admin: Member, parts: dict[str, Any]) -> dict[str, str]:
    """A schedule, a bisection, a tuning search, an alert rule, a Prometheus source, and a webhook with a delivery."""
    schedule = create_schedule(admin, Plan("nightly", "0 0 * * *", run=Run.objects.get(number=1)))
    bisection = Bisection.objects.create(team=admin.team, name="which", **parts, candidates=["1", "2"])
    tuning = tuning_of(admin, parts)
    webhook, _ = create_webhook(admin, Wanted("chat", "https://hooks.example.com/", ["run.finished"]))
    delivery = send_test(admin, webhook)
    rule = create_rule(admin, WantedRule("failed runs", "run_failed"))
    found = {
        "schedule": schedule,
        "bisection": bisection,
        "tuning": tuning,
        "webhook": webhook,
        "delivery": delivery,
        "rule": rule,
        "source": create_source(admin, WantedSource("p", "https://prometheus.example.com", [ChannelQuery("up", "up")])),
    }
    return {f"{name}_id": str(one.pk) for name, one in found.items()}


def tuning_of(admin: Member, parts: dict[str, Any]) -> Tuning:
    """A tuning search that has its answer."""
    space = {"parameters": [{"name": "nofile", "low": 1024, "high": 70000}]}
    answer = {"winner": {"nofile": 2048}, "gain_ratio": 0.1, "low_ratio": 0.08, "high_ratio": 0.12}
    return Tuning.objects.create(
        team=admin.team, name="best", **parts, space=space, default={"nofile": 65535}, metric="throughput_rps",
        higher_is_better=True, budget_runs=20, seed=1, outcome="better", state="finished", **answer,
    )  # fmt: skip


def address(path: str, said: Any, values: dict[str, str]) -> str:
    documents = {"applications": "tomcat", "recipes": "limits", "workloads": "home page"}
    name = "out.txt" if "artifacts" in path else documents.get(path.split("/")[1], "sut-1")
    if path.startswith(SHIPPED):
        name = "tomcat-baseline"
    found = path.format(name=name, **values)
    return found + QUERIES.get(said["operationId"], "")


def counts() -> dict[str, int]:
    """What no refused request may change."""
    return {model.__name__: model.objects.count() for model in (Run, Host, Recipe, Token, AuditEntry)}


def calls(full: dict[str, str]) -> Iterator[tuple[str, str, Any, Any]]:
    for method, path, said in OPERATIONS:
        yield method, address(path, said, full), BODIES.get(said["operationId"]), said


def test_every_operation_has_a_scope_and_a_typed_answer() -> None:
    for _, path, said in OPERATIONS:
        assert said["x-scope"] in {"read", "launch", "write", "admin"}, path
        good = [answer for status, answer in said["responses"].items() if status.startswith("2")]
        assert good, path
        assert all(answer["content"] for answer in good), path
        assert said["security"], path


def test_nobody_gets_anything_without_a_token(full: dict[str, str]) -> None:
    before = counts()
    for header in (None, "Bearer ", "Bearer bh_0_0", "Basic YTpi", "Bearer \u00e9"):
        anonymous = ApiClient(header, Client())
        for method, path, body, _ in calls(full):
            answer = anonymous.send(method, path, body)
            assert (answer.status_code, answer["Content-Type"]) == (401, "application/problem+json"), (method, path)
            assert answer["WWW-Authenticate"].startswith("Bearer")
    assert counts() == before


def test_another_team_gets_the_same_answer_as_for_what_does_not_exist(
    full: dict[str, str], other_admin: Member, make_api: MakeApi
) -> None:
    stranger = make_api(other_admin)
    absent = {
        "number": "999",
        "experiment_id": "999999",
        "search_id": "999999",
        "alert_id": "999999",
        "reservation_id": "999999",
        **dict.fromkeys(("schedule_id", "bisection_id", "tuning_id", "webhook_id", "delivery_id", "rule_id"), "999999"),
        "source_id": "999999",
        **dict.fromkeys(("annotation_id", "view_id", "dry_run_id"), "999999"),
        "digest": "e" * 64,
        "token_id": "00",
        "user": "nobody",
        "invitation_id": "999999",
        "share_id": "999999",
        "fingerprint": "f" * 64,
    }
    before = counts()
    for method, path, said in OPERATIONS:
        if said["operationId"].startswith(("save_", "create_")) or "{" not in path or "{fingerprint}" in path:
            continue
        if path.startswith(SHIPPED):
            continue
        body = BODIES.get(said["operationId"])
        yours = stranger.send(method, address(path, said, full), body)
        nothing = path.format(name="no such", **absent) + QUERIES.get(said["operationId"], "")
        nobodys = stranger.send(method, nothing, body)
        assert (yours.status_code, nobodys.status_code) == (404, 404), (method, path, yours.content)
        if not any(word in path for word in ("{number}", "_id}")):
            assert yours.content == nobodys.content, path
        else:  # they repeat the number that was asked for
            assert yours.json()["detail"].split()[:4] == nobodys.json()["detail"].split()[:4]
    assert counts() == before


def readable(content: bytes) -> str:
    """What an answer says, also when it is a compressed table."""
    return str(pl.read_parquet(content).to_dicts()) if content.startswith(b"PAR1") else content.decode()


def test_lists_of_another_team_are_empty(full: dict[str, str], other_admin: Member, make_api: MakeApi) -> None:
    stranger = make_api(other_admin, "read")
    for method, path, said in OPERATIONS:
        if method != "GET" or "{" in path or said["x-scope"] != "read" or said["operationId"] in OF_THE_CALLER:
            continue
        answer = stranger.get(address(path, said, full))
        parts: Any = getattr(answer, "streaming_content", None) or [answer.content]
        text = readable(b"".join(parts))
        assert answer.status_code in {200, 422}, path  # 422: run numbers that do not exist here
        for secret in ("sut-1", "limits", "home page", '"ada"', "tomcat"):
            assert secret not in text, (path, text)


def test_names_of_another_team_cannot_be_used(full: dict[str, str], other_admin: Member, make_api: MakeApi) -> None:
    stranger = make_api(other_admin)
    for path, body, field in (
        ("/runs", NAMES, "application"),
        ("/experiments", BODIES["create_experiment"], "workload"),
        ("/experiments/copies", {"experiment": "q"}, "experiment"),
        ("/imports", {"kind": "wrk", "text": "x", "recipe": "limits"}, "text"),
        ("/hosts", {"name": "x", "address": "127.0.0.1", "user": "b", "jump": "sut-1"}, "jump"),
        ("/hosts", {"name": "x", "address": "127.0.0.1", "user": "b", "team": 1}, "team"),
    ):
        answer = stranger.post(path, body)
        if path == "/experiments":
            assert (answer.status_code, answer.json()["field"]) in {(422, "workload"), (422, "variants.0.application")}
        else:
            assert (answer.status_code, answer.json()["field"]) == (422, field), answer.content


def test_a_token_without_the_scope_is_refused(full: dict[str, str], admin: Member, make_api: MakeApi) -> None:
    before = counts()
    for scope in ("read", "launch", "write", "admin"):
        others = [one for one in ("read", "launch", "write", "admin") if one != scope]
        limited = make_api(admin, *others)
        before["Token"] += 1
        before["AuditEntry"] += 1
        for method, path, body, said in calls(full):
            if said["x-scope"] == scope:
                answer = limited.send(method, path, body)
                assert (answer.status_code, scope in answer.json()["detail"]) == (403, True), (method, path)
    assert counts() == before


def test_a_viewer_reads_and_changes_nothing(full: dict[str, str], admin: Member, make_member: MakeMember) -> None:
    viewer = make_member(admin.team, Role.VIEWER)
    token, text = issue(viewer, name="all", scopes=["read"])
    Token.objects.filter(pk=token.pk).update(scopes=["read", "launch", "write", "admin"])
    client = ApiClient(f"Bearer {text}", Client())
    before = counts()
    for method, path, body, said in calls(full):
        answer = client.send(method, path, body)
        name = said["operationId"]
        if method == "GET" and name not in FOR_ADMINS:
            assert answer.status_code in {200, 404, 409}, (path, answer.content)  # 409: not enough data yet
        elif name == "create_token":
            assert answer.status_code == 201
            before["Token"] += 1
            before["AuditEntry"] += 1
        elif name == "create_view":
            assert answer.status_code == 201
        elif name == "change_mails":  # the viewer's own
            assert answer.status_code == 200
        elif name in {"revoke_token", "change_view", "delete_view"}:  # somebody else's
            assert answer.status_code == 404
        else:
            assert answer.status_code == 403, (method, path, answer.content)
    assert counts() == before


@pytest.mark.parametrize("path", ["/nothing", "/runs/x", "/runs/1/nothing", "/hosts/a/b/c", "", "/../admin"])
def test_an_unknown_address_is_a_problem_too(client: Client, path: str) -> None:
    answer = client.get(f"/api/v1{path}")
    assert answer.status_code in {404, 301}
    if path and answer.status_code == 404:
        assert answer["Content-Type"] == "application/problem+json"
