"""What the pages have and programs get as well: reports as PDF, another question for an experiment, dry runs."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import polars as pl
import pytest
from django.test import Client

from experiments.models import AuditEntry, DryRun, Experiment, Member, Role
from experiments.registry.teams.tokens import issue
from tests.experiments.api.conftest import ApiClient, MakeApi
from tests.experiments.api.test_auth import BODIES, NAMES
from tests.experiments.conftest import MakeMember
from tests.experiments.mcp.conftest import Caller


@pytest.fixture
def draft(api: ApiClient, stock: dict[str, Any]) -> str:
    """The address of an experiment that was not launched."""
    return f"/experiments/{api.post('/experiments', BODIES['create_experiment']).json()['id']}"


def test_reports_come_as_pdf_under_the_name_that_the_pages_give_them(api: ApiClient, draft: str) -> None:
    number = api.post("/results", BODIES["create_result"]).json()["number"]
    run = api.get(f"/runs/{number}/report?format=pdf")
    assert (run.status_code, run["Content-Type"], run.content[:5]) == (200, "application/pdf", b"%PDF-")
    assert run["Content-Disposition"] == f'attachment; filename="run-{number}.pdf"'
    assert api.get(f"{draft}/report?format=pdf").status_code == 409
    assert api.post(f"{draft}/launch", {}).status_code == 202
    whole = api.get(f"{draft}/report?format=pdf")
    assert (whole.status_code, whole.content[:5]) == (200, b"%PDF-")


def test_a_draft_is_changed_and_what_its_runs_were_asked_for_is_not(api: ApiClient, draft: str) -> None:
    wanted = {"name": "more files", "question": "Faster?", "labels": {"commit": "a1"}, "repetitions": 7,
              "order": "interleaved", "margin_ratio": 0.02, "primary_metric": "latency_p99_ms",
              "gate_metrics": ["throughput_rps"]}  # fmt: skip
    changed = api.send("PATCH", draft, wanted)
    assert changed.status_code == 200, changed.content
    assert {name: changed.json()[name] for name in wanted} == wanted
    assert AuditEntry.objects.filter(action="experiment.change").get().before["name"] == "q"
    assert api.send("PATCH", draft, wanted).status_code == 200  # the same once more is no change
    assert AuditEntry.objects.filter(action="experiment.change").count() == 1
    assert api.post(f"{draft}/launch", {}).status_code == 202
    late = api.send("PATCH", draft, {"margin_ratio": 0.1})
    assert (late.status_code, late.json()["field"]) == (409, "margin_ratio"), late.content
    assert api.send("PATCH", draft, {"name": "open files", "question": ""}).json()["name"] == "open files"
    assert Experiment.objects.get().margin_ratio == 0.02


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"name": "12"}, "name"),
        ({"labels": {"a b": "c"}}, "labels"),
        ({"primary_metric": "no_such"}, "primary_metric"),
        ({"gate_metrics": ["no_such"]}, "gate_metrics"),
        ({"order": "none"}, "order"),
        ({"repetitions": 0}, "repetitions"),
        ({"recipe": "limits"}, "recipe"),
    ],
)
def test_a_change_that_does_not_fit_names_its_field_and_changes_nothing(
    api: ApiClient, draft: str, change: dict[str, Any], field: str
) -> None:
    before = api.get(draft).json()
    refused = api.send("PATCH", draft, {"question": "another", **change})
    assert (refused.status_code, refused.json()["field"]) == (422, field), refused.content
    assert api.get(draft).json() == before


def test_a_dry_run_is_asked_for_and_looked_at_by_who_may_launch_there(
    api: ApiClient, stock: dict[str, Any], admin: Member, make_member: MakeMember, make_api: MakeApi
) -> None:
    asked = api.post("/runs/dry-runs", NAMES)
    assert (asked.status_code, asked.json()["state"], asked.json()["plan"]) == (202, "pending", None), asked.content
    found = DryRun.objects.get()
    found.state, found.message, found.hint = DryRun.State.FAILED, "The host is busy.", "Ask again."
    found.save()
    answer = api.get(f"/runs/dry-runs/{found.pk}").json()
    assert (answer["state"], answer["message"], answer["hint"]) == ("failed", "The host is busy.", "Ask again.")
    assert api.post("/runs/dry-runs", {**NAMES, "recipe": "no such"}).json()["field"] == "recipe"
    viewer = make_api(make_member(admin.team, Role.VIEWER, "vera"), "read")
    assert viewer.post("/runs/dry-runs", NAMES).status_code == 403
    assert api.get("/queue").json()["waiting"] == []


def test_a_label_with_a_comma_in_its_value_is_found(api: ApiClient) -> None:
    for value in ("linux,x86", "linux", "a, b"):
        assert api.post("/results", {**BODIES["create_result"], "labels": {"os": value, "n": "1"}}).status_code == 201
    for asked, numbers in (
        ("label=os=linux,x86", [1]),
        ("label=os=linux", [2]),
        ("label=os=a,%20b", [3]),
        ("label=os=linux,x86&label=n=1", [1]),
        ("label=os=linux,x86,n=1", []),
        ("label=n=1&sort=number", [1, 2, 3]),
        ("label=os=linux&label=os=a,%20b", []),
    ):
        found = api.get(f"/runs?{asked}").json()
        assert [run["number"] for run in found["items"]] == numbers, asked


def test_a_value_with_commas_and_an_equals_sign_is_one_value_wherever_runs_are_listed(
    api: ApiClient, admin: Member, client: Client
) -> None:
    log = "-Xlog:gc*,safepoint=info:file=x"
    for n, value in (("1", log), ("2", "-Xlog:gc*")):
        body = {"labels": {"opts": value, "n": n}, "parameters": {"jvm.opts": value, "n": n}}
        assert api.post("/results", {**BODIES["create_result"], **body}).status_code == 201
    for names in ({"label": f"opts={log}"}, {"param": f"jvm.opts={log}"}, {"param": [f"jvm.opts={log}", "n=1"]}):
        query = urlencode(names, doseq=True)
        assert [run["number"] for run in api.get(f"/runs?{query}").json()["items"]] == [1]
        assert api.get(f"/runs/csv?{query}&columns=number").getvalue().decode().split() == ["number", "1"]
        assert pl.read_parquet(api.get(f"/runs.parquet?{query}").getvalue())["number"].to_list() == [1]
    caller = Caller(f"Bearer {issue(admin, name='assistant', scopes=['read'])[1]}")
    found = caller.call("search_runs", label=[f"opts={log}", "n=1"])
    assert [run["number"] for run in found["runs"]] == [1]
    client.force_login(admin.user)
    # The page has one field, in which quotation marks hold the value together; a view may be saved from either.
    for query in (urlencode({"label": f'"opts={log}",n=1'}), urlencode({"label": [f"opts={log}", "n=1"]}, doseq=True)):
        view = api.post("/views", {"name": "gc", "query": query}).json()
        assert view["query"] == urlencode({"label": f'"opts={log}",n=1'})
        for asked in (query, view["query"]):
            page = client.get(f"/t/{admin.team.slug}/runs/csv?{asked}&columns=number").getvalue().decode()
            assert [line.partition(",")[0] for line in page.split()] == ["number", "1"]
