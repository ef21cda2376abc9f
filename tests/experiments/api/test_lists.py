"""Lists over the API: chosen fields, conditions, many runs at once, CSV that is sent while it is read."""

from __future__ import annotations

from typing import Any

import pytest

from experiments.api.shapes import RunRow
from experiments.asking.launching.choices import Choice
from experiments.asking.launching.launch import launch_run
from experiments.models import AuditEntry, Experiment, Member, Role, Run
from tests.experiments.api.conftest import ApiClient, MakeApi
from tests.experiments.api.test_auth import BODIES
from tests.experiments.conftest import MakeMember


@pytest.fixture
def runs(admin: Member, stock: dict[str, Any]) -> None:
    for number in range(1, 5):
        launch_run(admin, Choice(**stock))
        figures = {"throughput_rps": number * 100.0, "errors_total": number}
        Run.objects.filter(number=number).update(**figures, queued_at=f"2026-01-0{number}T12:00:00Z")
    Run.objects.filter(number=1).update(state="finished", outcome="failed")


@pytest.mark.parametrize(
    "query, numbers",
    [
        ("throughput_rps__gte=200&throughput_rps__lte=300", [3, 2]),
        ("errors_total__lte=1.5", [1]),
        ("number__gte=3", [4, 3]),
        ("number__in=1,4,99", [4, 1]),
        ("number__gte=1e300", []),
        ("state__in=finished,measuring", [1]),
        ("outcome__in=failed", [1]),
        ("recipe__in=limits,other&sut__in=sut-1", [4, 3, 2, 1]),
        ("driver__in=other", []),
        ("queued_at__gte=2026-01-03&queued_at__lte=2026-01-03T23:00:00%2B00:00", [3]),
        ("experiment__in=1,2", []),
        ("latency_p99_ms__gte=0", []),
    ],
)
def test_conditions_narrow_the_list_and_its_csv(api: ApiClient, runs: None, query: str, numbers: list[int]) -> None:
    assert [run["number"] for run in api.get(f"/runs?{query}").json()["items"]] == numbers
    lines = b"".join(api.get(f"/runs/csv?{query}&columns=number").streaming_content).decode().split()  # type: ignore[attr-defined]
    assert lines == ["number", *map(str, numbers)]


def test_a_run_of_the_list_says_the_same_as_the_run_itself(api: ApiClient, stock: dict[str, Any]) -> None:
    experiment = api.post("/experiments", BODIES["create_experiment"]).json()["id"]
    api.post(f"/experiments/{experiment}/launch")
    for listed in api.get("/runs").json()["items"]:
        whole = api.get(f"/runs/{listed['number']}").json()
        assert listed == {name: whole[name] for name in RunRow.model_fields}
        names = ("application", "recipe", "workload", "sut", "drivers", "variant", "created_by")
        assert all(listed[name] for name in names)


@pytest.mark.parametrize(
    "path, field",
    [
        ("/runs?throughput_rps__gte=fast", "throughput_rps__gte"),
        ("/runs?throughput_rps__gte=nan", "throughput_rps__gte"),
        ("/runs?number__in=1,x", "number__in"),
        ("/runs?queued_at__gte=soon", "queued_at__gte"),
        ("/runs?fields=number,colour", "fields"),
        ("/runs/1?fields=colour", "fields"),
        ("/hosts?fields=private_key", "fields"),
        ("/experiments?fields=colour", "fields"),
        ("/experiments?created_at__lte=x", "created_at__lte"),
        ("/recipes?fields=body", "fields"),
        ("/alerts?fields=x", "fields"),
    ],
)
def test_a_condition_or_field_that_there_is_not_is_named(api: ApiClient, runs: None, path: str, field: str) -> None:
    answer = api.get(path)
    assert (answer.status_code, answer.json()["field"]) == (422, field), answer.content


