"""Every kind of event comes back from JSON as it was, and what a record remembers of it."""

from __future__ import annotations

import json
from typing import get_args

import pytest
from pydantic import ValidationError

from agents import events as e
from agents.base.setting_outcome import SettingOutcome

OUTCOME = SettingOutcome("vm.swappiness", "10", "60", "10", "applied", "")
ALL: list[e.AnyEvent] = [
    e.PhaseStarted("tune"),
    e.PhaseFinished("tune", 1.25),
    e.FactsCollected("sut", "digest", {"cpu.online": "0-3"}, "/home/b/.benchhub/runs/r1", "boot", -0.5, "4.2.0"),
    e.FactsCollected("driver", "digest", {}, "/d", "", None),
    e.SnapshotTaken("before", {"sysctl.vm.swappiness": "60", "x": "a\nb"}),
    e.StepIntended(1, "title", {"a": None, "b": "1"}, ("undo",)),
    e.StepApplied(1, (OUTCOME,), {"a": None, "b": "2"}),
    e.StepReverted(1),
    e.JobIntended("server", "sut", "/d/jobs/server", "cookie"),
    e.JobStarted("server", "sut", "/d/jobs/server", None, "cookie"),
    e.JobEnded("server", None),
    e.LoadStarted(1, True, 60, 1700000000.5),
    e.LoadReported(1, True, 0, "output\x00\ufffd", "00ff", {"tool": "wrk", "latency_p99_ms": 1.5}),
    e.Samples("sut", 1700000001.5, {"cpu.busy_ratio": ("ratio", 0.75)}),
    e.GcPausesRead((1700000001.5, 1700000002.5), (1.169, 20.0), (False, True), cut=True, instance=1),
    e.GcPausesRead((), (), (), course={"jvm.stopped_ratio": ((1700000001.0,), (0.5,))}),
    e.RecordingKept("driver-2", "nmon", "driver-2.nmon", 4096, "00ff"),
    e.ProfileTaken("", "topdown", "counters", "perf", 1.5, 9.5, 6.25, None, None, None, "profile.csv", {"ipc": 1.5}),
    e.ConfigurationCaptured({"jvm.flags.UseG1GC": "true"}),
    e.Logged("server", ("a", ""), "warning"),
    e.Failed("measure", "message", "hint", True),
    e.Restored({"sut": ("vm.swappiness was '60' and is '10'",), "driver-2": ("process 1 is left",)}, ("driver-2",)),
]


def test_every_kind_is_in_the_table() -> None:
    union = get_args(get_args(e.AnyEvent)[0])
    assert {type(event) for event in ALL} == set(union)


@pytest.mark.parametrize("event", ALL, ids=lambda event: event.kind)
def test_an_event_comes_back_from_json(event: e.AnyEvent) -> None:
    data = json.loads(json.dumps(e.to_json(event)))
    assert data["kind"] == event.kind
    assert e.from_json(data) == event


@pytest.mark.parametrize("data", [{"kind": "unheard_of"}, {"phase": "tune"}, {"kind": "phase_started", "phase": "nap"}])
def test_what_is_no_event_is_refused(data: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        e.from_json(data)


def test_every_phase_has_its_place() -> None:
    assert get_args(e.PhaseName) == e.PHASES
