"""The load tools for databases, caches, disks and networks that are installed here, run for real."""

from __future__ import annotations

import http.server
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from agents.drivers.base.driver import Driver, Target
from agents.results.report import LoadReport
from benchhub import embedded, embedded_servers
from tests import needs
from tests.agents.drivers.plain_benchmarks import TARGET, make, own
from tests.agents.run_lab import free_port

PGBENCH = str(embedded_servers.postgres_programs() / "pgbench")


AT_MOST_S = 200
"""For an amount of work, however long a busy machine takes to do it."""


def run(driver: Driver, target: Target, folder: Path, seconds: int = 1) -> LoadReport:
    """The real tool for some seconds, as it measures."""
    for name, text in driver.files().items():
        (folder / name).write_text(text)
    done = subprocess.run(
        driver.command(target, seconds).argv,
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=300,
        check=False,
    )
    version = subprocess.run(driver.version_command().argv, capture_output=True, check=True).stdout
    assert driver.parse_version(version)
    return driver.parse(done.stdout + done.stderr)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("fio", {"size": "1m", "direct": False}),
        ("fio", {"size": "1m", "direct": False, "operation": "randrw", "jobs": 2}),
        ("fio", {"job": "[a]\nrw=read\nsize=1m\ntime_based\nruntime=${BENCHHUB_DURATION_S}\n"}),
        ("sysbench", {}),
        ("sysbench", {"test": "memory"}),
        ("sysbench", {"test": "fileio", "file_total": "1M"}),
    ],
)
def test_the_real_tools_load_the_host_that_they_are_on(kind: str, options: dict[str, Any], tmp_path: Path) -> None:
    needs.require_program(kind)
    driver = make(kind, **options)
    if driver.prepares:
        warming = driver.warming_up().command(TARGET, 1)
        subprocess.run(warming.argv, capture_output=True, cwd=tmp_path, timeout=300, check=True)
    report = run(driver, TARGET, tmp_path)
    assert report.usable, report.why
    assert report.own_metrics[0].value > 0
    assert {name for name, _, _ in driver.own_metrics()} <= own(report).keys()


@pytest.fixture(scope="module")
def database() -> Iterator[Target]:
    """A PostgreSQL of its own that takes connections at a port of this machine."""
    port = str(free_port())
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory(prefix="benchhub-pgbench-") as folder:
        patch.setenv("PGPORT", port)  # the server and whoever looks for it
        patch.setitem(embedded_servers.POSTGRES_SETTINGS, "listen_addresses", "127.0.0.1")
        server = embedded_servers.PostgresServer(embedded.Places(Path(folder)))
        server.start()
        try:
            yield Target(f"tcp://127.0.0.1:{port}")
        finally:
            server.stop()


@pytest.mark.parametrize(
    "options",
    [
        {"builtin": "select-only", "query_mode": "prepared"},
        {"rate_tps": 100, "latency_limit_ms": 100, "progress_s": 1},
        {"script": "SELECT count(*) FROM pgbench_accounts WHERE aid <= :scale;\n", "reconnect": True},
    ],
)
def test_the_real_pgbench_makes_its_tables_and_measures(
    options: dict[str, Any], database: Target, tmp_path: Path
) -> None:
    driver = make(
        "pgbench", binary=PGBENCH, user=embedded.DATABASE_USER, database="postgres", initialise=True, **options
    )
    if "script" in options:
        (tmp_path / "transaction.sql").write_text(driver.files()["transaction.sql"])
    warming = driver.warming_up()
    done = subprocess.run(
        warming.command(database, 1).argv, capture_output=True, text=True, cwd=tmp_path, timeout=300, check=True
    )
    for report in (warming.parse(done.stdout + done.stderr), run(driver, database, tmp_path)):
        assert report.usable, report.why
        assert report.requests
        assert report.own_metrics[0].name == "transactions_per_s"
        assert report.own_metrics[0].value > 0


def test_the_real_pgbench_says_that_there_is_no_such_database(database: Target, tmp_path: Path) -> None:
    report = run(make("pgbench", binary=PGBENCH, user=embedded.DATABASE_USER, database="nosuch"), database, tmp_path)
    assert not report.complete
    assert 'database "nosuch" does not exist' in (report.error or "")


@contextmanager
def serving(argv: list[str], ready: str) -> Iterator[None]:
    """A server that says when it is ready."""
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            assert any(ready in line for line in server.stdout)
            yield
        finally:
            server.terminate()


@pytest.mark.parametrize(
    ("options", "own_figures"),
    [({"tests": ["get"], "pipeline": 4}, 0), ({"tests": ["set", "lpush"], "keys": 100, "threads": 2}, 2)],
)
def test_the_real_redis_benchmark_does_its_requests(options: dict[str, Any], own_figures: int, tmp_path: Path) -> None:
    needs.require_program("redis-benchmark")
    port = free_port()
    argv = [str(embedded_servers.redis_program()), "--port", str(port), "--bind", "127.0.0.1", "--save", ""]
    target = Target(f"tcp://127.0.0.1:{port}")
    with serving([*argv, "--dir", str(tmp_path)], "Ready to accept connections"):
        report = run(make("redis-benchmark", requests=1000, **options), target, tmp_path, AT_MOST_S)
    assert report.usable, report.why
    assert report.requests == 1000 * len(options["tests"])
    assert len([name for name in own(report) if name.endswith(".throughput_rps")]) == own_figures
    refused = run(make("redis-benchmark"), target, tmp_path)
    assert not refused.complete
    assert "Connection refused" in (refused.error or "")


@pytest.mark.parametrize(
    ("options", "streams"), [({"direction": "to the server"}, 1), ({"direction": "both", "streams": 2}, 2)]
)
def test_the_real_iperf3_measures_to_its_server(options: dict[str, Any], streams: int, tmp_path: Path) -> None:
    needs.require_program("iperf3")
    port = free_port()
    with serving([str(needs.place("iperf3")), "-s", "-p", str(port), "--forceflush"], "Server listening"):
        report = run(make("iperf3", **options), Target(f"tcp://127.0.0.1:{port}"), tmp_path)
    assert report.usable, report.why
    assert report.own_metrics[0].unit == "bits/s"
    assert report.connections == streams


@pytest.fixture
def site() -> Iterator[Target]:
    """Pages that are there below /x, and nowhere else."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            sent = self.rfile.read(int(self.headers["Content-Length"] or 0))
            right = self.path.startswith("/x?a=") and self.headers["X-Own"] == "a b; $(id)" and sent == b"name=x"
            self.send_response(200 if right else 404)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"ok")

        def log_message(self, *args: object) -> None:
            """Says nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield Target(f"http://127.0.0.1:{server.server_port}")
        server.shutdown()


@pytest.mark.parametrize(("path", "fails"), [("/x?a=1;b", False), ("/y", True)])
def test_the_real_locust_asks_and_prints_what_is_read(path: str, fails: bool, site: Target, tmp_path: Path) -> None:
    needs.require_program("locust")
    driver = make("locust", method="POST", body="name=x", headers={"X-Own": "a b; $(id)"}, think_time_s=0.01)
    report = run(driver, Target(site.url + path), tmp_path)
    assert report.usable is not fails
    assert report.requests
    assert report.throughput_rps
    assert report.errors.other == (report.requests if fails else 0)
    assert report.users == 2
    assert report.latency is not None
    assert report.latency.percentiles_ms["99"] > 0
