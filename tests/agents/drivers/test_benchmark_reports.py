"""What becomes of the output of the load tools for databases, caches, disks and networks."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agents.base.errors import ParseError
from agents.drivers.base.named_report import name_of_part
from agents.drivers.reading import READERS
from tests.agents.drivers.plain_benchmarks import TOOLS, make, own, own_cases
from tests.agents.recorded import cases, damaged
from tests.properties import HealthCheck, given, settings, st

COLUMNS = ("test", "rps", *(f"{name}_latency_ms" for name in ("avg", "min", "p50", "p95", "p99", "max")))

HEAD = ",".join(f'"{name}"' for name in COLUMNS) + "\n"


@pytest.mark.parametrize("kind", sorted(TOOLS))
def test_every_tool_has_outputs_in_the_form_that_its_command_asks_for(kind: str) -> None:
    usable = [report for case in own_cases(kind) if (report := make(kind).parse(case.text)).usable]
    assert usable
    for report in usable:
        assert (report.tool, report.format) == (kind, make(kind).form)
        assert report.own_metrics or report.throughput_rps or report.latency  # sysbench threads has times only
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


def test_a_redis_benchmark_took_as_long_as_its_requests_at_their_rates() -> None:
    get, put = (
        f'"{name}","{rate}","0.1","0.1","0.1","0.1","0.1","0.1"\n' for name, rate in (("GET", 500), ("SET", 250))
    )
    options = {"requests": 1000, "clients": 1}
    assert make("redis-benchmark", tests=["get"], **options).parse(HEAD + get).duration_s == 2.0
    assert make("redis-benchmark", tests=["get", "set"], **options).parse(HEAD + get + put).duration_s == 6.0


def test_a_test_of_redis_that_was_not_reached_makes_the_figures_unusable() -> None:
    row = '"SET","100.0","0.1","0.1","0.1","0.1","0.1","0.1"\n'
    report = make("redis-benchmark", tests=["set", "get"]).parse(HEAD + row)
    assert (report.complete, report.usable, report.requests) == (True, False, None)
    assert report.why == "its time was over before get was done: give the phase more time, or fewer requests"


@pytest.mark.parametrize("text", ["", HEAD, "WARNING: Could not fetch server CONFIG\n" + HEAD])
def test_a_redis_benchmark_that_its_time_ended_says_what_to_do(text: str) -> None:
    with pytest.raises(ParseError, match="its time was over before get was done: give the phase more time"):
        make("redis-benchmark", tests=["get"]).parse(text)


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


def test_several_names_of_locust_have_figures_of_their_own_and_all_together() -> None:
    entries = json.loads(next(case.text for case in own_cases("locust")))
    second = {**entries[0], "name": "/2", "start_time": entries[0]["start_time"] + 1, "response_times": {"900": 300}}
    both = [entries[0], {**second, "num_requests": 300, "num_failures": 0, "max_response_time": 900}]
    report = make("locust").parse(json.dumps(both))
    assert (report.requests, report.errors.other, report.throughput_rps) == (400, 2, 80.0)
    assert report.latency is not None
    assert (report.latency.max_ms, report.latency.percentiles_ms["50"]) == (900.0, 900.0)
    assert {"get_1k.throughput_rps", "get_2.throughput_rps"} <= own(report).keys()
