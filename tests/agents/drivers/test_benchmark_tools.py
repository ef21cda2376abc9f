"""The load tools for databases, caches, disks and networks: their commands, and what becomes of their output."""

from __future__ import annotations

import http.server
import json
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from agents.base.errors import ParseError, PlanError
from agents.drivers import DRIVERS
from agents.drivers.base.benchmark_tool import BenchmarkTool
from agents.drivers.base.driver import Driver, Target
from agents.drivers.base.named_report import name_of_part
from agents.drivers.concurrency import at_concurrency
from agents.drivers.reading import READERS
from agents.drivers.shares import share_of
from agents.results.report import LoadReport
from benchhub import embedded, embedded_servers
from tests import needs
from tests.agents.recorded import Case, cases, damaged
from tests.agents.run_lab import free_port
from tests.properties import HealthCheck, given, settings, st

TOOLS = {kind: tool for kind, tool in DRIVERS.items() if issubclass(tool, BenchmarkTool)}
LEAST: dict[str, dict[str, Any]] = {
    "iperf3": {"direction": "both"},
    "locust": {"users": 2},
    "memtier": {"connections": 2},
    "pgbench": {"clients": 2},
    "redis-benchmark": {"clients": 2, "requests": 100, "tests": ["set", "get"]},
    "ycsb": {"binding": "redis"},
}
TARGET = Target("tcp://sut:5432")
PAGE = Target("http://sut:8080/x?a=b;c")
COLUMNS = ("test", "rps", *(f"{name}_latency_ms" for name in ("avg", "min", "p50", "p95", "p99", "max")))
HEAD = ",".join(f'"{name}"' for name in COLUMNS) + "\n"


def make(kind: str, **options: Any) -> Driver:
    return DRIVERS[kind].model_validate({**LEAST.get(kind, {}), **options})


def words(driver: Driver) -> str:
    return driver.command(PAGE if driver.reaches == "http" else TARGET, 30).shell()


def own_cases(kind: str) -> list[Case]:
    """The recorded outputs in the form that its command asks for."""
    return [case for case in cases(kind) if case.format == make(kind).form]


def own(report: LoadReport) -> dict[str, tuple[float, str, str]]:
    return {metric.name: (metric.value, metric.unit, metric.direction) for metric in report.own_metrics}


