"""The whole way with nothing left out: PostgreSQL, Redis, Celery workers, two SSH hosts, Tomcat and wrk."""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from agents.servers.postgresql.server import PostgreSQL
from experiments.asking.launching.cancelling import cancel_run
from experiments.asking.launching.choices import Candidate, Choice
from experiments.asking.launching.creating import create_experiment
from experiments.asking.launching.launch import launch_experiment, launch_run
from experiments.models import Application, Host, Recipe, Run, Team, Workload
from experiments.registry.documents.standing_metric import standing_metric
from experiments.registry.documents.versions import save_version
from experiments.registry.experiments.rules import Rules
from experiments.registry.metrics.own_metrics import standing_metrics
from tests import needs
from tests.agents.run_lab import free_port
from tests.agents.servers.test_postgresql import PROGRAMS, require_postgresql
from tests.agents.servers.tomcat_install import unpack_tomcat
from tests.faults.conftest import pair, pulls, sshd_hosts, stage
from tests.faults.programs import WITNESS, write_program
from tests.faults.stage import TOOL_TIMEOUT_S, Actor, Stage, has_event, spoilt, state_is
from tests.sshd import exists

__all__ = ["pair", "pulls", "sshd_hosts", "stage"]

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.slow,
    needs.program("wrk"),
]

SERVLET = "/examples/servlets/servlet/HelloWorldExample"


def assert_whole(run: Run, stage: Stage) -> None:
    run.refresh_from_db()
    assert (run.outcome, run.failure) == ("succeeded", "")
    assert run.restore == "verified"
    assert spoilt(run) == []
    assert (run.throughput_rps or 0) > 0
    assert run.errors_total == 0
    assert not Host.objects.exclude(state="ready", leased_by=None).exists()
    started = run.events.filter(kind="job_started").values_list("payload", flat=True)
    assert not any(exists(event["pid"]) for event in started)
    assert stage.broken() == []


def tomcat_under_load(stage: Stage, pair: tuple[Actor, Actor], folder: Path) -> Choice:
    """Tomcat with a changed server.xml and limits, two seconds of warm-up and four of load.

    The server's CPUs are those of this whole test, so its neighbours do not make the run invalid.
    """
    Team.objects.filter(pk=stage.member.team_id).update(thresholds={"neighbours_invalid_ratio": 1.0})
    sut, driver = pair
    cpus = sorted(os.sched_getaffinity(0))
    server = {
        "kind": "tomcat",
        "home": str(unpack_tomcat(folder)),
        "open_examples": True,
        "jvm_options": ["-Xms64m", "-Xmx64m", "-Xmn1m"],  # so few requests fill it that it pauses on a busy machine too
        "ready": {"path": SERVLET, "body_contains": "Hello World", "timeout_s": 600},
        "port": free_port(),
        "cpus": str(cpus[0]),
    }
    edit = {"op": "set", "select": "Service/Connector[@protocol='HTTP/1.1']", "attributes": {"maxThreads": 9}}
    steps = [{"kind": "limits", "nofile": 4000}, {"kind": "xml_edit", "path": "conf/server.xml", "edits": [edit]}]
    load: dict[str, Any] = {
        "driver": {
            "kind": "wrk",
            "connections": 4,
            "threads": 1,
            "timeout_s": TOOL_TIMEOUT_S,
            "binary": f"{driver.inside}/wrk",
        },
        "path": SERVLET,
        "phases": [
            {"name": "warm-up", "kind": "warm_up", "duration_s": 2},
            {"name": "load", "kind": "measure", "duration_s": 4},
        ],
        "cpus": str(cpus[-1]),
    }
    return Choice(
        application=save_version(stage.member, Application, "tomcat", {"server": server}),
        recipe=save_version(stage.member, Recipe, "threads", {"steps": steps}),
        workload=save_version(stage.member, Workload, "servlet", load),
        sut=sut.row,
        drivers=(driver.row,),
    )


def test_a_run_from_launch_to_figures(stage: Stage, pair: tuple[Actor, Actor], tmp_path: Path) -> None:
    stage.start_worker("one", lease_s=60)
    run = launch_run(stage.member, tomcat_under_load(stage, pair, tmp_path))
    stage.until(stage.all_finished)
    assert_whole(run, stage)
    assert run.attempts == 1
    assert len(run.fingerprint) == 64
    assert run.latency_p50_ms  # the 99th percentile is a figure from a thousand requests on

    assert run.config is not None
    values = run.config.values
    assert values["process.limits.nofile"] == "4000"
    threads = {value for path, value in values.items() if path.endswith("@maxThreads")}
    assert "9" in threads
    assert values["server.version"].startswith("11.0")
    assert values["jvm.version"]
    assert not any(str(pair[0].host.home) in value for value in values.values())

    samples = {(series.role, series.channel): series for series in run.samples.all()}
    for key in (("sut", "cpu.busy_ratio"), ("driver", "cpu.busy_ratio"), ("sut", "process.cpu_ratio")):
        assert len(samples[key].at_s) == len(samples[key].values) > 1
    assert (run.sut_cpu_ratio or 0) > 0
    findings = {finding["check"]: finding for finding in run.findings}
    seen_on_any_linux = ("gc", "neighbours", "swap", "memory", "ports", "clocks", "monitors", "steal")
    assert [check for check in seen_on_any_linux if findings[check]["level"] == "skipped"] == []
    assert findings["gc"]["evidence"]["pauses"] > 0
    assert ("sut", "gc.pause_ms") in samples
    assert ("sut", "jvm.heap_after_gc_bytes") in samples
    artifacts = {artifact.name: artifact for artifact in run.artifacts.all()}
    assert sorted(artifacts) == ["0-warm_up-wrk.txt", "1-measure-wrk.txt", "server.log"]
    kept = artifacts["1-measure-wrk.txt"]
    assert kept.sha256 == hashlib.sha256(bytes(kept.content or b"")).hexdigest()
    assert b"Requests/sec:" in bytes(kept.content or b"")


