"""What the hosts showed during a run, from samples and events to the findings that the run keeps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from agents import events as e
from experiments.asking.launching.choices import Candidate, Choice
from experiments.asking.launching.creating import create_experiment
from experiments.asking.launching.launch import launch_experiment, launch_run
from experiments.judging.evidence.judgement import unseen_s
from experiments.judging.gate.decision import experiment_gate
from experiments.judging.gate.rules import GateRules
from experiments.judging.verdicts.arms import behind_driver
from experiments.judging.verdicts.verdict_numbers import VerdictNumbers
from experiments.models import Application, Experiment, Member, Recipe, Run, StoredVerdict
from experiments.registry.documents.versions import save_version
from tests.experiments.conftest import ready_host
from tests.experiments.finished import finish_next, report, whole_run

Line = tuple[e.Role, str, str, Sequence[float]]
"""Role, channel, unit, and values from one second before measuring on, one per second."""


@pytest.fixture
def queued(admin: Member, stock: dict[str, Any]) -> Run:
    return launch_run(admin, Choice(**stock))


def flat(value: float) -> list[float]:
    return [value] * 13


def with_lines(*lines: Line, profile: Mapping[str, str] | None = None) -> list[e.AnyEvent]:
    """A good run of 10 s whose monitors saw this too, and whose SUT has this profile."""
    found: list[e.AnyEvent] = []
    for event in whole_run():
        if isinstance(event, e.FactsCollected) and profile and event.role == "sut":
            event = replace(event, profile=profile)
        found.append(event)
        if isinstance(event, e.LoadStarted):
            for role, channel, unit, values in lines:
                for second, value in enumerate(values, start=-1):
                    found.append(e.Samples(role, 1000.0 + second, {channel: (unit, value)}))
    return found


def finding(run: Run, check: str) -> dict[str, Any]:
    return next(found for found in run.findings if found["check"] == check)


BUSY: list[Line] = [
    ("sut", "cpu_set.interrupt_ratio", "ratio", flat(0.02)),
    *(("sut", f"cpu.{cpu}.busy_ratio", "ratio", flat(0.9)) for cpu in range(4)),
]
TWO_NODES = {"cpu.online": "0-3", **{f"cpu.core_of.{cpu}": f"{cpu // 2}/0/{cpu}" for cpu in range(4)}}
THREADS: list[Line] = [
    (role, f"threads.http-nio-8080-{name}.{what}", what, flat(value))
    for role, name, what, value in (
        ("sut", "e", "cpu_ratio", 3.2),
        ("sut", "e", "count", 200.0),
        ("sut", "P", "cpu_ratio", 0.5),
        ("sut", "P", "count", 1.0),
        ("driver", "e", "cpu_ratio", 9.0),
    )
]
PACKETS: list[Line] = [("sut", "network.eth0.rx_packets_per_s", "packets_per_s", flat(50_000.0))]
STOPPED: list[Line] = [("sut", "cpu_quota.throttled_ratio", "ratio", flat(0.0))]
QUOTA: list[Line] = [
    ("driver", "cpu_quota.count", "count", flat(1.5)),
    ("driver", "cpu_quota.throttled_ratio", "ratio", flat(0.42)),
    ("driver", "process.cpu_ratio", "ratio", flat(1.47)),
    ("driver", "cpu_set.busy_ratio", "ratio", flat(0.03)),
]
PORTS: list[Line] = [("driver", "tcp.local_ports_count", "count", flat(28_232.0))]


@pytest.mark.parametrize(
    ("lines", "profile", "check", "level", "words"),
    [
        # 4 CPUs 90 % busy, 2 % of it interrupts, 3.5 CPUs of it the server: 0.5 % are left for others.
        (BUSY, None, "neighbours", "ok", "Other processes used 0.5 % of the server's CPUs"),
        (
            [*BUSY[1:], ("sut", "cpu_set.interrupt_ratio", "ratio", flat(0.0))],
            None,
            "neighbours",
            "warn",
            "used 2.5 % of the server's CPUs (limit 1 %)",
        ),
        ([], None, "neighbours", "skipped", "was not measured"),
        (
            [("sut", "swap.pages_count", "count", [7.0, 7.0, *[9.0] * 11])],
            None,
            "swap",
            "invalid",
            "2 memory pages were swapped",
        ),
        # What was swapped before measuring began, or after it ended, does not count.
        ([("sut", "swap.pages_count", "count", [1.0, *[9.0] * 11, 500.0])], None, "swap", "ok", "No memory page"),
        ([], None, "swap", "skipped", "Not checked"),
        (
            [("sut", "frequency.throttle_count", "count", [34.0] * 6 + [35.0] * 7)],
            None,
            "throttle",
            "invalid",
            "slowed down 1 time because",
        ),
        # Full at the 1.5 CPUs that its control group allows, though the machine of 64 shows 3 %.
        (QUOTA, None, "driver_cpu", "warn", "its CPUs were 98 % busy"),
        (QUOTA, None, "cpu_quota", "warn", "to 1.5 CPUs, and stopped it in 42.0 % of the periods of the window"),
        ([("sut", "cpu_quota.count", "count", flat(4.0)), STOPPED[0]], None, "cpu_quota", "ok", "stopped no process"),
        ([("sut", "cpu_quota.count", "count", flat(4.0))], None, "cpu_quota", "warn", "stopped a process is unknown"),
        ([("sut", "cpu_set.mean_mhz", "mhz", flat(2750.0))], None, "frequency", "ok", "ran at 2,750 MHz"),
        ([], {"power.governor": "schedutil"}, "governor", "warn", '"schedutil"'),
        (
            [
                ("sut", "memory.available_bytes", "bytes", [*[90.0] * 5, 4.0, *[90.0] * 7]),
                ("sut", "memory.used_bytes", "bytes", [*[10.0] * 5, 96.0, *[10.0] * 7]),
            ],
            None,
            "memory",
            "warn",
            "Only 4.0 % of the SUT's memory",
        ),
        (PACKETS, {**TWO_NODES, "nic.eth0.numa_node": "1"}, "numa", "ok", "share NUMA node 1"),
        (PACKETS, TWO_NODES, "numa", "skipped", "is unknown"),
        (PACKETS, {"cpu.core_of.0": "0/0/0"}, "numa", "ok", "share NUMA node 0"),
        (
            [("sut", "network.lo.rx_packets_per_s", "packets_per_s", flat(5.0))],
            TWO_NODES,
            "numa",
            "skipped",
            "loopback",
        ),
        (
            [*PORTS, ("driver", "tcp.opened_connections_per_s", "connections_per_s", flat(900.0))],
            None,
            "ports",
            "warn",
            "opened 900 connections/s; its 28,232 ports last for 471 per second",
        ),
        ([], None, "ports", "skipped", "were not seen"),
        ([], None, "gc", "skipped", "the JVM wrote no log"),
        (
            [*BUSY, *THREADS],
            None,
            "threads",
            "ok",
            "used 3.20 of 4 CPUs; next http-nio-8080-P (1 thread) used 0.50. 200 request threads and the poller used",
        ),
        ([], None, "threads", "skipped", "was not measured"),
        (PACKETS, None, "steady_state", "skipped", "batches of 5 s"),
        ([], None, "steady_state", "skipped", "no series of the load"),
        (
            [("sut", "network.lo.rx_packets_per_s", "packets_per_s", flat(5.0))],
            None,
            "steady_state",
            "skipped",
            "no series of the load",
        ),
    ],
)
def test_what_the_hosts_showed_becomes_a_finding(
    queued: Run, lines: list[Line], profile: Mapping[str, str] | None, check: str, level: str, words: str
) -> None:
    run = finish_next(with_lines(*lines, profile=profile))
    found = finding(run, check)
    assert (found["level"], words in found["sentence"]) == (level, True), found["sentence"]
    assert found["source"]


def test_pauses_of_the_collector_inside_the_window_count_and_are_drawn(queued: Run) -> None:
    events = whole_run()
    # The SUT's clock is 5 s ahead; the pauses at 1 s and 9 s of the window count, those before and after do not.
    events = [
        replace(event, clock_offset_s=5.0) if isinstance(event, e.FactsCollected) and event.role == "sut" else event
        for event in events
    ]
    course = {"jvm.heap_after_gc_bytes": ((1006.0, 1014.0), (3e6, 4e6)), "jvm.2.stopped_ratio": ((1007.0,), (0.4,))}
    pauses = (1004.0, 1006.0, 1014.0, 1016.0), (900.0, 400.0, 200.0, 900.0), (True, False, False, True)
    read = e.GcPausesRead(*pauses, course=course)
    events.insert(next(i for i, event in enumerate(events) if isinstance(event, e.LoadReported)), read)
    run = finish_next(events)
    found = finding(run, "gc")
    assert found["level"] == "warn"
    assert found["sentence"].startswith("The JVM stood still for garbage collection 6.0 % of the time (limit 5 %)")
    assert (found["evidence"]["pauses"], found["evidence"]["full_collections"]) == (2, 0)
    line = run.samples.get(role="sut", channel="gc.pause_ms")
    assert (line.at_s, line.values) == ([-1.0, 1.0, 9.0, 11.0], [900.0, 400.0, 200.0, 900.0])
    heap = run.samples.get(role="sut", channel="jvm.heap_after_gc_bytes")
    assert (heap.unit, heap.at_s, heap.values) == ("bytes", [1.0, 9.0], [3e6, 4e6])
    stopped = run.samples.get(role="sut", channel="jvm.2.stopped_ratio")
    assert (stopped.unit, stopped.at_s, stopped.values) == ("ratio", [2.0], [0.4])


def test_pauses_and_gaps_of_a_member_count_for_the_run_of_its_system(admin: Member, stock: dict[str, Any]) -> None:
    app = {"role": "app", "server": {"kind": "tomcat", "home": "/opt/tomcat", "port": 9000}}
    web = {"role": "web", "server": {"kind": "nginx", "proxy_to": ["${app.address}:${app.port}"]}, "members": [app]}
    application = save_version(admin, Application, "two tiers", web)
    members = {"app": ready_host(admin, "behind", address="10.0.0.9")}
    launch_run(admin, Choice(**{**stock, "application": application, "members": members}))
    events: list[e.AnyEvent] = []
    for event in with_lines(("app", "swap.pages_count", "count", [7.0] * 6 + [9.0] * 7)):
        if isinstance(event, e.LoadReported):  # the clock of the member's host is 5 s ahead
            events.append(e.GcPausesRead((1006.0, 1008.0), (900.0, 400.0), (False, True), role="app"))
        events.append(event)
        if isinstance(event, e.FactsCollected) and event.role == "sut":
            events.append(replace(event, role="app", boot_id="boot-3", clock_offset_s=5.0))
    run = finish_next(events)
    gc, swap = finding(run, "gc"), finding(run, "swap")
    assert (gc["level"], swap["level"]) == ("warn", "invalid")
    assert gc["sentence"].startswith("app: The JVM stood still for garbage collection 13.0 % of the time")
    assert swap["sentence"] == "app: 2 memory pages were swapped during the run."
    line = run.samples.get(role="app", channel="gc.pause_ms")
    assert (line.at_s, line.values) == ([1.0, 3.0], [900.0, 400.0])


def test_of_several_instances_the_one_that_paused_longest_is_judged(queued: Run) -> None:
    events = whole_run()
    reads = [
        e.GcPausesRead((1002.0, 1004.0), (100.0, 700.0), (False, False), instance=0),
        e.GcPausesRead((1003.0,), (300.0,), (True,), instance=1),
    ]
    place = next(i for i, event in enumerate(events) if isinstance(event, e.LoadReported))
    events[place:place] = reads
    run = finish_next(events)
    sentence = finding(run, "gc")["sentence"]
    assert sentence.startswith("The JVM that paused longest, of 2, stood still for garbage collection 8.0 %")
    assert "made 1 full collection;" in sentence
    assert run.samples.get(channel="gc.pause_ms").at_s == [2.0, 3.0, 4.0]


@pytest.mark.parametrize(
    ("at_s", "expected"),
    [
        ([1, 2, 3, 4, 5, 6, 7, 8, 9, 10], 0),
        ([0.4, 1.5, 2.6, 3.8, 4.9, 6.1, 7.2, 8.3, 9.4], 0),
        ([-2, -1, 0, 1, 2, 7, 8, 9, 10, 11], 4),
        ([5, 6, 7, 8, 9, 10], 4),
        ([1, 2, 3], 7),
        ([], 10),
        ([-5, -4, 20], 10),
    ],
)
def test_seconds_that_no_sample_speaks_for_are_counted(at_s: Iterable[float], expected: float) -> None:
    assert unseen_s(list(at_s), 10.0, 1.0) == pytest.approx(expected)


def test_a_run_that_lost_its_monitors_for_a_while_is_suspect_and_says_for_how_long(queued: Run) -> None:
    events = [
        event
        for event in whole_run()
        if not (isinstance(event, e.Samples) and event.role == "sut" and 1002.0 < event.at_unix_s < 1007.0)
    ]
    run = finish_next(events)
    assert run.validity == "suspect"
    assert "Of the 10 s window the monitors missed 4 s of the SUT" in finding(run, "monitors")["sentence"]


def test_findings_are_stored_with_the_thresholds_that_were_used(queued: Run) -> None:
    run = finish_next()
    assert finding(run, "driver_cpu")["thresholds"] == {
        "driver_cpu_ratio": 0.8,
        "driver_thread_ratio": 0.99,
        "driver_cpu_invalid": False,
    }


def experiment_of(admin: Member, stock: dict[str, Any], other_steps: list[dict[str, Any]] | None = None) -> Experiment:
    """Two variants with five repetitions each, launched; `other` has these steps in place of the baseline's."""
    sides = {key: stock[key] for key in ("application", "recipe", "sut", "drivers")}
    other = dict(sides)
    if other_steps is not None:
        other["recipe"] = save_version(admin, Recipe, "other steps", {"steps": other_steps})
    candidates = [Candidate(name="default", **sides), Candidate(name="other", **other)]
    made = create_experiment(admin, name="why", workload=stock["workload"], candidates=candidates, repetitions=5)
    launch_experiment(admin, made)
    return made


