"""The whole way with nothing left out: PostgreSQL, Redis, Celery workers, two SSH hosts, Tomcat and wrk."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from django.conf import settings
from django.db import connection

from benchhub.processes import wait_until
from experiments.documents import save_version
from experiments.host_keys import fingerprint
from experiments.inventory import add_host, approve_key
from experiments.launch import Choice, cancel_run, launch_run
from experiments.models import Application, Host, Member, Recipe, Run, Workload
from experiments.tasks import dispatch
from tests.agents.run_lab import free_port
from tests.agents.tomcat_install import unpack_tomcat
from tests.sshd import SshdHost, exists, running_sshd

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("wrk") is None, reason="wrk is not installed (package wrk)"),
]

SERVLET = "/examples/servlets/servlet/HelloWorldExample"
WRK = """#!/bin/sh
[ "$1" = -v ] || echo "$$" >>"{witness}"
exec wrk "$@"
"""

StartWorker = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SshdHost, SshdHost]]:
    with (
        running_sshd(tmp_path_factory.mktemp("sut")) as sut,
        running_sshd(tmp_path_factory.mktemp("driver")) as driver,
    ):
        yield sut, driver


@pytest.fixture
def start_worker(transactional_db: None, tmp_path: Path) -> Iterator[StartWorker]:
    """Starts a real worker on the test's own database and broker; at the end all of them are killed."""
    database, started = connection.settings_dict, []
    url = f"postgresql://{quote(database['USER'])}@/{database['NAME']}?host={quote(database['HOST'])}"
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("BENCHHUB_", "DJANGO_"))}

    def start(name: str, *, lease_s: int) -> subprocess.Popen[bytes]:
        environment = {
            **plain,
            "DJANGO_SETTINGS_MODULE": "benchhub.settings",
            "DATABASE_URL": url,
            "REDIS_URL": settings.REDIS_URL,
            "SECRET_KEY": "x" * 60,
            "ALLOWED_HOSTS": "localhost",
            "BENCHHUB_KEY_FILE": str(settings.BENCHHUB_KEY_FILE),
            "BENCHHUB_DATA_DIR": str(tmp_path),
            "BENCHHUB_LEASE_S": str(lease_s),
            "BENCHHUB_HEARTBEAT_S": "1",
        }
        command = [sys.executable, "-m", "celery", "-A", "benchhub", "worker", "-Q", "runs,default"]
        with (tmp_path / f"{name}.log").open("wb") as log:
            worker = subprocess.Popen(
                [*command, "-P", "threads", "-c", "2", "-n", f"{name}@test"],
                env=environment, cwd=settings.BASE_DIR, stdout=log, stderr=log,
            )  # fmt: skip
        started.append(worker)
        return worker

    yield start
    for worker in started:
        worker.kill()
        worker.wait()


@pytest.fixture
def witness(tmp_path: Path) -> Path:
    """Gets a line with its pid at each start of the load tool."""
    (tmp_path / "wrk").write_text(WRK.format(witness=tmp_path / "starts"))
    (tmp_path / "wrk").chmod(0o755)
    return tmp_path / "starts"


@pytest.fixture
def choose(admin: Member, hosts: tuple[SshdHost, SshdHost], witness: Path) -> Callable[..., Choice]:
    """Makes the documents of a run on the two hosts."""
    cpus = sorted(os.sched_getaffinity(0))

    def registered(name: str, host: SshdHost) -> Host:
        made = add_host(
            admin, name=name, address=host.address, port=host.port, user=host.user,
            private_key=host.private_key, roles=name,
        )  # fmt: skip
        Host.objects.filter(pk=made.pk).update(offered_host_key=host.host_key)
        approve_key(admin, made, fingerprint(host.host_key))
        return made

    def choose(server: dict[str, Any], phases: list[tuple[str, int]], path: str, steps: list[dict[str, Any]]) -> Choice:
        stages = [{"name": kind, "kind": kind, "duration_s": seconds} for kind, seconds in phases]
        driver = {"kind": "wrk", "connections": 4, "threads": 1, "binary": str(witness.with_name("wrk"))}
        workload = {"driver": driver, "path": path, "phases": stages, "cpus": str(cpus[-1])}
        body = {"server": {"port": free_port(), "cpus": str(cpus[0]), **server}}
        return Choice(
            application=save_version(admin, Application, "server", body),
            recipe=save_version(admin, Recipe, "recipe", {"steps": steps}),
            workload=save_version(admin, Workload, "load", workload),
            sut=registered("sut", hosts[0]),
            driver=registered("driver", hosts[1]),
        )

    return choose


