"""The commands of the load tools for databases, caches, disks and networks, and which options they refuse."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest
from pydantic import ValidationError

from agents.base.errors import ParseError, PlanError
from agents.drivers.base.driver import Driver, Target
from agents.drivers.concurrency import at_concurrency
from agents.drivers.shares import share_of
from tests.agents.drivers.plain_benchmarks import PAGE, TARGET, TOOLS, make


def words(driver: Driver) -> str:
    return driver.command(PAGE if driver.reaches == "http" else TARGET, 30).shell()


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
        ("pgbench", {}, "pgbench -n -h sut -p 5432 -U bench -c 2 -j 1 -T 30 -M simple -b tpcb-like bench"),
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
        (
            "ycsb",
            {"binding": "basic"},  # which prints each of its operations, unless it is told not to
            (
                "/opt/ycsb/bin/ycsb.sh run basic -P /opt/ycsb/workloads/workloada -threads 1 -p recordcount=1000 "
                "-p operationcount=2147483647 -p maxexecutiontime=30 -p measurementtype=hdrhistogram "
                "-p hdrhistogram.percentiles=50,90,95,99,99.9 -p measurement.interval=op -p basicdb.verbose=false"
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
                "--mysql-port=5432 --mysql-user=bench --mysql-db=bench --tables=4 --table-size=10000 run"
            ),
        ),
    ],
)
def test_the_command_line_holds_every_option(kind: str, options: dict[str, Any], command: str) -> None:
    assert words(make(kind, **options)) == command


def test_gatling_takes_what_it_is_asked_as_arguments_and_as_properties() -> None:
    driver = make("gatling", timeout_s=5, insecure=True, headers={"X-A": "ä=1 #{x}\\ \U0001f600"})
    options = driver.command(PAGE, 30).argv[4:]
    assert options == ("/opt/gatling", "5000", "true", "30", PAGE.url)
    asked = driver.files()["asked.properties"]
    assert "users=2\n" in asked
    assert r"header\u002eX\u002dA=\u00e4\u003d1\u0020\u0023\u007bx\u007d\u005c\u0020\ud83d\ude00" in asked
    assert driver.load_model == "closed"
    assert make("gatling", users=None, offered_rate_rps=5).load_model == "open"


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
        ("gatling", {"offered_rate_rps": 5}, "either users or offered_rate_rps"),
        ("gatling", {"users": None}, "either users or offered_rate_rps"),
        ("gatling", {"simulation": "class Load {}"}, "leave users and offered_rate_rps out"),
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
        ("gatling", b"/opt/gatling/lib/gatling-app-3.14.9.jar\n", "3.14.9"),
        ("ycsb", b"/opt/ycsb/lib/core-0.17.0.jar\n", "0.17.0"),
    ],
)
def test_the_version_is_read_and_another_tool_is_noticed(kind: str, output: bytes, version: str) -> None:
    assert make(kind).parse_version(output) == version
    for other in (b"", b"sysbench 0.5\n", b"wrk 4.1.0 [epoll]\n"):
        with pytest.raises(ParseError):
            make(kind).parse_version(other)


def test_locust_rounds_its_times_up_and_is_no_contradiction_for_that() -> None:
    entry = {
        "name": "/", "method": "GET", "num_requests": 3, "num_failures": 0, "num_none_requests": 0,
        "start_time": 1.0, "last_request_timestamp": 3.0, "total_response_time": 166.9, "total_content_length": 9,
        "min_response_time": 5.2, "max_response_time": 156.249, "response_times": {"5": 1, "6": 1, "160": 1},
    }  # fmt: skip
    report = make("locust").parse(json.dumps([entry]))
    assert report.usable, report.why
    assert report.latency is not None
    assert (report.latency.percentiles_ms["50"], report.latency.percentiles_ms["100"]) == (6, 156.249)


@pytest.mark.parametrize("kind", sorted(TOOLS))
def test_a_missing_tool_fails_and_says_what_to_install(kind: str) -> None:
    where = {"home": "/no/such"} if kind in ("gatling", "ycsb") else {"binary": "no-such-tool"}
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


def test_a_locustfile_of_ones_own_is_given_instead_of_the_made_one() -> None:
    own_script = make("locust", script="from locust import HttpUser\n")
    assert own_script.files() == {"locustfile.py": "from locust import HttpUser\n"}
    assert [reserved.field for reserved in own_script.reserved()] == ["script"]
    made = make("locust", body="'; import os", headers={"X": "'"})
    assert json.loads(made.files()["asked.json"])["body"] == "'; import os"
    assert "'; import os" not in made.files()["locustfile.py"]


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