@pytest.mark.parametrize(
    ("kind", "options", "command"),
    [
        (
            "fio",
            {},
            (
                "fio --output-format=json+ --name=benchhub --directory=. --unlink=1 --group_reporting "
                "--rw=randread "
                "--bs=4k --size=1g --numjobs=1 --iodepth=1 --ioengine=psync --direct=1 --time_based --runtime=30 "
                "--lat_percentiles=1"
            ),
        ),
        (
            "fio",
            {
                "operation": "rw",
                "read_pct": 70,
                "fsync": 8,
                "rate_iops": 100,
                "engine": "libaio",
                "depth": 16,
                "directory": "/data",
            },
            (
                "fio --output-format=json+ --name=benchhub --directory=/data --unlink=1 --group_reporting --rw=rw "
                "--bs=4k --size=1g --numjobs=1 --iodepth=16 --ioengine=libaio --direct=1 --time_based --runtime=30 "
                "--lat_percentiles=1 "
                "--rwmixread=70 --fsync=8 --rate_iops=100"
            ),
        ),
        ("fio", {"job": "[a]\nrw=read\n"}, "env BENCHHUB_DURATION_S=30 fio --output-format=json+ job.fio"),
        ("iperf3", {"direction": "to the server"}, "iperf3 -J -c sut -p 5432 -t 30 -P 1"),
        (
            "iperf3",
            {"protocol": "udp", "rate_mbps": 20, "direction": "from the server", "omit_s": 1, "streams": 2},
            "iperf3 -J -c sut -p 5432 -t 30 -P 2 -R -u -b 20M -O 1",
        ),
        (
            "memtier",
            {"connections": 8, "threads": 2, "writes": 1, "reads": 4},
            (
                "memtier_benchmark -s sut -p 5432 --protocol=redis --test-time=30 --threads=2 --clients=4 --ratio=1:4 "
                "--pipeline=1 --data-size=32 --key-maximum=10000000 --key-pattern=R:R "
                "--distinct-client-seed --hide-histogram "
                "--print-percentiles=50,90,95,99,99.9"
            ),
        ),
        ("pgbench", {}, "pgbench -n -h sut -p 5432 -U postgres -c 2 -j 1 -T 30 -M simple -b tpcb-like postgres"),
        (
            "pgbench",
            {
                "script": "SELECT 1;",
                "scale": 5,
                "rate_tps": 100,
                "latency_limit_ms": 50,
                "progress_s": 5,
                "seed": 7,
                "max_tries": 3,
                "reconnect": True,
                "user": "bench",
                "database": "shop",
            },
            (
                "pgbench -n -h sut -p 5432 -U bench -c 2 -j 1 -T 30 -M simple -s 5 -f "
                "transaction.sql -R 100 -L 50 -P 5 "
                "--random-seed=7 --max-tries=3 -C shop"
            ),
        ),
        (
            "redis-benchmark",
            {"keys": 1000, "threads": 2, "database": 3, "keep_alive": False},
            (
                "timeout 30 redis-benchmark -h sut -p 5432 --csv -t set,get -c 2 -n 100 -d 3 -P 1 -k 0 -r 1000 "
                "--threads 2 --dbnum 3"
            ),
        ),
        (
            "locust",
            {"spawn_per_s": 1},
            (
                "env 'BENCHHUB_PATH=/x?a=b;c' locust --headless --json --only-summary --loglevel=ERROR "
                "--locustfile=locustfile.py --host=http://sut:8080 --users=2 --spawn-rate=1 --run-time=30s "
                "--exit-code-on-error=0"
            ),
        ),
        (
            "ycsb",
            {"binding": "jdbc", "target_per_s": 500, "threads": 4},
            (
                "/opt/ycsb/bin/ycsb.sh run jdbc -P /opt/ycsb/workloads/workloada -threads 4 -target 500 -p "
                "recordcount=1000 -p operationcount=2147483647 -p maxexecutiontime=30 -p measurementtype=hdrhistogram "
                "-p hdrhistogram.percentiles=50,90,95,99,99.9 -p measurement.interval=both -p "
                "db.driver=org.postgresql.Driver -p db.url=jdbc:postgresql://sut:5432/ycsb -p db.user=ycsb"
            ),
        ),
        ("sysbench", {}, "sysbench cpu --threads=1 --time=30 --events=0 --percentile=95 --cpu-max-prime=10000 run"),
        (
            "sysbench",
            {"test": "memory", "memory_block": "1M", "memory_operation": "read"},
            (
                "sysbench memory --threads=1 --time=30 --events=0 --percentile=95 --memory-block-size=1M "
                "--memory-total-size=10000T --memory-access-mode=seq --memory-oper=read run"
            ),
        ),
        (
            "sysbench",
            {"test": "fileio", "file_direct": True, "rate_per_s": 9},
            (
                "sysbench fileio --threads=1 --time=30 --events=0 --percentile=95 --rate=9 --file-total-size=2G "
                "--file-block-size=16K --file-test-mode=rndrd --file-extra-flags=direct run"
            ),
        ),
        (
            "sysbench",
            {"test": "oltp_read_only", "database_kind": "mysql", "tables": 4},
            (
                "sysbench oltp_read_only --threads=1 --time=30 --events=0 --percentile=95 "
                "--db-driver=mysql --mysql-host=sut "
                "--mysql-port=5432 --mysql-user=sbtest --mysql-db=sbtest --tables=4 --table-size=10000 run"
            ),
        ),
    ],
)
def test_the_command_line_holds_every_option(kind: str, options: dict[str, Any], command: str) -> None:
    assert words(make(kind, **options)) == command


def test_a_warm_up_makes_the_data_first_and_the_measured_phase_does_not() -> None:
    """The first output begins with the report all the same."""
    making: tuple[tuple[str, dict[str, Any]], ...] = (
        ("pgbench", {"initialise": True, "scale": 9}),
        ("sysbench", {"test": "oltp_insert", "initialise": True}),
        ("sysbench", {"test": "fileio"}),
        ("ycsb", {"initialise": True}),
    )
    for kind, options in making:
        driver = make(kind, **options)
        warming = driver.warming_up()
        assert driver.prepares
        assert warming.kind == kind
        assert driver.command(TARGET, 5).argv[0] in (kind, "/opt/ycsb/bin/ycsb.sh")
        assert " >prepare.txt " in warming.command(TARGET, 5).argv[2]
        with pytest.raises(PlanError, match="whole seconds"):
            warming.command(TARGET, 1.5)
    plain = make("pgbench")
    assert not plain.prepares
    assert plain.warming_up() is plain


