"""The work that a client does, from an empty team to a compared run."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from agents.remote.address import fingerprint, new_key_pair
from experiments.models import Experiment, HardwareProfile, Host, Machine, Member, Role, Run, StoredVerdict
from experiments.registry.hosts.inventory import grant
from tests.experiments.api.conftest import ApiClient, MakeApi
from tests.experiments.conftest import (
    APPLICATION,
    HOST_KEY,
    HOST_KEY_FINGERPRINT,
    RECIPE,
    WORKLOAD,
    MakeMember,
    ready_host,
)

NAMES = {"application": "tomcat", "recipe": "limits", "workload": "home page", "sut": "sut-1", "drivers": ["driver-1"]}


def test_from_nothing_to_a_queued_run(api: ApiClient) -> None:
    for name, roles in (("sut-1", "sut"), ("driver-1", "driver")):
        made = api.post("/hosts", {"name": name, "address": "127.0.0.1", "user": "bench", "roles": roles})
        assert (made.status_code, made.json()["state"]) == (201, "new")
        assert made.json()["public_key"].startswith("ssh-ed25519 ")
        Host.objects.filter(name=name).update(offered_host_key=HOST_KEY)
        approved = api.post(f"/hosts/{name}/approve-key", {"fingerprint": HOST_KEY_FINGERPRINT})
        assert (approved.status_code, approved.json()["state"]) == (200, "ready")
    for noun, name, body in (
        ("applications", "tomcat", APPLICATION),
        ("recipes", "limits", RECIPE),
        ("workloads", "home page", WORKLOAD),
    ):
        assert api.put(f"/{noun}/{name}", body).status_code == 201
        assert api.put(f"/{noun}/{name}", body).status_code == 200
    started = api.post("/runs", {**NAMES, "parameters": {"nofile": 4096}, "labels": {"commit": "abc"}, "tags": ["ci"]})
    assert started.status_code == 202, started.content
    run = started.json()
    assert (run["number"], run["state"], run["url"]) == (1, "queued", "http://localhost/t/perf/runs/1/")
    assert run["spec"]["recipe"]["steps"][0]["nofile"] == 4096
    listed = api.get("/runs?label=commit=abc&fields=number,labels").json()
    assert listed["items"] == [{"number": 1, "labels": {"commit": "abc"}}]


def test_a_host_that_changed_its_key_shows_both_and_is_approved_anew(api: ApiClient, stock: dict[str, Any]) -> None:
    line = " ".join(new_key_pair("")[1].split()[:2])
    shown = {"type": "ED25519", "fingerprint": fingerprint(line), "file": "/etc/ssh/ssh_host_ed25519_key.pub"}
    Host.objects.filter(name="sut-1").update(offered_host_key=f"{line}\n", state="unreachable")
    host = api.get("/hosts/sut-1").json()
    assert (host["host_key_changed"], host["offered_keys"]) == (True, [shown])
    assert (host["host_key"]["fingerprint"], host["offered_fingerprint"]) == (HOST_KEY_FINGERPRINT, fingerprint(line))
    refused = api.post("/hosts/sut-1/approve-key", {"fingerprint": HOST_KEY_FINGERPRINT})
    assert (refused.status_code, refused.json()["field"]) == (422, "fingerprint")
    host = api.post("/hosts/sut-1/approve-key", {"fingerprint": fingerprint(line)}).json()
    assert (host["host_key_changed"], host["host_key"], host["offered_keys"]) == (False, shown, [])
    again = api.post("/hosts/sut-1/approve-key", {"fingerprint": fingerprint(line)})
    assert again.status_code == 409


def test_cpu_sets_that_overlap_on_one_machine_are_refused_before_anything_is_queued(
    api: ApiClient, admin: Member, stock: dict[str, Any]
) -> None:
    """Under two names, as a look at both has found."""
    profile = HardwareProfile.objects.create(team=admin.team, digest="four", facts={"cpu.online": "0-3"})
    Host.objects.update(profile=profile, machine=Machine.objects.create(boot_id="b"))
    variant = {name: value for name, value in NAMES.items() if name != "workload"} | {"name": "one"}
    experiment = {"name": "e", "workload": NAMES["workload"], "variants": [variant, variant | {"name": "two"}]}
    for path, body in (("/runs", NAMES), ("/experiments", experiment)):
        refused = api.post(path, body)
        assert (refused.status_code, refused.json()["field"]) == (422, "workload.cpus"), refused.content
        assert (
            "Free would be, for example: the application CPU 0-1 and the workload CPU 2-3." in refused.content.decode()
        )
    assert (Run.objects.count(), Experiment.objects.count()) == (0, 0)


def test_a_run_is_started_again_from_its_own_specification(api: ApiClient, stock: dict[str, Any]) -> None:
    spec = api.post("/runs", {**NAMES, "parameters": {"nofile": 4096}}).json()["spec"]
    again = api.post("/runs", spec)
    assert again.status_code == 202, again.content
    assert again.json()["spec"] == spec
    spec["workload"]["path"] = "/other"
    changed = api.post("/runs", {"spec": spec, "labels": {"why": "path"}}).json()
    assert changed["workload"] == {"name": "home page", "version": 2}
    assert changed["labels"] == {"why": "path"}
    spec["recipe"]["steps"][0]["nofile"] = 9999
    assert api.post("/runs", spec).json()["recipe"] == {"name": "limits", "version": 2}
    spec["sut"]["address"] = "127.0.0.9"
    refused = api.post("/runs", spec)
    assert (refused.status_code, refused.json()["field"]) == (422, "sut.address")


def test_several_driver_hosts_share_the_load_of_a_run(api: ApiClient, admin: Member, stock: dict[str, Any]) -> None:
    for name in ("driver-2", "driver-3"):
        ready_host(admin, name, roles="driver")
    made = api.post("/runs", NAMES | {"drivers": ["driver-2", "driver-1"]})
    assert made.status_code == 202, made.content
    assert made.json()["drivers"] == ["driver-1", "driver-2"]
    assert [driver["name"] for driver in made.json()["spec"]["drivers"]] == ["driver-1", "driver-2"]
    assert api.get("/runs?driver=driver-2").json()["items"][0]["drivers"] == ["driver-1", "driver-2"]
    assert len(api.get("/runs?query=driver:driver").json()["items"]) == 1
    assert api.get("/runs?driver=driver-3").json()["items"] == []
    assert api.get("/runs/1/load-parts").json() == []
    assert api.post("/runs", made.json()["spec"]).status_code == 202
    for drivers, field, words in (
        (["driver-1", "driver-2", "driver-3"], "", "16 connections cannot be divided evenly over 3 driver hosts"),
        (["driver-1", "nobody"], "drivers.1", "no host 'nobody'"),
        (["driver-1", "driver-1"], "", "each driver host can be named only once"),
        (["sut-1"], "drivers", "its role is sut"),
        ([], "drivers", ""),
    ):
        refused = api.post("/runs", NAMES | {"drivers": drivers})
        assert (refused.status_code, refused.json()["field"]) == (422, field), refused.content
        assert words in refused.json()["detail"]


def test_a_run_is_cancelled_and_repeated(api: ApiClient, stock: dict[str, Any]) -> None:
    number = api.post("/runs", NAMES).json()["number"]
    assert api.post(f"/runs/{number}/cancel").json()["outcome"] == "cancelled"
    assert api.post(f"/runs/{number}/cancel").status_code == 409
    assert api.post(f"/runs/{number}/rerun").json()["number"] == number + 1
    for part in ("events", "log", "samples", "metrics", "artifacts"):
        assert api.get(f"/runs/{number}/{part}").status_code == 200, part
    assert api.get(f"/runs/{number}/config").status_code == 404


def test_documents_go_out_as_yaml_and_come_back(api: ApiClient, stock: dict[str, Any]) -> None:
    text = api.get("/recipes/limits/yaml")
    assert text["Content-Type"].startswith("application/yaml")
    same = api.put("/recipes/limits", text.content, content_type="application/yaml")
    assert same.status_code == 200
    changed = api.put("/recipes/limits?note=more", text.content.replace(b"65535", b"70000"), content_type="text/yaml")
    assert (changed.status_code, changed.json()["version"], changed.json()["note"]) == (201, 2, "more")
    found = api.get("/recipes/limits/diff?a=1&b=2").json()
    assert found["differences"] == [{"path": "parameters.nofile.default", "values": ["65535", "70000"]}]
    assert [row["version"] for row in api.get("/recipes/limits/versions").json()] == [2, 1]
    page = api.get("/recipes/limits/versions?limit=1")
    assert ([row["version"] for row in page.json()], page["Link"]) == (
        [2],
        '<http://testserver/api/v1/recipes/limits/versions?limit=1&cursor=2>; rel="next"',
    )
    last = api.get("/recipes/limits/versions?cursor=2&limit=1")
    assert ([row["version"] for row in last.json()], last.has_header("Link")) == ([1], False)
    assert api.get("/recipes/limits?version=1").json()["version"] == 1
    bad = api.put("/recipes/limits", b"steps: [1", content_type="application/yaml")
    assert (bad.status_code, bad.json()["field"]) == (422, "yaml")


def variant(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, **{key: value for key, value in NAMES.items() if key != "workload"}, **more}


@pytest.fixture
def experiment(api: ApiClient, stock: dict[str, Any]) -> dict[str, Any]:
    made = api.post(
        "/experiments",
        {
            "name": "more files",
            "workload": "home page",
            "variants": [variant("default", is_baseline=True), variant("many", parameters={"nofile": 99999})],
            "repetitions": 3,
        },
    )
    assert made.status_code == 201, made.content
    found: dict[str, Any] = made.json()
    return found


def test_an_experiment_is_launched_and_copied_for_the_next_commit(api: ApiClient, experiment: dict[str, Any]) -> None:
    launched = api.post(f"/experiments/{experiment['id']}/launch")
    assert launched.status_code == 202, launched.content
    assert (launched.json()["state"], len(launched.json()["runs"])) == ("running", 6)
    assert api.post(f"/experiments/{experiment['id']}/launch", {}).status_code == 409
    wanted = {"experiment": "more files", "labels": {"commit": "abc"}, "repetitions": 1}
    copied = api.post("/experiments/copies", wanted, headers={"Idempotency-Key": "build-1"}).json()
    again = api.post("/experiments/copies", wanted, headers={"Idempotency-Key": "build-1"}).json()
    assert again["id"] == copied["id"]
    assert copied["id"] != experiment["id"]
    assert (copied["labels"], len(copied["runs"]), copied["variants"]) == ({"commit": "abc"}, 2, experiment["variants"])
    page = api.get("/experiments?name=more files&limit=1").json()
    assert page["items"][0]["id"] == copied["id"]
    assert api.get(f"/experiments?limit=1&cursor={page['next_cursor']}").json()["items"][0]["id"] == experiment["id"]
    cancelled = api.post(f"/experiments/{copied['id']}/cancel").json()
    assert {run["outcome"] for run in cancelled["runs"]} == {"cancelled"}
    verdict = api.get(f"/experiments/{copied['id']}/verdict?wait=120").json()
    assert (verdict["outcome"], verdict["finished"]) == ("error", True)


def test_the_verdict_of_an_experiment_is_that_of_its_primary_metric(api: ApiClient, experiment: dict[str, Any]) -> None:
    path = f"/experiments/{experiment['id']}/verdict"
    assert api.get(path).json()["reasons"] == ["The experiment has not been launched."]
    api.post(f"/experiments/{experiment['id']}/launch")
    assert api.get(f"{path}?wait=0").json()["finished"] is False
    Run.objects.update(state="finished", outcome="succeeded", validity="valid")
    Experiment.objects.update(state="finished")
    baseline, candidate = Experiment.objects.get().variants.order_by("position")
    for metric, outcome in (("throughput_rps", "better"), ("latency_p99_ms", "invalid")):
        StoredVerdict.objects.create(
            experiment_id=experiment["id"],
            baseline=baseline,
            candidate=candidate,
            metric=metric,
            outcome=outcome,
            sentence=f"{metric} is {outcome}.",
            numbers={"estimate_pct": 12.5, "ci95_pct": [10.0, 15.0]},
        )
    verdict = api.get(path).json()
    assert (verdict["outcome"], verdict["reasons"]) == ("pass", ["throughput_rps is better."])
    assert verdict["url"] == f"http://localhost/t/perf/experiments/{experiment['id']}/"
    assert "| many | Throughput | +12.50 % | +10.00 % … +15.00 % | better |" in verdict["markdown"]
    StoredVerdict.objects.filter(metric="throughput_rps").update(outcome="worse_size_uncertain")
    assert api.get(path).json()["outcome"] == "fail"


def test_a_session_acts_in_the_team_that_it_names(
    admin: Member, other_admin: Member, stock: dict[str, Any], client: Client
) -> None:
    Member.objects.create(team=other_admin.team, user=admin.user, role="viewer")
    client.force_login(admin.user)
    assert client.get("/api/v1/me").json()["team"] == "perf"
    assert client.get("/api/v1/me", headers={"X-Team": "others"}).json()["role"] == "viewer"
    assert client.get("/api/v1/hosts?team=others").json() == []
    assert client.get("/api/v1/me?team=nowhere").status_code == 404


def test_a_session_writes_only_with_a_csrf_token(admin: Member, stock: dict[str, Any]) -> None:
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(admin.user)
    refused = browser.post("/api/v1/runs", NAMES, content_type="application/json")
    assert (refused.status_code, refused["Content-Type"]) == (403, "application/problem+json")
    browser.get("/accounts/password/change/")
    token = browser.cookies["benchhub_csrf"].value
    sent = browser.post("/api/v1/runs", NAMES, content_type="application/json", headers={"X-CSRFToken": token})
    assert sent.status_code == 202


def test_a_launcher_launches_where_it_is_granted(
    admin: Member, make_member: MakeMember, make_api: MakeApi, stock: dict[str, Any]
) -> None:
    launcher = make_member(admin.team, Role.LAUNCHER)
    api = make_api(launcher)
    refused = api.post("/runs", NAMES)
    assert (refused.status_code, "grant" in refused.json()["detail"]) == (403, True)
    for host in (stock["sut"], stock["drivers"][0]):
        grant(admin, host, launcher)
    assert api.post("/runs", NAMES).status_code == 202


def test_a_token_never_outlives_its_creators_rights(admin: Member, make_api: MakeApi, stock: dict[str, Any]) -> None:
    api = make_api(admin)
    Member.objects.filter(pk=admin.pk).update(role="viewer")
    assert api.post("/runs", NAMES).status_code == 403
    Member.objects.filter(pk=admin.pk).delete()
    assert api.get("/me").status_code == 401


def test_secrets_are_in_no_answer(api: ApiClient, stock: dict[str, Any]) -> None:
    made = api.post("/tokens", {"name": "ci", "scopes": ["read"]}).json()
    secret = made["text"].split("_")[2]
    for path in ("/tokens", "/audit", "/hosts", "/hosts/sut-1"):
        text = api.get(path).content.decode()
        assert secret not in text
        assert "PRIVATE KEY" not in text
    assert api.send("DELETE", f"/tokens/{made['id']}").json()["revoked_at"]