def test_answers_hold_the_chosen_fields_only(api: ApiClient, runs: None) -> None:
    assert api.get("/runs?fields=number,sut&limit=1").json()["items"] == [{"number": 4, "sut": "sut-1"}]
    assert api.get("/runs/2?fields=number,%20state").json() == {"number": 2, "state": "queued"}
    assert api.get("/hosts?fields=name&roles__in=sut,both").json() == [{"name": "sut-1"}]
    assert api.get("/hosts?fields=name&state__in=dirty").json() == []
    assert api.get("/recipes?fields=name,version").json() == [{"name": "limits", "version": 1}]
    made = api.post("/experiments", BODIES["create_experiment"]).json()["id"]
    assert api.get(f"/experiments/{made}?fields=id,state").json() == {"id": made, "state": "draft"}
    assert api.get("/experiments?fields=id&state__in=draft,running&name__in=q").json() == {
        "items": [{"id": made}],
        "next_cursor": "",
    }
    Experiment.objects.update(created_at="2026-01-01T00:00:00Z")
    assert api.get("/experiments?created_at__gte=2026-01-02").json()["items"] == []


@pytest.mark.parametrize(
    "kind, name", [("applications", "tomcat"), ("recipes", "limits"), ("workloads", "home%20page")]
)
def test_an_archived_document_is_listed_apart_and_put_back(
    api: ApiClient, admin: Member, make_api: MakeApi, make_member: MakeMember, stock: Any, kind: str, name: str
) -> None:
    gone = api.send("DELETE", f"/{kind}/{name}")
    assert (gone.status_code, gone.json()["archived"]) == (200, True)
    assert (len(api.get(f"/{kind}").json()), len(api.get(f"/{kind}?archived=true").json())) == (0, 1)
    launcher = make_api(make_member(admin.team, Role.LAUNCHER))
    assert launcher.post(f"/{kind}/{name}/unarchive").status_code == 403
    stale = {"If-Match": '"0"'}
    assert api.post(f"/{kind}/{name}/unarchive", headers=stale).status_code == 412
    back = api.post(f"/{kind}/{name}/unarchive", headers={"If-Match": gone["ETag"]})
    assert (back.status_code, back.json()["archived"]) == (200, False)
    assert (len(api.get(f"/{kind}").json()), len(api.get(f"/{kind}?archived=true").json())) == (1, 0)
    assert AuditEntry.objects.order_by("-pk")[0].action == f"{kind.removesuffix('s')}.unarchive"
    assert api.post(f"/{kind}/no-such/unarchive").status_code == 404


def test_many_runs_are_changed_at_once(api: ApiClient, runs: None) -> None:
    assert api.post("/runs/tag", {"runs": [1, 2], "tags": ["x"]}).json() == {"changed": [1, 2]}
    assert api.post("/runs/untag", {"runs": [1, 3], "tags": ["x"]}).json() == {"changed": [1]}
    assert api.post("/runs/archive", {"runs": [1]}).json() == {"changed": [1]}
    assert [run["number"] for run in api.get("/runs?archived=true").json()["items"]] == [1]
    assert api.post("/runs/unarchive", {"runs": [1]}).json() == {"changed": [1]}
    key = {"Idempotency-Key": "k"}
    again = [api.post("/runs/rerun", {"runs": [2, 1]}, headers=key).json() for _ in range(2)]
    assert (again, Run.objects.count()) == ([{"queued": [5, 6]}] * 2, 6)


@pytest.mark.parametrize(
    "body, status, field",
    [
        ({"runs": [], "tags": ["x"]}, 422, "runs"),
        ({"runs": [1, True], "tags": ["x"]}, 422, "runs.1"),
        ({"runs": [1], "tags": []}, 422, "tags"),
        ({"runs": [1], "tags": ["two words"]}, 422, "tags"),
        ({"runs": [1, 99], "tags": ["x"]}, 404, "runs"),
        ({"runs": list(range(1, 502)), "tags": ["x"]}, 422, "runs"),
    ],
)
def test_a_bulk_change_that_cannot_be_changes_nothing(
    api: ApiClient, runs: None, body: Any, status: int, field: str
) -> None:
    answer = api.post("/runs/tag", body)
    assert (answer.status_code, answer.json()["field"]) == (status, field), answer.content
    assert not Run.objects.filter(tags__contains=["x"]).exists()
