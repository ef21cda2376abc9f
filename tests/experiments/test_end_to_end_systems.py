"""A system of several hosts with nothing left out: PostgreSQL, Redis, a Celery worker, nginx and what is behind it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from experiments.asking.launching.choices import Choice
from experiments.asking.launching.launch import launch_run
from experiments.models import Application, Host, Recipe, Run, Team, Workload
from experiments.registry.documents.versions import save_version
from lab.lab import Lab
from tests import needs
from tests.faults.conftest import admin, make_member, pulls, stage, team
from tests.faults.lab_run import INSIDE
from tests.faults.stage import TOOL_TIMEOUT_S, Stage, has_event, spoilt
from tests.lab.conftest import running_lab

__all__ = ["admin", "make_member", "pulls", "stage", "team"]

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.lab,
    pytest.mark.slow,
    needs.program("wrk"),
    needs.program("nginx"),
]

ROLES = {"sut": "sut", "app": "sut", "driver": "driver"}
APP = {
    "kind": "command",
    "argv": ["/usr/bin/python3", "-u", "-m", "http.server", "--bind", "{address}", "{port}"],
    "files": {"index.html": "hello from behind\n"},
    "port": 9000,
    "ready": {"body_contains": "hello", "timeout_s": 600},
}
WEB = {
    "kind": "nginx",
    "port": 8080,
    "proxy_to": ["${app.address}:${app.port}"],
    "ready": {"body_contains": "hello", "timeout_s": 600},
}
STEPS = [
    {"kind": "limits", "nofile": 4000},
    {"kind": "sysctl", "values": {"net.ipv4.tcp_fin_timeout": "31"}, "on": "app"},
]


@pytest.fixture
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with running_lab(tmp_path_factory.mktemp("lab"), *ROLES) as lab:
        yield lab


def system(stage: Stage, lab: Lab) -> Choice:
    """An nginx on one host before a small server on another, both tuned, and a load of three seconds."""
    hosts = {}
    for name, roles in ROLES.items():
        host = lab.host(name)
        root = host.disk / "fs" / INSIDE.strip("/")
        actor = stage.add_host(name, host, roles=roles, root=root, inside=INSIDE, data_address=host.data_address)
        hosts[name] = actor.row
    member = stage.member
    load = {
        "driver": {
            "kind": "wrk",
            "connections": 2,
            "threads": 1,
            "timeout_s": TOOL_TIMEOUT_S,
            "binary": f"{INSIDE}/wrk",
        },
        "path": "/index.html",
        "phases": [{"name": "load", "kind": "measure", "duration_s": 3}],
    }
    application = {"server": WEB, "role": "web", "members": [{"role": "app", "server": APP}]}
    return Choice(
        application=save_version(member, Application, "two tiers", application),
        recipe=save_version(member, Recipe, "of both", {"steps": STEPS}),
        workload=save_version(member, Workload, "index", load),
        sut=hosts["sut"],
        drivers=(hosts["driver"],),
        members={"app": hosts["app"]},
    )


def test_a_system_is_run_by_a_worker_and_one_whose_member_is_killed_says_so(stage: Stage, lab: Lab) -> None:
    Team.objects.filter(pk=stage.member.team_id).update(thresholds={"neighbours_invalid_ratio": 1.0})
    stage.start_worker("one", lease_s=60)
    choice = system(stage, lab)
    whole = launch_run(stage.member, choice)
    stage.until(stage.all_finished)
    whole.refresh_from_db()
    assert (whole.outcome, whole.failure, whole.restore) == ("succeeded", "", "verified")
    assert spoilt(whole) == []
    assert (whole.throughput_rps or 0) > 0
    assert whole.config is not None
    assert {"nginx.version", "process.limits.nofile", "members.app.process.limits.nofile"} <= whole.config.values.keys()
    assert whole.config.values["members.app.sysctl.net.ipv4.tcp_fin_timeout"] == "31"
    samples = set(whole.samples.values_list("role", "channel"))
    assert {("sut", "process.cpu_ratio"), ("app", "process.cpu_ratio"), ("app", "context_switches_per_s")} <= samples
    found = {finding["check"]: finding for finding in whole.findings}
    assert "app_steal_ratio" in found["steal"]["evidence"]
    assert {"web_cpu_ratio", "app_cpu_ratio", "app_own_cpu_ratio"} <= found["system_limit"]["evidence"].keys()

    killed = launch_run(stage.member, choice)
    stage.until(has_event(killed, "load_started", measured=True))
    started = killed.events.get(kind="job_started", payload__name="server-app")
    lab.host("app").exec("kill", "-KILL", str(started.payload["pid"]))
    stage.until(stage.all_finished)
    killed.refresh_from_db()
    assert (killed.outcome, killed.restore) == ("failed", "verified")
    assert "app on app ended during the load with exit status 137" in killed.failure
    proven = {one.payload.get("role", "sut") for one in killed.events.filter(kind="snapshot_taken")}
    assert proven == {"sut", "app"}
    for name in ROLES:
        assert not [one.name for one in lab.host(name).processes()]
    assert not Host.objects.exclude(state="ready", leased_by=None).exists()
    assert Run.objects.count() == 2
    assert stage.broken() == []