def finish_experiment(
    made: Experiment, other_rps: float, *, other_mhz: float = 2400.0, driver_busy_ratio: float = 0.3
) -> StoredVerdict:
    """Let all runs happen: the baseline makes 1,000 requests/s at 2,400 MHz."""
    for number in range(10):
        run = made.runs.filter(state="queued").order_by("id").first()
        assert run is not None
        assert run.variant is not None
        is_other = run.variant.name == "other"
        load = report((other_rps if is_other else 1000.0) + number % 3)
        events = []
        for event in with_lines(("sut", "cpu_set.mean_mhz", "mhz", flat(other_mhz if is_other else 2400.0))):
            if isinstance(event, e.LoadReported):
                event = replace(event, report=load)
            elif isinstance(event, e.Samples) and event.role == "driver":
                event = replace(event, values={"cpu_set.busy_ratio": ("ratio", driver_busy_ratio)})
            events.append(event)
        finish_next(events)
    return StoredVerdict.objects.get(metric="throughput_rps")


@pytest.mark.parametrize(
    ("other_mhz", "other_steps", "outcome", "words"),
    [
        (2400.0, None, "better", "faster"),
        (2900.0, None, "invalid", "ran at 2,400 MHz in default and at 2,900 MHz in other, 20.8 % apart"),
        (2900.0, [{"kind": "governor", "governor": "performance"}], "better", "faster"),
    ],
    ids=["same clock", "another clock", "asked for"],
)
def test_variants_that_ran_at_other_clocks_are_not_compared(
    admin: Member,
    stock: dict[str, Any],
    other_mhz: float,
    other_steps: list[dict[str, Any]] | None,
    outcome: str,
    words: str,
) -> None:
    verdict = finish_experiment(experiment_of(admin, stock, other_steps), 1200.0, other_mhz=other_mhz)
    assert (verdict.outcome, words in verdict.sentence) == (outcome, True), verdict.sentence


