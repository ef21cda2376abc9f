"""What the log of a JVM tells over time: logs of real JVMs that allocated a known amount, and lines of each form."""

from __future__ import annotations

from pathlib import Path
from statistics import mean

import pytest

from agents.formats.jvm_log import course_of, named, read_collections, read_safepoints

CASES = Path(__file__).parents[1] / "cases" / "jvm_log"
RAN_S = 4.0
LOGS = {
    "java17-serial": (729_500_976, 41, 41),
    "java17-parallel": (729_500_976, 37, 37),
    "java17-g1": (755_000_768, 21, 21),
    "java17-z": (745_811_464, 24, 72),
    "java17-shenandoah": (423_252_232, 13, 39),
    "java21-g1": (None, 21, 21),
    "java21-generational-z": (None, 20, 73),
    "java11-g1": (None, 21, 23),
}
"""What the only busy thread of a program had allocated in its four seconds by its own word (com.sun.management), how
often was collected, and how often all threads were stopped."""
START = "[2026-11-23T10:00:0{}.{}+0000][info][{}] "


def log(*lines: tuple[str, str, str]) -> str:
    return "".join(START.format(*at.split("."), tags) + text + "\n" for at, tags, text in lines)


@pytest.mark.parametrize("name", LOGS)
def test_a_real_log_tells_what_was_allocated_and_how_often_the_jvm_stopped(name: str) -> None:
    allocated, collections, safepoints = LOGS[name]
    text = (CASES / f"{name}.log").read_text()
    assert len(read_collections(text)) == collections
    assert len(read_safepoints(text)) == safepoints
    course = course_of(text)
    assert set(course) == {
        "heap_after_gc_bytes", "allocated_bytes_per_s", "safepoints_per_s", "stopped_ratio", "reaching_safepoint_ratio",
    }  # fmt: skip
    assert all(0 <= value <= 64 << 20 for value in course["heap_after_gc_bytes"][1])
    if allocated is not None:
        assert mean(course["allocated_bytes_per_s"][1]) == pytest.approx(allocated / RAN_S, rel=0.08)
    assert all(0 < value < 0.1 for value in course["stopped_ratio"][1])
    reaching, stopped = (course[name][1] for name in ("reaching_safepoint_ratio", "stopped_ratio"))
    assert all(way < whole for way, whole in zip(reaching, stopped, strict=True))


def test_allocated_is_what_the_heap_grew_by_between_collections() -> None:
    text = log(
        ("1.000", "gc", "GC(0) Pause Young (Normal) (G1 Evacuation Pause) 30M->4M(64M) 100.000ms"),
        ("3.100", "gc", "GC(1) Pause Young (Normal) (G1 Evacuation Pause) 44M->5M(64M) 100.000ms"),
        ("4.100", "gc", "GC(2) Pause Remark 15M->15M(64M) 0.000ms"),
    )
    at_unix_s, rates = course_of(text)["allocated_bytes_per_s"]
    # 40 MB in 2 s, then 100 ms in which nobody could allocate, then 10 MB in a second of which only a tenth is left.
    assert [round(rate / (1 << 20), 3) for rate in rates] == [20.0, 20.0, 9.0]
    assert [at - at_unix_s[0] for at in at_unix_s] == [0.0, 1.0, 2.0]
    heap = course_of(text)["heap_after_gc_bytes"][1]
    assert heap == (4 << 20, 5 << 20)


def test_nothing_is_said_of_what_is_allocated_while_a_collection_runs_beside_the_program() -> None:
    begins, ends = "GC(7) Garbage Collection (Proactive)", "GC(7) Garbage Collection (Proactive) 30M(47%)->10M(16%)"
    text = log(
        ("0.000", "gc", "GC(6) Pause Full (System.gc()) 30M->10M(64M) 5.000ms"),
        ("1.000", "gc,start", begins),
        ("3.000", "gc", ends),
        ("4.000", "gc", "GC(8) Pause Full (System.gc()) 40M->10M(64M) 0.000ms"),
    )
    at_unix_s, rates = course_of(text)["allocated_bytes_per_s"]
    assert [round(rate / (1 << 20)) for rate in rates] == [20, 30]
    assert at_unix_s[1] - at_unix_s[0] == 3.0


def test_a_second_without_a_safepoint_between_others_has_none_and_those_around_are_unknown() -> None:
    stop = 'Safepoint "Cleanup", Time since last: 9 ns, Reaching safepoint: 50000000 ns, Total: 250000000 ns'
    course = course_of(log(("0.000", "safepoint", stop), ("1.500", "safepoint", stop), ("4.000", "safepoint", stop)))
    assert course["safepoints_per_s"][1] == (1.0, 1.0, 0.0, 0.0)
    assert course["stopped_ratio"][1] == pytest.approx((0.0, 0.25, 0.0, 0.25))
    assert course["reaching_safepoint_ratio"][1] == pytest.approx((0.0, 0.05, 0.0, 0.05))


def test_a_log_without_anything_tells_nothing() -> None:
    assert course_of("") == {}
    assert course_of(log(("1.000", "gc,init", "Heap Region Size: 1M"))) == {}


def test_several_instances_have_channels_of_their_own() -> None:
    course = {"stopped_ratio": ((1.0,), (0.5,))}
    assert set(named(course, 0, 1)) == {"jvm.stopped_ratio"}
    assert set(named(course, 1, 2)) == {"jvm.2.stopped_ratio"}


def test_a_clock_that_was_set_and_days_that_do_not_exist_make_no_points() -> None:
    """The log is read in the worker that keeps the leases: from 1970 to now there are 1.8 thousand million seconds."""
    told = 'Safepoint "X", Time since last: 1 ns, Reaching safepoint: 5 ns, Total: 9 ns'
    stop = "[{}T10:00:01.000+0000][info][safepoint] " + told
    days = ("1970-01-01", "2026-02-31", "2026-11-22", "2026-11-23")
    text = "\n".join(stop.format(day) for day in days)
    assert len(read_safepoints(text)) == 3
    assert len(course_of(text)["safepoints_per_s"][0]) == 86_400
    assert read_safepoints(stop.format("2026-11-23").replace("T10", "T99")) == []


def test_a_stop_whose_threads_took_longer_to_reach_it_than_it_lasted_makes_no_points_of_centuries() -> None:
    stop = 'Safepoint "X", Time since last: 1 ns, Reaching safepoint: {} ns, Total: 9 ns'
    lines = [f"[2026-11-23T10:00:0{at}.000+0000][info][safepoint] " + stop.format(5) for at in (1, 3)]
    lines.append("[2026-11-23T10:00:05.000+0000][info][safepoint] " + stop.format(10**15))
    course = course_of("\n".join(lines))
    assert len(course["safepoints_per_s"][0]) == 4
    assert max(course["reaching_safepoint_ratio"][1]) < 1