@pytest.mark.parametrize(
    ("kind", "options", "problem"),
    [
        ("fio", {"depth": 4}, "psync has one request under way"),
        ("fio", {"engine": "mmap"}, "switch direct off"),
        ("fio", {"block_size": "4k --exec_prerun=id"}, "block_size"),
        ("fio", {"directory": "relative"}, "directory"),
        ("iperf3", {"protocol": "udp", "zero_copy": True}, "zero_copy is for TCP"),
        ("memtier", {"connections": 5, "threads": 2}, "multiple of threads"),
        ("memtier", {"writes": 0, "reads": 0}, "cannot both be 0"),
        ("pgbench", {"jobs": 3}, "3 jobs need at least 3 clients"),
        ("pgbench", {"database": "host=elsewhere"}, "database"),
        ("pgbench", {"user": "-c"}, "user"),
        ("locust", {"headers": {"a b": "c"}}, "not the name of an HTTP header"),
        ("redis-benchmark", {"tests": ["get", "get"]}, "each test once"),
        ("redis-benchmark", {"requests": 1}, "at least the number of clients"),
        ("redis-benchmark", {"tests": ["flushall"]}, "tests"),
        ("sysbench", {"initialise": True}, "cpu has none"),
        ("sysbench", {"file_total": "2G; id"}, "file_total"),
        ("ycsb", {"binding": "s3"}, "binding"),
        ("ycsb", {"database": "x?password=y"}, "database"),
    ],
)
def test_options_that_a_tool_would_misread_are_refused(kind: str, options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        make(kind, **options)


@pytest.mark.parametrize("kind", sorted(kind for kind in TOOLS if make(kind).reaches == "tcp"))
@pytest.mark.parametrize("url", ["tcp://sut", "tcp://-c:5432", "tcp://a b:1", "sut:5432"])
def test_a_target_without_address_and_port_is_refused(kind: str, url: str) -> None:
    with pytest.raises(PlanError, match="address and port"):
        make(kind).command(Target(url), 5)


@pytest.mark.parametrize("url", ["tcp://[fe80::1]:5432", "tcp://SUT:PORT", "tcp://10.0.0.2:5432"])
def test_a_target_may_be_any_address(url: str) -> None:
    target = Target(url)
    assert (target.host, target.port) in {("fe80::1", "5432"), ("SUT", "PORT"), ("10.0.0.2", "5432")}
    assert target.host in make("pgbench").command(target, 5).argv


@pytest.mark.parametrize("kind", sorted(TOOLS))
def test_every_tool_has_outputs_in_the_form_that_its_command_asks_for(kind: str) -> None:
    usable = [report for case in own_cases(kind) if (report := make(kind).parse(case.text)).usable]
    assert usable
    for report in usable:
        assert (report.tool, report.format) == (kind, make(kind).form)
        assert report.own_metrics or report.throughput_rps
        names = [metric.name for metric in report.own_metrics]
        assert len(names) == len(set(names))


@pytest.mark.parametrize("kind", sorted(TOOLS))
def test_its_report_is_that_of_the_file_and_a_failure_says_why(kind: str) -> None:
    """What the reader of its files says of them is what a run has."""
    driver = make(kind, **({"tests": ["get"]} if kind == "redis-benchmark" else {}))
    for case in own_cases(kind):
        report = driver.parse(case.text)
        counts = case.about.get("usable", True)
        assert report.usable is counts, case.name
        assert counts or report.why
        if not report.complete:
            assert report.own_metrics == ()
            assert report.error


@pytest.mark.parametrize(
    ("kind", "name", "options", "figures"),
    [
        ("fio", "randread-jsonplus", {}, {"iops": (30345.551483, "IOPS", "higher")}),
        ("iperf3", "tcp", {"direction": "to the server"}, {"bits_per_s": (18109671165.595123, "bits/s", "higher")}),
        ("iperf3", "tcp-both-ways", {}, {"there.bits_per_s": (2441234008.51769, "bits/s", "higher")}),
        ("memtier", "table", {}, {"throughput_ops_per_s": (41257.1, "ops/s", "higher")}),
        ("pgbench", "simple", {}, {"transactions_per_s": (3917.355533, "transactions/s", "higher")}),
        ("redis-benchmark", "get-set", {}, {"get.throughput_rps": (60790.27, "requests/s", "higher")}),
        ("ycsb", "run-target-intended", {}, {"throughput_ops_per_s": (2993.016295310941, "ops/s", "higher")}),
        ("sysbench", "cpu", {}, {"events_per_s": (17436.87, "events/s", "higher")}),
        (
            "sysbench",
            "oltp-read-write",
            {"test": "oltp_read_write"},
            {"transactions_per_s": (417.92, "transactions/s", "higher")},
        ),
    ],
)
def test_a_figure_has_the_unit_of_the_tool_and_stands_first(
    kind: str, name: str, options: dict[str, Any], figures: dict[str, tuple[float, str, str]]
) -> None:
    driver = make(kind, **options)
    report = driver.parse(next(case.text for case in cases(kind) if case.name == f"{kind}/{name}"))
    found = own(report)
    assert {name: found.get(name) for name in figures} == figures
    declared = {name: (unit, direction) for name, unit, direction in driver.own_metrics()}
    assert figures.keys() <= declared.keys()
    assert {name: found[name][1:] for name in declared if name in found} == {
        name: said for name, said in declared.items() if name in found
    }
    assert report.own_metrics[0].name in declared
    assert report.throughput_rps is None
    assert "latency_sum_ms" not in found


def test_latency_and_counts_stand_where_every_report_has_them() -> None:
    report = make("pgbench").parse(next(case.text for case in cases("pgbench") if case.name == "pgbench/simple"))
    assert report.latency is not None
    assert report.latency.mean_ms
    assert report.requests == 15690
    assert report.errors.total == 0
    assert (report.connections, report.threads) == (2, 1)


def test_a_tool_that_counts_no_failures_and_stops_at_none_has_an_unknown_number() -> None:
    table = next(case.text for case in cases("memtier") if case.name == "memtier/table")
    assert make("memtier").parse(table).errors.other is None
    two_failed = next(case.text for case in cases("ycsb") if case.name == "ycsb/histogram-and-errors")
    assert make("ycsb").parse(two_failed).errors.other == 2
    assert make("sysbench").parse(next(c.text for c in cases("sysbench") if c.name == "sysbench/cpu")).errors.other == 0


def test_a_rate_makes_the_load_open_and_stands_beside_the_figures_in_its_own_unit() -> None:
    text = next(case.text for case in cases("pgbench") if case.name == "pgbench/rate-limited")
    report = make("pgbench", rate_tps=300).parse(text)
    assert (report.load_model, report.latency_basis) == ("open", "response_time")
    assert report.details["offered_rate_tps"] == 300.0
    assert report.offered_rate_rps is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (HEAD + "Error from server: OOM command not allowed\n", "Error from server: OOM command not allowed"),
        ("Could not connect to Redis at sut:1: Connection refused\n", "Could not connect to Redis at sut:1"),
    ],
)
def test_an_error_of_redis_is_told_wherever_it_stands(text: str, why: str) -> None:
    report = make("redis-benchmark").parse(text)
    assert not report.complete
    assert report.requests is None
    assert (report.error or "").startswith(why)