@pytest.fixture
def small(choose: Callable[..., Choice], tmp_path: Path) -> Choice:
    """A server that starts at once, 12 s of load, and a change on the SUT that must be gone afterwards."""
    port = free_port()
    step = {
        "kind": "command",
        "run": 'echo tuned >"$1"',
        "undo": 'rm -f "$1"',
        "observe": 'cat "$1" 2>/dev/null || echo absent',
        "expect": "tuned",
        "arguments": [str(tmp_path / "tuned")],
    }
    server = {
        "kind": "command",
        "argv": [sys.executable, "-m", "http.server", "--bind", "127.0.0.1", str(port)],
        "files": {"index.html": "hello\n"},
        "port": port,
    }
    return choose(server, [("measure", 12)], "/", [step])


def until(condition: Callable[[], bool], *, log: Path) -> None:
    """Wait for it; meanwhile do what the schedule does every five seconds."""

    def nudged() -> bool:
        dispatch()
        return condition()

    if not wait_until(nudged, seconds=120, interval_s=0.2):
        logs = "\n".join(path.read_text()[-3000:] for path in log.glob("*.log"))
        pytest.fail(f"this did not happen in time: {list(Run.objects.values('state', 'outcome', 'failure'))}\n{logs}")


def state_is(run: Run, *states: str) -> Callable[[], bool]:
    return lambda: Run.objects.filter(pk=run.pk, state__in=states).exists()


def assert_whole(run: Run, tmp_path: Path, *, attempts: int) -> None:
    run.refresh_from_db()
    assert (run.outcome, run.failure) == ("succeeded", "")
    assert (run.restore, run.attempts) == ("verified", attempts)
    assert run.validity in ("valid", "suspect"), run.findings
    assert (run.throughput_rps or 0) > 0
    assert run.errors_total == 0
    assert not Host.objects.exclude(state="ready", leased_by=None).exists()
    assert not (tmp_path / "tuned").exists()
    starts = (tmp_path / "starts").read_text().split()
    loads = [event["pid"] for event in run.events.filter(kind="job_started").values_list("payload", flat=True)]
    assert [str(pid) for pid in loads[1:]] == starts  # the server first, then each load, none of them twice
    assert not any(exists(pid) for pid in loads)
    seqs = list(run.events.exclude(kind="samples").order_by("seq").values_list("seq", flat=True))
    assert seqs == sorted(set(seqs))