def test_a_run_of_a_database_is_told_in_transactions(stage: Stage, pair: tuple[Actor, Actor]) -> None:
    server = PostgreSQL(bin_dir=PROGRAMS, port=free_port(), pgbench_scale=1, keep_data=True)
    require_postgresql(server)
    sut, driver = pair
    write_program(driver.root / "pgbench", WITNESS.format(root=driver.inside, program=f"{PROGRAMS}/pgbench"))
    step = {"kind": "properties", "path": "postgresql.conf", "values": {"synchronous_commit": "off"}}
    load = {
        "driver": {"kind": "pgbench", "clients": 2, "binary": f"{driver.inside}/pgbench"},
        "phases": [
            {"name": "warm-up", "kind": "warm_up", "duration_s": 1},
            {"name": "load", "kind": "measure", "duration_s": 4},
        ],
        "cpus": str(max(os.sched_getaffinity(0))),
    }
    described = {**server.model_dump(mode="json"), "cpus": str(min(os.sched_getaffinity(0)))}
    workload = save_version(stage.member, Workload, "pgbench", load)
    choice = Choice(
        application=save_version(stage.member, Application, "postgresql", {"server": described}),
        recipe=save_version(stage.member, Recipe, "commits that wait for no disk", {"steps": [step]}),
        workload=workload,
        sut=sut.row,
        drivers=(driver.row,),
    )
    stage.start_worker("one", lease_s=60)
    run = launch_run(stage.member, choice)
    stage.until(stage.all_finished)
    run.refresh_from_db()
    assert (run.outcome, run.failure, run.restore) == ("succeeded", "", "verified")
    assert stage.broken() == []
    assert run.throughput_rps is None
    assert run.metrics[standing_metric(workload)] > 0
    assert [metric.label for metric in standing_metrics(run.team_id, run.metrics)] == ["Transactions"]
    assert run.config is not None
    assert run.config.values["postgresql.settings.synchronous_commit"] == "off"
    assert len(run.config.values["postgresql.data.sha256"]) == 64
    assert ("sut", "postgresql.committed_transactions_per_s") in {(one.role, one.channel) for one in run.samples.all()}


def test_the_hosts_of_an_experiment_are_checked_once_before_its_first_run(
    stage: Stage, pair: tuple[Actor, Actor]
) -> None:
    chosen = stage.choice(*pair)
    side = Candidate("a", chosen.application, chosen.recipe, chosen.sut, tuple(chosen.drivers), chosen.parameters)
    rules = Rules(canaries_first=True)
    asked = create_experiment(
        stage.member, name="q", workload=chosen.workload, candidates=[side], repetitions=2, rules=rules
    )
    stage.start_worker("one", lease_s=60)
    runs = launch_experiment(stage.member, asked)
    stage.until(stage.all_finished)
    assert {(run.outcome, run.restore) for run in asked.runs.all()} == {("succeeded", "verified")}
    checks = list(asked.host_canaries.order_by("id"))
    assert [(one.host.name, one.check_name) for one in checks] == [
        ("sut", "cpu"),
        ("sut", "disk"),
        ("driver", "cpu"),
        ("driver", "network"),
    ]
    assert all(one.value or one.problem for one in checks)
    first = runs[0].events.get(kind="snapshot_taken", payload__moment="before")
    assert all(one.at < first.at for one in checks)
    assert not Host.objects.exclude(leased_by=None).exists()


def test_the_run_of_a_killed_worker_is_adopted_and_its_load_goes_on(stage: Stage, pair: tuple[Actor, Actor]) -> None:
    for name in ("one", "two"):
        stage.start_worker(name)
    run = stage.launch(*pair, measure_s=12)
    stage.until(has_event(run, "load_started", measured=True))
    stage.kill_worker(stage.worker_of(run))
    stage.until(lambda: Run.objects.filter(pk=run.pk, attempts__gt=1).exists())
    stage.until(state_is(run, "finished"))
    assert_whole(run, stage)
    assert len(set(run.events.values_list("fence", flat=True))) > 1


def test_a_worker_that_is_told_to_stop_hands_its_run_over_at_once(stage: Stage, pair: tuple[Actor, Actor]) -> None:
    # The lease is longer than this test may take: only a run that is let go can be adopted.
    for name in ("one", "two"):
        stage.start_worker(name, lease_s=3600)
    run = stage.launch(*pair, measure_s=12)
    stage.until(has_event(run, "load_started", measured=True))
    stopped = stage.workers[stage.worker_of(run)]
    stopped.send_signal(signal.SIGTERM)
    stage.until(lambda: Run.objects.filter(pk=run.pk, attempts=2).exists())
    stage.until(state_is(run, "finished"))
    assert_whole(run, stage)
    with contextlib.suppress(subprocess.TimeoutExpired):
        stopped.wait(timeout=300)
    assert stopped.returncode == 0


def test_a_running_run_is_cancelled(stage: Stage, pair: tuple[Actor, Actor]) -> None:
    stage.start_worker("one", lease_s=60)
    run = stage.launch(*pair, measure_s=12)
    stage.until(has_event(run, "load_started", measured=True))
    cancel_run(stage.member, run)
    stage.until(state_is(run, "finished"))
    run.refresh_from_db()
    assert (run.outcome, run.restore, run.throughput_rps) == ("cancelled", "verified", None)
    assert stage.broken() == []