def test_a_warning_behind_the_table_of_redis_does_no_harm() -> None:
    row = '"GET","100.0","0.1","0.1","0.1","0.1","0.1","0.1"\n'
    report = make("redis-benchmark", tests=["get"]).parse(f"{HEAD}{row}WARNING: Could not fetch server CONFIG\n")
    assert (report.usable, report.throughput_rps, report.requests) == (True, 100.0, 100)


def test_a_test_of_redis_that_was_not_reached_makes_the_figures_unusable() -> None:
    row = '"SET","100.0","0.1","0.1","0.1","0.1","0.1","0.1"\n'
    report = make("redis-benchmark", tests=["set", "get"]).parse(HEAD + row)
    assert (report.complete, report.usable, report.requests) == (True, False, None)
    assert report.why == "its time was over before get was done: give the phase more time, or fewer requests"


def test_two_results_of_one_name_have_names_of_their_own() -> None:
    row = '"GET","100.0","0.1","0.1","0.1","0.1","0.1","0.1"\n'
    found = own(make("redis-benchmark").parse(HEAD + row + row))
    assert {"get.throughput_rps", "get_2.throughput_rps"} <= found.keys()


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("MSET (10 keys)", "mset_10_keys"),
        ("GET", "get"),
        ("10 keys", "part_10_keys"),
        ("", "part"),
        ("A" * 99, "a" * 24),
    ],
)
def test_a_part_has_a_name_that_a_metric_can_have(text: str, name: str) -> None:
    assert name_of_part(text) == name


