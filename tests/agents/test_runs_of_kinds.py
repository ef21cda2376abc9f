"""Whole runs of servers and of load tools for databases, caches, disks and networks, as far as they are installed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from agents import events as e
from agents.record import Record
from agents.servers.postgresql.server import PostgreSQL
from benchhub import embedded_servers
from tests import needs
from tests.agents.run_lab import Lab, Watched, address_of, assert_left_as_it_was
from tests.agents.servers.test_jar import PROGRAM as JAVA
from tests.agents.servers.test_node import PROGRAM as SCRIPT
from tests.agents.servers.test_postgresql import PROGRAMS, require_postgresql
from tests.agents.servers.test_python import ASGI, WSGI
from tests.agents.specs import make_spec

PHASES = (("warm_up", 1), ("measure", 2))
AMOUNTS = (("warm_up", 200), ("measure", 200))
"""For a tool that ends with its amount of work, as redis-benchmark does: a busy machine may take its time."""
FORCED = re.compile(r"checkpoint starting: \w+ force wait")
WRK = {"kind": "wrk", "connections": 2, "threads": 1}
POSTGRESQL: dict[str, Any] = {
    "kind": "postgresql",
    "settings": {"shared_buffers": "32MB", "log_checkpoints": True, "synchronous_commit": False},
    "ready": {"probe": "tcp", "timeout_s": 600},
}


async def carried_out(
    lab: Lab, server: Mapping[str, Any], driver: Mapping[str, Any], phases: Sequence[tuple[str, int]] = PHASES
) -> tuple[Record, Watched]:
    """A run to its end, with the hosts as they were: a second of warm-up, and what is measured has a usable report."""
    cpus = sorted(os.sched_getaffinity(0))
    tool = {"binary": str(lab.folder / "wrk")} if driver["kind"] == "wrk" else {}
    spec = make_spec(
        server={"port": lab.port, "cpus": str(cpus[0]), **server},
        workload={
            "driver": {**driver, **tool},
            "phases": [{"name": kind, "kind": kind, "duration_s": seconds} for kind, seconds in phases],
            "cpus": str(cpus[-1]),
        },
        sut=address_of("sut", lab.sut),
        drivers=(address_of("driver", lab.driver),),
    )
    watched = Watched(lab)
    record = await watched.run(spec)
    assert record.failed is None, watched.log
    assert_left_as_it_was(lab, record)
    report = record.reports[1].report
    assert report["usable"], report["why"]
    figures = {**report, **{metric["name"]: metric["value"] for metric in report.get("own_metrics", ())}}
    for name in spec.workload.driver.headlines():
        assert figures[name] > 0, name
    assert {name for name, _, _ in spec.workload.driver.own_metrics()} <= figures.keys()
    return record, watched


def page_of(kind: str, folder: Path) -> dict[str, Any]:
    """A server of this kind that answers every request for /; the test is skipped where its program is missing."""
    match kind.partition(" ")[0]:
        case "nginx":
            needs.require_program("nginx")
            return {
                "kind": "nginx",
                "pages": {"index.html": "hello\n"},
                "settings": {"worker_processes": "2"},
                "stub_status": True,
            }
        case "haproxy":
            needs.require_program("haproxy")
            return {"kind": "haproxy", "settings": {"nbthread": "2"}}
        case "node":
            needs.require_program("node")
            (folder / "server.js").write_text(SCRIPT)
            return {"kind": "node", "entry": f"{folder}/server.js", "flags": ["--max-old-space-size=64"]}
        case "jar":
            needs.require_program("java", "javac")
            (folder / "Main.java").write_text(JAVA)
            subprocess.run(["javac", "Main.java"], cwd=folder, check=True, timeout=300)
            subprocess.run(["jar", "cfe", "shop.jar", "Main", "Main.class"], cwd=folder, check=True, timeout=300)
            return {"kind": "jar", "jar": f"{folder}/shop.jar", "framework": "spring", "jvm_options": ["-Xmx64m"]}
    name = kind.partition(" ")[2]
    there = subprocess.run([sys.executable, "-c", f"import {name}"], capture_output=True, check=False).returncode == 0
    needs.require(there, name, f"pip install {name}")
    (folder / "shop.py").write_text(ASGI if name == "uvicorn" else WSGI)
    of_python = {"binary": sys.executable, "server": name, "workers": 2}
    return {"kind": "python", "application": "shop:app", "directory": str(folder), **of_python}


EFFECTIVE: dict[str, tuple[str, str]] = {
    "nginx": ("nginx.workers", "2"),
    "haproxy": ("haproxy.conf.global.nbthread", "2"),
    "node": ("process.arguments[1]", "--max-old-space-size=64"),
    "jar": ("process.arguments[1]", "-jar"),
    "python uvicorn": ("process.arguments[0]", sys.executable),
    "python gunicorn": ("process.arguments[0]", sys.executable),
}


@pytest.mark.parametrize("kind", EFFECTIVE)
async def test_what_answers_pages_is_loaded_and_put_away(lab: Lab, kind: str, tmp_path: Path) -> None:
    needs.require_program("wrk")
    record, watched = await carried_out(lab, {**page_of(kind, tmp_path), "ready": {"timeout_s": 600}}, WRK)
    assert record.configuration is not None
    path, value = EFFECTIVE[kind]
    assert record.configuration.values[path] == value
    assert record.facts["sut"].tool_version
    assert record.reports[1].report["requests"] > 0
    seen = {name for event in watched.of(e.Samples) for name in event.values}
    assert ("nginx.handled_requests_per_s" in seen) is (kind == "nginx")


async def test_locust_asks_for_pages(lab: Lab, tmp_path: Path) -> None:
    needs.require_program("locust")
    driver = {"kind": "locust", "users": 2, "binary": needs.place("locust")}
    record, _ = await carried_out(lab, page_of("nginx", tmp_path), driver)
    assert record.reports[1].report["users"] == 2


def gatling_home() -> str:
    """Where Gatling is; the test is skipped where it is not."""
    needs.require_program("javac")
    home = Path(os.environ.get("BENCHHUB_GATLING_HOME", "/opt/gatling"))
    there = any(home.glob("lib/gatling-app-*.jar"))
    needs.require(there, "Gatling", "the jars of io.gatling.highcharts:gatling-charts-highcharts in /opt/gatling/lib")
    return str(home)


@pytest.mark.parametrize("load", [{"users": 2}, {"offered_rate_rps": 20}], ids=["users", "a rate"])
async def test_gatling_asks_for_pages(lab: Lab, tmp_path: Path, load: dict[str, int]) -> None:
    driver = {"kind": "gatling", "home": gatling_home(), **load}
    record, _ = await carried_out(lab, page_of("nginx", tmp_path), driver, (("warm_up", 2), ("measure", 3)))
    assert record.facts["driver"].tool_version.startswith("3.")
    report = record.reports[1].report
    assert report.get("users") == load.get("users")
    assert report.get("offered_rate_rps") == load.get("offered_rate_rps")


def postgresql(**options: Any) -> dict[str, Any]:
    """The PostgreSQL that BenchHub brings; skipped where it cannot run."""
    server = {**POSTGRESQL, "bin_dir": PROGRAMS, **options}
    require_postgresql(PostgreSQL.model_validate(server))
    return server


@pytest.mark.parametrize(
    "driver",
    [
        {"kind": "pgbench", "clients": 2, "scale": 1, "initialise": True},
        {"kind": "pgbench", "clients": 2, "rate_tps": 50, "builtin": "select-only"},
        {"kind": "sysbench", "test": "oltp_read_write", "threads": 2, "table_rows": 200, "initialise": True},
    ],
    ids=["pgbench", "pgbench at a rate", "sysbench"],
)
async def test_postgresql_is_loaded_from_another_host_after_a_checkpoint(lab: Lab, driver: dict[str, Any]) -> None:
    if driver["kind"] == "pgbench":
        driver = {"binary": f"{PROGRAMS}/pgbench", **driver}
    else:
        needs.require_program(driver["kind"])
    scale = {} if driver.get("initialise") else {"pgbench_scale": 1}
    record, watched = await carried_out(lab, postgresql(**scale), {"user": "bench", "database": "bench", **driver})
    assert record.configuration is not None
    assert record.configuration.values["postgresql.settings.synchronous_commit"] == "off"
    seen = [event.values for event in watched.of(e.Samples) if event.role == "sut"]
    rates = [
        values["postgresql.committed_transactions_per_s"][1]
        for values in seen
        if "postgresql.cache_hit_ratio" in values
    ]
    assert max(rates) > 1
    log = watched.kept["server.log"].decode()
    assert len(FORCED.findall(log)) == 2, "one when it was ready, one after the warm-up"
    metrics = {metric["name"]: metric["unit"] for metric in record.reports[1].report["own_metrics"]}
    assert metrics.get("transactions_per_s") == "transactions/s"


@pytest.mark.parametrize(
    "driver, phases",
    [
        ({"kind": "redis-benchmark", "clients": 2, "requests": 500, "tests": ["set", "get"]}, AMOUNTS),
        ({"kind": "memtier", "connections": 2, "keys": 100}, PHASES),
    ],
    ids=["redis-benchmark", "memtier"],
)
async def test_redis_is_loaded_from_another_host(
    lab: Lab, driver: dict[str, Any], phases: Sequence[tuple[str, int]]
) -> None:
    needs.require_program({"memtier": "memtier_benchmark"}.get(driver["kind"], driver["kind"]))
    server = {"kind": "redis", "binary": str(embedded_servers.redis_program()), "settings": {"hz": "50"}}
    record, _ = await carried_out(lab, {**server, "ready": {"probe": "tcp", "timeout_s": 600}}, driver, phases)
    assert record.configuration is not None
    assert record.configuration.values["redis.settings.hz"] == "50"


@pytest.mark.parametrize(
    "driver",
    [
        {"kind": "fio", "operation": "randrw", "size": "1m", "direct": False},
        {"kind": "sysbench", "test": "cpu"},
        {"kind": "sysbench", "test": "fileio", "file_total": "1M"},
    ],
    ids=["fio", "sysbench cpu", "sysbench fileio"],
)
async def test_the_driver_host_itself_is_measured(lab: Lab, driver: dict[str, Any], tmp_path: Path) -> None:
    needs.require_program(driver["kind"])
    await carried_out(lab, page_of("nginx", tmp_path), driver)
    assert not list(lab.driver.home.rglob("*.fio"))


async def test_iperf3_measures_the_network_to_its_server(lab: Lab) -> None:
    needs.require_program("iperf3")
    argv = [str(shutil.which("iperf3")), "-s", "-p", str(lab.port)]
    server = {"kind": "command", "argv": argv, "ready": {"probe": "tcp", "timeout_s": 600}}
    record, watched = await carried_out(lab, server, {"kind": "iperf3", "streams": 2})
    assert {event.index for event in watched.of(e.LoadReported)} == {0, 1}
    assert record.reports[1].report["connections"] == 2
