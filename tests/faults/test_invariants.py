"""The checker itself: a whole story passes, and each way of breaking it is reported."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.faults.invariants import Event, HostStory, RunStory, Story, check

START = datetime(2025, 1, 1, tzinfo=UTC)
OUTPUT = "Requests/sec: 10\n"
SHA256 = hashlib.sha256(OUTPUT.encode()).hexdigest()
COOKIES = {name: f"{number}" * 16 for number, name in enumerate(("server", "load-0", "load-1"))}


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def events(first: int = 1, fences: tuple[int, int] = (4, 5)) -> tuple[Event, ...]:
    """A run that another worker took up in the middle."""
    told: list[tuple[str, dict[str, Any]]] = [
        ("phase_started", {"phase": "connect"}),
        *(("job_intended", {"name": name, "cookie": cookie * first}) for name, cookie in COOKIES.items()),
        ("load_started", {"index": 1, "measured": True}),
        ("load_reported", {"index": 1, "measured": True, "exit_status": 0, "output": OUTPUT, "sha256": SHA256}),
        ("restored", {"differences": []}),
        ("logged", {"lines": ["The end."]}),
    ]
    return tuple(
        Event(number, kind, payload, fences[number > 4], at(first * 100 + number))
        for number, (kind, payload) in enumerate(told, start=1)
    )


RUN = RunStory(
    number=1,
    token="t1",
    sut="a",
    drivers=("b",),
    state="finished",
    outcome="succeeded",
    validity="valid",
    restore="verified",
    fence=5,
    attempts=2,
    started_at=at(100),
    finished_at=at(150),
    errors_total=0,
    loads=2,
    finding_levels=("info",),
    events=events(),
    artifacts={"1-measure-wrk.txt": (SHA256, OUTPUT.encode())},
)
AFTER_IT = replace(
    RUN, number=2, token="t2", fence=7, started_at=at(200), finished_at=at(250), events=events(2, (6, 7))
)
SUT = HostStory(
    name="a",
    state="ready",
    before={"app.conf": "644 0"},
    after={"app.conf": "644 0"},
    starts=(f"start {COOKIES['server']}", f"start {COOKIES['server'] * 2}"),
    changes=("begin t1", "begin t1", "end t1", "end t1", "begin t2", "end t2"),
)
DRIVER = HostStory(
    name="b",
    state="ready",
    starts=tuple(f"start {COOKIES[name] * times}" for times in (1, 2) for name in ("load-0", "load-1")),
)
WHOLE = Story(
    runs=(RUN, AFTER_IT),
    hosts=(SUT, DRIVER),
    traces={"the log one.log": "run 1: claimed"},
    secrets={"the password": "hunter2"},
)


def run(**changes: Any) -> Story:
    return replace(WHOLE, runs=(replace(RUN, **changes), AFTER_IT))


def sut(**changes: Any) -> Story:
    return replace(WHOLE, hosts=(replace(SUT, **changes), DRIVER))


def driver(**changes: Any) -> Story:
    return replace(WHOLE, hosts=(SUT, replace(DRIVER, **changes)))


def with_event(index: int, **changes: Any) -> Story:
    """The first run with one event changed."""
    told = list(RUN.events)
    told[index] = replace(told[index], **changes)
    return run(events=tuple(told))


def reported(**changes: Any) -> Story:
    return with_event(5, payload={**RUN.events[5].payload, **changes})


def more(kind: str, payload: dict[str, Any] | None = None) -> Story:
    """The first run with one event more at its end."""
    return run(events=(*RUN.events, Event(9, kind, payload or {}, 5, at(149))))


DOCTORED: dict[str, tuple[Story, str]] = {
    "no outcome": (run(outcome=""), "without an outcome"),
    "an end without a time": (run(finished_at=None), "nobody knows when"),
    "two ends": (more("restored"), "ended more than once"),
    "two failures": (
        run(events=(*RUN.events, *(Event(9 + n, "failed", {}, 5, at(149)) for n in (0, 1)))),
        "2 events 'failed'",
    ),
    "work after the end": (more("step_applied"), "goes on with 'step_applied'"),
    "success without a restore": (
        run(events=tuple(e for e in RUN.events if e.kind != "restored")),
        "without a restore",
    ),
    "a load that was started twice": (
        driver(starts=(*DRIVER.starts, f"start {COOKIES['load-1']}")),
        "started load-1 2 times",
    ),
    "a server that was started twice": (
        sut(starts=(*SUT.starts, f"start {COOKIES['server']}")),
        "started server 2 times",
    ),
    "a second job for one load": (more("job_intended", {"name": "load-1", "cookie": "x" * 16}), "intended load-1 2"),
    "a load out of nowhere": (driver(starts=(*DRIVER.starts, "start elsewhere")), "that no run had intended"),
    "a torn witness": (driver(starts=(*DRIVER.starts, "start")), "that no run had intended"),
    "success without load": (driver(starts=DRIVER.starts[2:]), "load-0 was never started"),
    "two runs on one host": (run(finished_at=at(201)), "a was used by runs #1 and #2 at the same time"),
    "a run that never let go": (
        run(finished_at=None, state="restoring", outcome=""),
        "b was used by runs #1 and #2 at the same time",
    ),
    "an event from before the lease": (run(started_at=at(103)), "before its hosts were leased"),
    "a change while another holds the host": (
        sut(changes=("begin t1", "begin t2", "end t2", "end t1")),
        "t2 was applied while t1 held the host",
    ),
    "an undo while another holds the host": (
        sut(changes=("begin t1", "end t1", "begin t2", "end t1", "end t2")),
        "t1 was undone while t2 held the host",
    ),
    "a change after the undo": (
        sut(changes=("begin t1", "end t1", "begin t1", "begin t2", "end t2")),
        "t1 was applied again after",
    ),
    "an event of a stale holder": (with_event(6, fence=4), "event 7 has fence 4, after one with 5"),
    "events out of order": (with_event(6, seq=6), "event 6 comes after event 6"),
    "a fence out of nowhere": (with_event(7, fence=9), "which nobody claimed"),
    "more holders than attempts": (run(attempts=1), "2 holders in 1 attempts"),
    "a fence that the host has seen before": (
        replace(WHOLE, runs=(RUN, replace(AFTER_IT, events=events(2, (5, 7))))),
        "run #2 has no greater fence than run #1",
    ),
    "an artifact that changed": (
        run(artifacts={"1-measure-wrk.txt": (SHA256, b"Requests/sec: 99\n")}),
        "artifact 1-measure-wrk.txt is not what",
    ),
    "an output that changed": (reported(output="Requests/sec: 99\n"), "output of load 1 is not what"),
    "valid with an unknown exit status": (reported(exit_status=None), "exit status is None"),
    "valid with True for an exit status": (reported(exit_status=False), "exit status is False"),
    "valid with a tool that failed": (reported(exit_status=1), "exit status is 1"),
    "valid without the tool's output": (run(artifacts={}), "output was not kept"),
    "valid without a report": (run(events=RUN.events[:5] + RUN.events[6:]), "0 measured reports"),
    "valid with errors": (run(errors_total=3), "counts 3 errors"),
    "valid without a count of errors": (run(errors_total=None), "counts None errors"),
    "valid with a saturated driver": (run(finding_levels=("warn",)), "findings against it"),
    "valid though it failed": (run(outcome="failed"), "outcome is 'failed'"),
    "valid though the host was restarted": (sut(reboots=(at(105.5),)), "a was restarted under the load"),
    "a holder that goes on after the end": (
        run(events=(*RUN.events, Event(9, "step_reverted", {}, 5, at(160)))),
        "was finished, and its holder went on with 'step_reverted'",
    ),
    "a process that is left": (run(processes=("77 wrk",)), "its process 77 wrk is left"),
    "a directory that is left": (sut(directories=("r1-65f0",)), "the directory r1-65f0 is left"),
    "a lease of a finished run": (sut(leased_by=1), "still leased by run #1, which is finished"),
    "a secret in a log": (
        replace(WHOLE, traces={"the log one.log": "password=hunter2"}),
        "the password stands in the log one.log",
    ),
    "a run that never ends": (run(state="measuring", outcome=""), "never ended: it is measuring"),
    "a lease that nobody gives back": (sut(leased_by=9), "still leased by run #9"),
    "a host that is not as before": (sut(after={"app.conf": "644 1"}), "ready, yet not as before: app.conf"),
    "a file that is left": (sut(after={**SUT.after, "new": "644 2"}), "not as before: new"),
    "a file that is gone": (sut(after={}), "not as before: app.conf"),
    "a dirty host without a word": (sut(state="dirty", after={}), "nothing says what is not as before"),
}


def test_a_whole_story_breaks_nothing() -> None:
    assert check(WHOLE) == []


@pytest.mark.parametrize(("story", "problem"), DOCTORED.values(), ids=DOCTORED)
def test_a_broken_story_is_reported(story: Story, problem: str) -> None:
    assert [found for found in check(story) if problem in found]


FINE: dict[str, Callable[[], Story]] = {
    "a dirty host that says what differs": lambda: sut(
        state="dirty", after={}, differences=("app.conf was changed by somebody else",), directories=("r1-65f0",)
    ),
    "a person cleared the host": lambda: sut(changes=("begin t1", "cleared", "begin t2", "end t2")),
    "a restart before the load": lambda: sut(reboots=(at(101),)),
    "a dirty host that was put back later": lambda: run(
        fence=6,
        events=(
            *RUN.events,
            Event(9, "step_reverted", {}, 6, at(160)),
            Event(10, "restored", {"differences": []}, 6, at(161)),
        ),
    ),
    "a dirty host that is being put back": lambda: sut(state="dirty", differences=("away",), leased_by=1),
    "samples after the end": lambda: more("samples"),
}


@pytest.mark.parametrize("story", FINE.values(), ids=FINE)
def test_what_only_looks_broken_is_not_reported(story: Callable[[], Story]) -> None:
    assert check(story(), ended=False) == []


def test_while_runs_are_under_way_only_what_always_holds_is_asked() -> None:
    live = replace(
        AFTER_IT,
        state="measuring",
        outcome="",
        validity="",
        finished_at=None,
        events=AFTER_IT.events[:4],
        processes=("78 wrk",),
    )
    story = replace(
        WHOLE,
        runs=(RUN, live),
        hosts=(
            replace(SUT, leased_by=2, after={"app.conf": "tuned"}, changes=SUT.changes[:-1]),
            replace(DRIVER, leased_by=2),
        ),
    )
    assert check(story, ended=False) == []
    assert check(story) != []
