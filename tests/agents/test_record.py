"""A record is folded from events: what they add up to, and what passes by."""

from __future__ import annotations

from agents import events as e
from agents.record import Record


def test_an_empty_record_is_a_run_that_has_not_begun() -> None:
    assert Record.fold([]) == Record()


def test_events_add_up() -> None:
    facts = e.FactsCollected("sut", "d", {}, "/d", "boot")
    intended, applied = e.StepIntended(1, "t", {"a": "1"}, ()), e.StepApplied(1, (), {"a": "2"})
    load, report = e.LoadStarted(0, True, 5, 100.0), e.LoadReported(0, True, 0, "", "", {})
    record = Record.fold(
        [
            e.PhaseStarted("facts"),
            facts,
            e.PhaseFinished("facts", 0.1),
            e.SnapshotTaken("before", {"x": "1"}),
            intended,
            applied,
            e.JobIntended("server", "sut", "/d/s", "c"),
            e.JobStarted("server", "sut", "/d/s", 7, "c"),
            load,
            e.Samples("sut", 101.0, {}),
            e.Logged("runner", ("x",)),
            report,
            e.JobEnded("server", 143),
            e.StepReverted(1),
            e.SnapshotTaken("after", {"x": "2"}),
        ]
    )
    assert record.finished_phases == {"facts"}
    assert record.facts == {"sut": facts}
    assert (record.intended, record.applied, record.reverted) == ({1: intended}, {1: applied}, {1})
    assert {name: snapshot.values for name, snapshot in record.snapshots.items()} == {
        ("sut", "before"): {"x": "1"},
        ("sut", "after"): {"x": "2"},
    }
    assert (record.loads, record.reports) == ({0: load}, {0: report})
    assert record.started_jobs["server"].pid == 7
    assert record.ended_jobs["server"].exit_status == 143
    assert record.failed is None
    assert record.restored is None


def test_the_first_failure_is_the_one_that_counts_and_time_zero_stays() -> None:
    record = Record.fold(
        [
            e.LoadStarted(0, True, 5, 100.0),
            e.LoadStarted(0, True, 5, 200.0),
            e.Failed("measure", "first"),
            e.Failed("stop", "second"),
            e.Restored({}),
        ]
    )
    assert record.loads[0].at_unix_s == 100.0
    assert record.failed is not None
    assert record.failed.message == "first"
    assert record.restored == e.Restored({})