def test_a_run_from_launch_to_figures(
    admin: Member,
    choose: Callable[..., Choice],
    start_worker: StartWorker,
    hosts: tuple[SshdHost, SshdHost],
    tmp_path: Path,
) -> None:
    tomcat = unpack_tomcat(tmp_path)
    server = {
        "kind": "tomcat",
        "home": str(tomcat),
        "open_examples": True,
        "jvm_options": ["-Xms64m", "-Xmx64m"],
        "ready": {"path": SERVLET, "body_contains": "Hello World", "timeout_s": 90},
    }
    edit = {"op": "set", "select": "Service/Connector[@protocol='HTTP/1.1']", "attributes": {"maxThreads": 9}}
    steps = [{"kind": "limits", "nofile": 4000}, {"kind": "xml_edit", "path": "conf/server.xml", "edits": [edit]}]
    start_worker("one", lease_s=60)
    run = launch_run(admin, choose(server, [("warm_up", 2), ("measure", 4)], SERVLET, steps))
    until(state_is(run, "finished"), log=tmp_path)
    assert_whole(run, tmp_path, attempts=1)
    assert len(run.fingerprint) == 64
    assert run.latency_p99_ms

    assert run.config is not None
    values = run.config.values
    assert values["process.limits.nofile"] == "4000"
    threads = {value for path, value in values.items() if path.endswith("@maxThreads")}
    assert "9" in threads
    assert values["server.version"].startswith("11.0")
    assert values["jvm.version"]
    assert not any(str(hosts[0].home) in value for value in values.values())

    samples = {(series.role, series.channel): series for series in run.samples.all()}
    for key in (("sut", "cpu.busy_ratio"), ("driver", "cpu.busy_ratio"), ("sut", "process.cpu_ratio")):
        assert len(samples[key].at_s) == len(samples[key].values) > 3
    assert (run.sut_cpu_ratio or 0) > 0
    artifacts = {artifact.name: artifact for artifact in run.artifacts.all()}
    assert sorted(artifacts) == ["0-warm_up-wrk.txt", "1-measure-wrk.txt"]
    kept = artifacts["1-measure-wrk.txt"]
    assert kept.sha256 == hashlib.sha256(bytes(kept.content)).hexdigest()
    assert b"Requests/sec:" in bytes(kept.content)
    for host in hosts:
        assert list((host.home / ".benchhub/runs").iterdir()) == []


def worker_pid(run: Run) -> int:
    return int(Run.objects.values_list("owner", flat=True).get(pk=run.pk).split(":")[1])


def test_the_run_of_a_killed_worker_is_adopted_and_its_load_goes_on(
    admin: Member, small: Choice, start_worker: StartWorker, witness: Path, tmp_path: Path
) -> None:
    workers = {worker.pid: worker for worker in (start_worker(name, lease_s=3) for name in ("one", "two"))}
    run = launch_run(admin, small)
    until(lambda: state_is(run, "measuring")() and witness.exists(), log=tmp_path)
    killed = worker_pid(run)
    workers[killed].kill()
    until(lambda: Run.objects.filter(pk=run.pk, attempts=2).exists(), log=tmp_path)
    until(state_is(run, "finished"), log=tmp_path)
    assert_whole(run, tmp_path, attempts=2)
    fences = list(run.events.order_by("seq").values_list("fence", flat=True))
    assert fences == sorted(fences)
    assert len(set(fences)) == 2


def test_a_worker_that_is_told_to_stop_hands_its_run_over_at_once(
    admin: Member, small: Choice, start_worker: StartWorker, witness: Path, tmp_path: Path
) -> None:
    # The lease is longer than this test may take: only a run that is let go can be adopted.
    workers = {worker.pid: worker for worker in (start_worker(name, lease_s=3600) for name in ("one", "two"))}
    run = launch_run(admin, small)
    until(lambda: state_is(run, "measuring")() and witness.exists(), log=tmp_path)
    stopped = workers[worker_pid(run)]
    stopped.send_signal(signal.SIGTERM)
    until(lambda: Run.objects.filter(pk=run.pk, attempts=2).exists(), log=tmp_path)
    until(state_is(run, "finished"), log=tmp_path)
    assert_whole(run, tmp_path, attempts=2)
    with contextlib.suppress(subprocess.TimeoutExpired):
        stopped.wait(timeout=60)
    assert stopped.returncode == 0


def test_a_running_run_is_cancelled(
    admin: Member, small: Choice, start_worker: StartWorker, witness: Path, tmp_path: Path
) -> None:
    start_worker("one", lease_s=60)
    run = launch_run(admin, small)
    until(lambda: state_is(run, "measuring")() and witness.exists(), log=tmp_path)
    cancel_run(admin, run)
    until(state_is(run, "finished"), log=tmp_path)
    run.refresh_from_db()
    assert (run.outcome, run.restore, run.throughput_rps) == ("cancelled", "verified", None)
    assert not (tmp_path / "tuned").exists()
    assert not exists(int(witness.read_text()))