@pytest.mark.parametrize("kind", sorted(TOOLS))
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_damaged_output_gives_figures_or_a_parse_error(kind: str, data: st.DataObject) -> None:
    text = data.draw(damaged([case.text for case in own_cases(kind)]))
    try:
        report = make(kind).parse(text)
    except ParseError:
        return
    assert all(metric.value >= 0 for metric in report.own_metrics)
    assert report.usable or report.why


def test_no_report_of_these_tools_is_imported_as_one_of_http() -> None:
    assert not TOOLS.keys() & READERS.keys()


@pytest.mark.parametrize(
    ("kind", "output", "version"),
    [
        ("fio", b"fio-3.33\n", "3.33"),
        ("iperf3", b"iperf 3.12 (cJSON 1.7.15)\nLinux sut 6.1\n", "3.12"),
        ("memtier", b"memtier_benchmark 2.0.0\nCopyright (C) 2011-2024 Redis Ltd.\n", "2.0.0"),
        ("pgbench", b"pgbench (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n", "15.18"),
        ("redis-benchmark", b"redis-benchmark 7.0.15\n", "7.0.15"),
        ("redis-benchmark", b"valkey-benchmark 8.0.1\n", "8.0.1"),
        ("sysbench", b"sysbench 1.0.20\n", "1.0.20"),
        ("locust", b"locust 2.47.0 from /opt/lib/locust (Python 3.11.7)\n", "2.47.0"),
        ("ycsb", b"/opt/ycsb/lib/core-0.17.0.jar\n", "0.17.0"),
    ],
)
def test_the_version_is_read_and_another_tool_is_noticed(kind: str, output: bytes, version: str) -> None:
    assert make(kind).parse_version(output) == version
    for other in (b"", b"sysbench 0.5\n", b"wrk 4.1.0 [epoll]\n"):
        with pytest.raises(ParseError):
            make(kind).parse_version(other)


@pytest.mark.parametrize("kind", sorted(TOOLS))
def test_a_missing_tool_fails_and_says_what_to_install(kind: str) -> None:
    where = {"home": "/no/such"} if kind == "ycsb" else {"binary": "no-such-tool"}
    command = make(kind, **where).version_command()
    done = subprocess.run(command.argv, capture_output=True, check=False)
    assert done.returncode == 127
    assert b"on this host: install " in done.stderr