@pytest.mark.parametrize(
    ("busy_ratio", "other_rps", "outcome", "words"),
    [
        (0.30, 1000.0, "no_practical_difference", "no difference between"),
        (0.95, 1000.0, "inconclusive", "so their throughput is the driver's and not the servers'. Otherwise: "),
        (0.95, 1200.0, "inconclusive", "The driver was full in 10 of 10 runs, of both variants, so their throughput"),
        (0.95, 800.0, "inconclusive", "The driver was full in 10 of 10 runs, of both variants, so their throughput"),
    ],
    ids=["a driver with CPU to spare", "no difference behind a full one", "faster behind it", "slower behind it"],
)
def test_a_full_driver_is_no_proof_that_two_servers_are_alike(
    admin: Member, stock: dict[str, Any], busy_ratio: float, other_rps: float, outcome: str, words: str
) -> None:
    verdict = finish_experiment(experiment_of(admin, stock), other_rps, driver_busy_ratio=busy_ratio)
    assert (verdict.outcome, words in verdict.sentence) == (outcome, True), verdict.sentence
    made = verdict.experiment
    if busy_ratio > 0.8:
        assert VerdictNumbers.of(verdict).doubt == "The driver was full in 10 of 10 runs, of both variants."
        assert experiment_gate(made).outcome == "inconclusive"
    assert experiment_gate(made, GateRules(margin_ratio=0.04)).outcome == experiment_gate(made).outcome


