"""Whether a run counts, and why not: figures of real reports, then every rule at its limits."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from experiments.analysis.findings import GcPauses, ToolHabits
from experiments.analysis.validity import Finding, HostFigures, LoadFigures, RunValidity, Thresholds, judge_run

NO_ERRORS: dict[str, Any] = {
    "errors_connect": 0,
    "errors_read": 0,
    "errors_write": 0,
    "errors_timeout": 0,
    "errors_status": 0,
}
WRK = LoadFigures(
    tool="wrk",
    load_model="closed",
    latency_basis="service_time",
    requested_duration_s=30,
    duration_s=30.0,
    requests=1_500_000,
    throughput_rps=50_000,
    connections=50,
    threads=2,
    latency_mean_ms=1.0,
    latency_max_ms=20.0,
    thread_rps_mean=25_100,
    habits=ToolHabits(back_to_back=True, omits_late_answers=True, thread_rate_sample_ms=100.0),
    **NO_ERRORS,
)
WRK2 = LoadFigures(
    tool="wrk2",
    load_model="open",
    latency_basis="response_time",
    requested_duration_s=60,
    duration_s=60.0,
    requests=120_000,
    throughput_rps=2000,
    offered_rate_rps=2000,
    connections=20,
    threads=2,
    latency_mean_ms=0.9,
    latency_max_ms=18.0,
    habits=ToolHabits(queues_due=True, timeouts_note="A timeout is counted every 2 s."),
    **NO_ERRORS,
)
TOMCAT = replace(WRK2, offered_rate_rps=500_000, connections=1280, threads=128)
DEFAULT = replace(
    TOMCAT,
    requests=3_035_300,
    throughput_rps=50_517.09,
    latency_mean_ms=13_290,
    latency_stdev_ms=3250,
    latency_max_ms=19_070,
    errors_connect=1280,
    errors_timeout=21_760,
)
NO_ACCESS_LOG = replace(
    DEFAULT,
    requests=3_572_200,
    throughput_rps=59_451.85,
    latency_mean_ms=12_660,
    latency_stdev_ms=3050,
    latency_max_ms=17_870,
)
SEVEN_THREADS = replace(
    TOMCAT,
    requests=9_255_672,
    throughput_rps=154_479.07,
    latency_mean_ms=24_340,
    latency_stdev_ms=9910,
    latency_max_ms=41_810,
)
CALM = HostFigures(
    exit_status=0,
    boot_id_changed=False,
    driver_cpu_mean_ratio=0.4,
    driver_cpu_max_ratio=0.6,
    driver_thread_max_ratio=0.5,
    sut_cpu_mean_ratio=0.97,
    steal_ratio=0.0,
    swap_pages=0,
    governor="performance",
    network_stalled_s=0,
    clock_offset_s=0.01,
    shared_cpus=False,
    neighbours_ratio=0.002,
    memory_available_ratio=0.6,
    mean_mhz=3400.0,
    throttle_count=0,
    cpu_nodes=(0,),
    nic="eth0",
    nic_node=0,
    new_connections_per_s=2.0,
    local_ports=28_232,
    gc=GcPauses(count=12, total_s=0.06, longest_ms=9.0, full=0),
    sut_unseen_s=0.0,
    driver_unseen_s=0.1,
)


def finding(validity: RunValidity, check: str) -> Finding:
    return next(f for f in validity.findings if f.check == check)


def level(validity: RunValidity, check: str) -> str | None:
    return next((f.level for f in validity.findings if f.check == check), None)


@pytest.mark.parametrize("load", [WRK, WRK2], ids=["wrk", "wrk2"])
def test_a_clean_run_is_valid_and_every_check_says_so(load: LoadFigures) -> None:
    validity = judge_run(load, CALM)
    assert validity.state == "valid"
    assert validity.reasons == ()
    assert not validity.hides_latency
    assert {"errors", "duration", "exit_status", "driver_cpu"} <= {f.check for f in validity.findings}


@pytest.mark.parametrize("hosts", [None, CALM], ids=["report only", "with hosts"])
@pytest.mark.parametrize("load", [DEFAULT, NO_ACCESS_LOG], ids=["default", "no access log"])
def test_the_published_runs_with_1280_connect_errors_are_invalid_in_plain_words(
    load: LoadFigures, hosts: HostFigures | None
) -> None:
    validity = judge_run(load, hosts)
    reasons = " ".join(validity.reasons)
    assert validity.state == "invalid"
    assert validity.hides_latency
    assert "1,280 connect errors for 1,280 connections" in reasons
    assert "the load had stopped after about 25 s of 60 s" in reasons
    assert "offered requests/s were reached" in reasons


def test_the_dead_load_is_shown_with_its_rate_while_it_lived() -> None:
    text = finding(judge_run(DEFAULT), "load_lasted").sentence
    assert "made about 120,700 requests/s" in text
    assert "reported 50,517 requests/s" in text


def test_the_published_run_with_seven_threads_keeps_its_throughput_and_hides_its_latency() -> None:
    validity = judge_run(SEVEN_THREADS, CALM)
    assert (validity.state, validity.hides_latency) == ("suspect", True)
    (reason,) = validity.reasons
    assert reason == (
        "Saturated: 154,479 of 500,000 offered requests/s were reached (30.9 %); "
        "throughput is kept, latency is hidden because it is the wait in the backlog."
    )


def real_wrk(
    seconds: float, requests: int, rps: float, thread_rps: float, connections: int, mean_ms: float | None, **more: Any
) -> LoadFigures:
    return replace(
        WRK,
        requested_duration_s=seconds,
        duration_s=seconds,
        requests=requests,
        throughput_rps=rps,
        thread_rps_mean=thread_rps,
        connections=connections,
        latency_mean_ms=mean_ms,
        **more,
    )


@pytest.mark.parametrize(
    ("load", "state", "checks"),
    [
        pytest.param(
            real_wrk(6, 580, 96.47, 49.14, 20, 200.37), "valid", set(), id="an answer that takes 200 ms is healthy"
        ),
        pytest.param(
            real_wrk(5, 15_967, 3156.81, 1600, 16, 5.79), "valid", set(), id="bodies of 1 MiB on a busy machine"
        ),
        pytest.param(
            real_wrk(5, 353_439, 69_302.0, 35_040, 10, 0.87), "suspect", {"littles_law"}, id="long pauses filled in"
        ),
        pytest.param(
            real_wrk(8, 169_829, 21_003.9, 29_440, 16, 0.35349),
            "invalid",
            {"stall", "littles_law"},
            id="the link was cut after 3 of 8 s",
        ),
        pytest.param(
            real_wrk(7, 137_037, 19_297.97, 34_440, 16, 0.26102, errors_read=24, errors_write=517_307),
            "invalid",
            {"errors", "stall", "littles_law"},
            id="the server was killed after 3 of 7 s",
        ),
        pytest.param(
            real_wrk(5, 383_550, 76_218.63, 38_390, 200, 0.7547, errors_connect=145),
            "invalid",
            {"errors", "connect_errors", "littles_law"},
            id="too few file descriptors for the connections",
        ),
        pytest.param(
            real_wrk(4, 117_037, 29_235.73, 14_690, 32, 1.1, errors_status=117_037),
            "invalid",
            {"errors"},
            id="every answer is 403",
        ),
        pytest.param(
            real_wrk(4, 0, 0.0, 0.0, 8, None, usable=False, why="no request completed"),
            "invalid",
            {"report"},
            id="the server never answers",
        ),
        pytest.param(
            real_wrk(6, 250, 41.54, 20.0, 50, None, errors_timeout=250),
            "invalid",
            {"errors", "latency_complete"},
            id="every answer comes after the timeout",
        ),
    ],
)
def test_real_wrk_reports_are_judged_by_what_happened(load: LoadFigures, state: str, checks: set[str]) -> None:
    validity = judge_run(load, CALM)
    assert validity.state == state
    assert {f.check for f in validity.findings if f.level in ("warn", "invalid")} == checks


def test_a_stalled_load_says_how_much_faster_it_was_while_it_ran() -> None:
    text = finding(judge_run(real_wrk(8, 169_829, 21_003.9, 29_440, 16, 0.35349)), "stall").sentence
    assert text.startswith("The load stalled: ")
    assert "2.8 times the 21,004 requests/s" in text


def test_slow_answers_that_come_in_bursts_are_not_taken_for_a_stall() -> None:
    bursts = real_wrk(30, 1500, 50, 50, 25, 500.0)
    assert level(judge_run(bursts, CALM), "stall") is None


@pytest.mark.parametrize(
    ("change", "check", "expected"),
    [
        ({"errors_read": 1}, "errors", "invalid"),
        ({"errors_status": 1}, "errors", "invalid"),
        ({"errors_timeout": 1}, "latency_complete", "warn"),
        ({"errors_connect": 1, "connections": 100}, "connect_errors", None),
        ({"errors_connect": 2, "connections": 100}, "connect_errors", "invalid"),
        (dict.fromkeys(NO_ERRORS), "errors", "warn"),
        ({"requests": 1_471_000}, "duration", "ok"),
        ({"requests": 1_469_000}, "duration", "invalid"),
        ({"requests": None, "duration_s": 20.0}, "duration", "invalid"),
        ({"requested_duration_s": None}, "duration", None),
        ({"latency_mean_ms": 1.25}, "littles_law", "ok"),
        ({"latency_mean_ms": 1.26}, "littles_law", "warn"),
        ({"latency_mean_ms": 0.74}, "littles_law", "warn"),
        ({"latency_mean_ms": 9.0, "tool": "jmeter", "habits": ToolHabits()}, "littles_law", None),
        ({"thread_rps_mean": 37_500}, "stall", None),
        ({"thread_rps_mean": 37_600}, "stall", "invalid"),
        ({"throughput_rps": None}, "report", "invalid"),
        ({"throughput_rps": None, "has_own_figures": True}, "report", None),
        ({"requests": 0}, "report", "invalid"),
    ],
)
def test_closed_loop_rules_at_their_limits(change: dict[str, Any], check: str, expected: str | None) -> None:
    assert level(judge_run(replace(WRK, **change), CALM), check) == expected


@pytest.mark.parametrize(
    ("ratio", "expected", "hidden"),
    [(1.0, "ok", False), (0.995, "ok", False), (0.994, "warn", False), (0.99, "warn", False), (0.989, "warn", True)],
)
def test_an_open_loop_below_its_rate_loses_its_latency(ratio: float, expected: str, hidden: bool) -> None:
    throughput_rps = 2000 * ratio
    backlog_ms = 60_000 * (1 - ratio) + 18
    load = replace(WRK2, throughput_rps=throughput_rps, requests=round(throughput_rps * 60), latency_max_ms=backlog_ms)
    validity = judge_run(load, CALM)
    assert (level(validity, "offered_rate"), validity.hides_latency) == (expected, hidden)
    assert level(validity, "load_lasted") is None


@pytest.mark.parametrize(("requests", "stopped"), [(114_000, False), (113_900, True), (60_000, True)])
def test_an_open_loop_that_ends_before_95_percent_of_its_time_stopped_early(requests: int, stopped: bool) -> None:
    load = replace(WRK2, requests=requests, throughput_rps=requests / 60, latency_max_ms=0.5)
    assert (level(judge_run(load, CALM), "load_lasted") == "invalid") == stopped


@pytest.mark.parametrize("failed", ["errors_timeout", "errors_connect", "errors_other"])
def test_requests_that_oha_leaves_out_of_its_count_were_sent_all_the_same(failed: str) -> None:
    oha = replace(WRK2, tool="oha", habits=ToolHabits(queues_due=True), requests=60_000, latency_max_ms=0.5)
    oha = replace(oha, throughput_rps=1000, offered_rate_rps=2000)
    assert level(judge_run(oha, CALM), "load_lasted") == "invalid"
    counted: dict[str, Any] = {failed: 60_000}
    failing = judge_run(replace(oha, **counted), CALM)
    assert level(failing, "load_lasted") is None
    assert level(failing, "errors") == "invalid"


K6_SAYS = replace(
    WRK2, tool="k6", habits=ToolHabits(), latency_basis="service_time", requests=99_000, offered_rate_rps=None
)


@pytest.mark.parametrize(
    ("dropped", "requests", "expected", "said"),
    [
        (None, 100_000, None, ""),
        (0, 100_000, "ok", "k6 dropped no iteration."),
        (1, 100_000, "warn", "k6 dropped 1 iteration, 0.0 % of what was due"),
        (999, 99_001, "warn", "k6 dropped 999 iterations, 1.0 % of what was due"),
        (1001, 98_999, "invalid", "k6 dropped 1,001 iterations, 1.0 % of what was due"),
        (50_000, 50_000, "invalid", "50.0 % of what was due, because none of its users was free"),
        (5, 0, None, ""),
    ],
)
def test_what_k6_dropped_is_missing_from_its_figures(
    dropped: int | None, requests: int, expected: str | None, said: str
) -> None:
    validity = judge_run(replace(K6_SAYS, dropped_iterations=dropped, requests=requests), CALM)
    assert level(validity, "dropped") == expected
    if expected:
        assert said in finding(validity, "dropped").sentence


@pytest.mark.parametrize(
    ("failed", "passed", "expected", "said"),
    [
        (None, None, None, ""),
        (None, "http_req_failed: rate<0.01", "ok", "k6's own thresholds were kept: http_req_failed: rate<0.01."),
        ("p(95)<200", "rate<0.01", "warn", "k6's own thresholds were not kept: p(95)<200."),
    ],
)
def test_thresholds_of_a_script_are_named_and_only_warn(
    failed: str | None, passed: str | None, expected: str | None, said: str
) -> None:
    validity = judge_run(replace(K6_SAYS, thresholds_failed=failed, thresholds_passed=passed), CALM)
    assert level(validity, "tool_thresholds") == expected
    if expected:
        assert finding(validity, "tool_thresholds").sentence == said


@pytest.mark.parametrize(
    ("measured_s", "expected", "said"),
    [
        (0.037, "warn", "Only 37 ms were measured"),
        (0.9, "warn", "Only 900 ms were measured"),
        (1.0, "skipped", "Only 1.0 s were measured: under 10 s nothing tells what lasts from what passes."),
        (9.5, "skipped", "Only 9.5 s were measured"),
        (10.0, None, ""),
    ],
)
def test_a_short_window_says_so(measured_s: float, expected: str | None, said: str) -> None:
    load = replace(WRK, requested_duration_s=None, duration_s=measured_s, requests=round(50_000 * measured_s))
    validity = judge_run(load, CALM)
    assert level(validity, "window") == expected
    if expected:
        assert finding(validity, "window").sentence.startswith(said)


def test_service_time_latency_says_nothing_about_the_end_of_the_load() -> None:
    load = replace(
        WRK2, tool="vegeta", habits=ToolHabits(), latency_basis="service_time", requests=60_000, throughput_rps=1000
    )
    validity = judge_run(load, CALM)
    assert level(validity, "load_lasted") is None
    assert level(validity, "offered_rate") == "warn"


def test_wrk_answers_after_the_timeout_hide_the_latency_even_within_an_error_budget() -> None:
    load = replace(WRK, errors_timeout=15)
    validity = judge_run(load, CALM, thresholds=Thresholds(error_budget_ratio=0.001))
    assert (validity.state, validity.hides_latency) == ("suspect", True)
    assert finding(validity, "errors").sentence == "15 errors in 1,500,000 requests, within the budget of 0.1 %."


@pytest.mark.parametrize(
    ("change", "check", "expected"),
    [
        ({"exit_status": None}, "exit_status", "invalid"),
        ({"exit_status": 1}, "exit_status", "invalid"),
        ({"exit_status": -1}, "exit_status", "invalid"),
        ({"boot_id_changed": True}, "boot_id", "invalid"),
        ({"boot_id_changed": None}, "boot_id", "warn"),
        ({"driver_cpu_mean_ratio": 0.80}, "driver_cpu", "ok"),
        ({"driver_cpu_mean_ratio": 0.81}, "driver_cpu", "warn"),
        ({"driver_cpu_max_ratio": 1.0}, "driver_cpu", "ok"),
        ({"driver_cpu_mean_ratio": None, "driver_cpu_max_ratio": 0.9}, "driver_cpu", "warn"),
        ({"driver_thread_max_ratio": 1.0}, "driver_cpu", "warn"),
        (
            {"driver_cpu_mean_ratio": None, "driver_cpu_max_ratio": None, "driver_thread_max_ratio": None},
            "driver_cpu",
            "warn",
        ),
        ({"sut_cpu_mean_ratio": 0.90}, "sut_cpu", "ok"),
        ({"sut_cpu_mean_ratio": 0.89}, "sut_cpu", "warn"),
        ({"sut_cpu_mean_ratio": None}, "sut_cpu", "skipped"),
        ({"steal_ratio": 0.01}, "steal", "ok"),
        ({"steal_ratio": 0.011}, "steal", "warn"),
        ({"steal_ratio": 0.05}, "steal", "warn"),
        ({"steal_ratio": 0.051}, "steal", "invalid"),
        ({"swap_pages": 1}, "swap", "invalid"),
        ({"swap_pages": None}, "swap", "skipped"),
        ({"governor": "schedutil"}, "governor", "warn"),
        ({"governor": None}, "governor", "skipped"),
        ({"network_stalled_s": 1}, "network_stall", "warn"),
        ({"network_stalled_s": 3}, "network_stall", "warn"),
        ({"network_stalled_s": 4}, "network_stall", "invalid"),
        ({"network_stalled_s": None}, "network_stall", "skipped"),
        ({"clock_offset_s": -0.29}, "clocks", "ok"),
        ({"clock_offset_s": 0.31}, "clocks", "invalid"),
        ({"clock_offset_s": None}, "clocks", "skipped"),
        ({"neighbours_ratio": 0.01}, "neighbours", "ok"),
        ({"neighbours_ratio": 0.011}, "neighbours", "warn"),
        ({"neighbours_ratio": 0.051}, "neighbours", "invalid"),
        ({"neighbours_ratio": None}, "neighbours", "skipped"),
        ({"steal_ratio": None}, "steal", "skipped"),
        ({"memory_available_ratio": 0.05}, "memory", "ok"),
        ({"memory_available_ratio": 0.049}, "memory", "warn"),
        ({"memory_available_ratio": None}, "memory", "skipped"),
        ({"mean_mhz": None}, "frequency", "skipped"),
        ({"throttle_count": 1}, "throttle", "invalid"),
        ({"throttle_count": None}, "throttle", "skipped"),
        ({"nic_node": 1}, "numa", "warn"),
        ({"nic_node": 1, "cpu_nodes": (0, 1)}, "numa", "ok"),
        ({"nic_node": None}, "numa", "skipped"),
        ({"cpu_nodes": ()}, "numa", "skipped"),
        ({"new_connections_per_s": 470.0}, "ports", "ok"),
        ({"new_connections_per_s": 471.0}, "ports", "warn"),
        ({"local_ports": None}, "ports", "skipped"),
        ({"gc": GcPauses(200, 1.5, 80.0, 0)}, "gc", "ok"),
        ({"gc": GcPauses(200, 1.51, 80.0, 0)}, "gc", "warn"),
        ({"gc": GcPauses(1, 0.02, 20.0, 1)}, "gc", "warn"),
        ({"gc": None}, "gc", "skipped"),
        ({"several_tools": True, "start_spread_s": 0.3}, "start_together", "ok"),
        ({"several_tools": True, "start_spread_s": 0.31}, "start_together", "warn"),
        ({"several_tools": True, "start_spread_s": 1.5}, "start_together", "warn"),
        ({"several_tools": True, "start_spread_s": 1.51}, "start_together", "invalid"),
        ({"several_tools": True, "start_spread_s": None}, "start_together", "warn"),
        ({"several_tools": False}, "start_together", None),
        ({"driver_unseen_s": 3.0}, "monitors", "ok"),
        ({"sut_unseen_s": 3.1}, "monitors", "warn"),
        ({"sut_unseen_s": None, "driver_unseen_s": None}, "monitors", "skipped"),
        ({"shared_cpus": True}, "shared_cpus", "warn"),
        ({"shared_cpus": None}, "shared_cpus", "skipped"),
    ],
)
def test_host_rules_at_their_limits(change: dict[str, Any], check: str, expected: str | None) -> None:
    validity = judge_run(WRK, replace(CALM, **change))
    assert level(validity, check) == expected
    assert validity.state == {"invalid": "invalid", "warn": "suspect"}.get(expected or "ok", "valid")
    if expected == "skipped":
        assert finding(validity, check).sentence.startswith("Not checked: ")


@pytest.mark.parametrize(
    ("load", "expected", "words"),
    [
        (WRK, "ok", "a stall counts once per connection"),
        (replace(WRK, tool="jmeter", habits=ToolHabits(), latency_basis="response_time"), "ok", "once per user"),
        (WRK2, "ok", "the wait for its turn is in it"),
        (replace(WRK2, tool="vegeta", habits=ToolHabits(), latency_basis="service_time"), "ok", "sent in time"),
        (
            replace(
                WRK2,
                tool="k6",
                habits=ToolHabits(),
                latency_basis="service_time",
                throughput_rps=1900,
                requests=114_000,
            ),
            "warn",
            "5.0 % of the offered requests were not sent in time",
        ),
    ],
    ids=["wrk", "jmeter", "wrk2", "vegeta", "k6 that dropped requests"],
)
def test_every_run_says_what_its_latency_leaves_out(load: LoadFigures, expected: str, words: str) -> None:
    found = finding(judge_run(load, CALM), "latency_basis")
    assert (found.level, words in found.sentence) == (expected, True)


def test_a_finding_carries_the_thresholds_that_were_used() -> None:
    strict = Thresholds(steal_warn_ratio=0.001, steal_invalid_ratio=0.002)
    found = finding(judge_run(WRK, replace(CALM, steal_ratio=0.0021), thresholds=strict), "steal")
    assert (found.level, found.thresholds) == ("invalid", {"steal_warn_ratio": 0.001, "steal_invalid_ratio": 0.002})


def test_a_gap_in_the_samples_is_told_in_seconds() -> None:
    text = finding(judge_run(WRK, replace(CALM, sut_unseen_s=12.0, driver_unseen_s=30.0)), "monitors").sentence
    assert text.startswith("Of the 30 s window the monitors missed 12 s of the SUT and 30 s of the driver host: ")


def test_a_long_window_tolerates_the_clock_offset_that_is_still_worth_a_warning() -> None:
    load = replace(WRK2, requested_duration_s=600, requests=1_200_000)
    assert level(judge_run(load, replace(CALM, clock_offset_s=0.6)), "clocks") == "warn"


def test_a_server_below_its_limit_may_be_idle() -> None:
    assert level(judge_run(WRK2, replace(CALM, sut_cpu_mean_ratio=0.2)), "sut_cpu") is None
    assert level(judge_run(SEVEN_THREADS, replace(CALM, sut_cpu_mean_ratio=0.2)), "sut_cpu") == "warn"


def test_a_full_driver_can_be_made_invalid() -> None:
    hosts = replace(CALM, driver_cpu_mean_ratio=0.95, driver_thread_max_ratio=1.0)
    text = (
        "The driver may have been the limit, not the SUT: "
        "its CPUs were 95 % busy (limit 80 %) and one of its threads was 100 % busy."
    )
    assert finding(judge_run(WRK, hosts), "driver_cpu").sentence == text
    assert judge_run(WRK, hosts, thresholds=Thresholds(driver_cpu_invalid=True)).state == "invalid"


def test_a_report_without_hosts_is_suspect_at_best() -> None:
    validity = judge_run(WRK)
    assert validity.state == "suspect"
    assert validity.reasons == (
        "Only the tool's report is known: its exit status and the state of the hosts were not seen.",
    )


def test_hosts_of_which_nothing_was_seen_are_no_success() -> None:
    assert judge_run(WRK, HostFigures()).state == "invalid"


def test_reasons_come_worst_first() -> None:
    validity = judge_run(WRK, replace(CALM, shared_cpus=True, swap_pages=7))
    assert validity.reasons[0] == "7 memory pages were swapped during the run."
    assert len(validity.reasons) == 2


def test_a_report_of_which_nothing_is_known_is_judged_without_a_crash() -> None:
    bare = LoadFigures(tool="hey", load_model="closed", latency_basis="service_time")
    assert judge_run(bare, HostFigures()).state == "invalid"


@pytest.mark.parametrize("name", [f.name for f in fields(LoadFigures) if f.default is None])
@pytest.mark.parametrize("load", [WRK, DEFAULT], ids=["wrk", "wrk2"])
def test_any_single_unknown_figure_is_tolerated(load: LoadFigures, name: str) -> None:
    unknown: dict[str, Any] = {name: None}
    for each in judge_run(replace(load, **unknown), CALM).findings:
        assert each.sentence.endswith(".")
        assert "None" not in each.sentence