@pytest.mark.parametrize(
    ("kind", "options", "hosts", "expected"),
    [
        ("pgbench", {"clients": 8, "rate_tps": 100}, 2, {"clients": 4, "rate_tps": 50}),
        ("redis-benchmark", {"clients": 8, "requests": 100}, 2, {"clients": 4, "requests": 50}),
        ("memtier", {"connections": 8}, 4, {"connections": 2}),
        ("sysbench", {"threads": 6}, 3, {"threads": 2}),
        ("locust", {"users": 6}, 3, {"users": 2}),
        ("ycsb", {"threads": 6, "target_per_s": 9}, 3, {"threads": 2, "target_per_s": 3}),
    ],
)
def test_several_hosts_divide_the_load(
    kind: str, options: dict[str, Any], hosts: int, expected: dict[str, int]
) -> None:
    share = share_of(make(kind, **options), hosts)
    assert {name: getattr(share, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("kind", "options", "why"),
    [
        ("fio", {}, "every host has disks of its own"),
        ("iperf3", {"streams": 2}, "serves one client at a time"),
        ("pgbench", {"initialise": True}, "would make the tables anew"),
        ("ycsb", {"threads": 2, "initialise": True}, "would load the records"),
        ("sysbench", {"test": "oltp_insert", "threads": 2, "initialise": True}, "would make the tables anew"),
    ],
)
def test_a_load_that_several_hosts_cannot_divide_is_refused(kind: str, options: dict[str, Any], why: str) -> None:
    with pytest.raises(PlanError, match=why):
        share_of(make(kind, **options), 2)


def test_more_clients_must_still_fit_the_other_options() -> None:
    with pytest.raises(PlanError, match="4 jobs need at least 4 clients"):
        at_concurrency(make("pgbench", clients=8, jobs=4), 2)


def run(driver: Driver, target: Target, folder: Path) -> LoadReport:
    """One second of the real tool, as it measures."""
    for name, text in driver.files().items():
        (folder / name).write_text(text)
    done = subprocess.run(
        driver.command(target, 1).argv, capture_output=True, text=True, cwd=folder, timeout=300, check=False
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
    needs.require_program("pgbench")
    driver = make("pgbench", user=embedded.DATABASE_USER, initialise=True, **options)
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
    needs.require_program("pgbench")
    report = run(make("pgbench", user=embedded.DATABASE_USER, database="nosuch"), database, tmp_path)
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
        report = run(make("redis-benchmark", requests=1000, **options), target, tmp_path)
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


def test_a_locustfile_of_ones_own_is_given_instead_of_the_made_one() -> None:
    own_script = make("locust", script="from locust import HttpUser\n")
    assert own_script.files() == {"locustfile.py": "from locust import HttpUser\n"}
    assert [reserved.field for reserved in own_script.reserved()] == ["script"]
    made = make("locust", body="'; import os", headers={"X": "'"})
    assert json.loads(made.files()["asked.json"])["body"] == "'; import os"
    assert "'; import os" not in made.files()["locustfile.py"]


def test_several_names_of_locust_have_figures_of_their_own_and_all_together() -> None:
    entries = json.loads(next(case.text for case in own_cases("locust")))
    second = {**entries[0], "name": "/2", "start_time": entries[0]["start_time"] + 1, "response_times": {"900": 300}}
    both = [entries[0], {**second, "num_requests": 300, "num_failures": 0, "max_response_time": 900}]
    report = make("locust").parse(json.dumps(both))
    assert (report.requests, report.errors.other, report.throughput_rps) == (400, 2, 80.0)
    assert report.latency is not None
    assert (report.latency.max_ms, report.latency.percentiles_ms["50"]) == (900.0, 900.0)
    assert {"get_1k.throughput_rps", "get_2.throughput_rps"} <= own(report).keys()


@pytest.mark.parametrize(
    ("kind", "options", "first"),
    [
        ("pgbench", {}, "transactions_per_s"),
        ("redis-benchmark", {"tests": ["get"]}, "throughput_rps"),
        ("redis-benchmark", {"tests": ["set", "get"]}, "set.throughput_rps"),
        ("fio", {"operation": "randwrite"}, "iops"),
        ("fio", {"operation": "rw"}, "read.iops"),
        ("fio", {"job": "[a]"}, None),
        ("sysbench", {"test": "memory"}, "operations_per_s"),
        ("sysbench", {"test": "fileio", "file_mode": "seqrewr"}, "writes_per_s"),
        ("sysbench", {"test": "oltp_insert"}, "transactions_per_s"),
        ("locust", {}, "throughput_rps"),
        ("wrk", {"connections": 1, "threads": 1}, "throughput_rps"),
        ("command", {"argv": ["x"]}, "throughput_rps"),
        ("command", {"argv": ["x"], "figures": {"requests": {"pattern": "(1)"}}}, "throughput_rps"),
        (
            "command",
            {"argv": ["x"], "figures": {"score": {"pattern": "(1)", "unit": "points", "direction": "higher"}}},
            "score",
        ),
    ],
)
def test_a_tool_says_what_stands_for_a_run(kind: str, options: dict[str, Any], first: str | None) -> None:
    assert next(iter(make(kind, **options).headlines()), None) == first