@pytest.mark.parametrize(
    ("full", "metric", "outcome", "stands", "words"),
    [
        ({1, 2, 11, 12}, "throughput_rps", "worse", "worse", "It is so."),
        ({1, 2, 3, 11, 12, 13}, "throughput_rps", "worse", "inconclusive", "their throughput is the driver's"),
        ({1, 2, 3, 11, 12, 13}, "latency_p99_ms", "better", "inconclusive", "their latency is the driver's"),
        ({1, 2, 3, 11, 12, 13}, "cpu_ms_per_request", "worse", "worse", "see whether it was the limit."),
        ({1, 2, 3, 4, 5}, "throughput_rps", "worse", "worse", "see whether it was the limit."),
        ({1, 2, 3, 4, 5}, "throughput_rps", "no_practical_difference", "inconclusive", "may hide a difference"),
        ({1, 2, 3, 11, 12, 13}, "throughput_rps", "invalid", "invalid", "It is so."),
    ],
)
def test_a_driver_that_was_full_in_both_arms_measured_itself(
    full: set[int], metric: str, outcome: str, stands: str, words: str
) -> None:
    found = behind_driver([[1, 2, 3, 4, 5], [11, 12, 13, 14, 15]], full, metric, outcome, "It is so.")
    assert (found.outcome, words in found.sentence) == (stands, True), found.sentence
