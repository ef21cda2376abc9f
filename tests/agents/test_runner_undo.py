"""The way back of a run when a connection is cut, a step hangs, or a host was away."""

from __future__ import annotations

import asyncio

import pytest

from agents import events as e
from agents.record import Record
from tests.agents.run_lab import (
    Lab,
    Watched,
    assert_left_as_it_was,
    file_step,
    needs_wrk,
)
from tests.sshd import cut_connections

pytestmark = needs_wrk


async def test_a_step_that_may_not_be_repeated_runs_once_across_a_cut(lab: Lab) -> None:
    counted = lab.folder / "counted"
    step = {
        "kind": "command",
        "run": 'echo run >>"$1"; sleep 2; echo end >>"$1"',
        "undo": 'echo undo >>"$1"',
        "arguments": [str(counted)],
    }
    watched = Watched(lab)

    def cut(event: e.AnyEvent) -> None:
        if isinstance(event, e.JobIntended) and event.name == "step-1-0":
            asyncio.get_running_loop().call_later(0.5, end_connections, lab)

    watched.on_event = cut
    record = await watched.run(lab.spec(step))
    assert record.failed is None
    assert counted.read_text().split() == ["run", "end", "undo"]
    assert_left_as_it_was(lab, record)


async def test_a_step_that_hangs_is_ended_when_the_run_is_cancelled(lab: Lab) -> None:
    step = {"kind": "command", "run": "sleep 600 & sleep 600", "undo": ":", "timeout_s": 600}
    watched = Watched(lab)

    def cancel(event: e.AnyEvent) -> None:
        watched.cancelled |= isinstance(event, e.JobIntended) and event.name == "step-1-0"

    watched.on_event = cancel
    record = await watched.run(lab.spec(step))
    assert record.failed is not None
    assert record.failed.cancelled
    assert_left_as_it_was(lab, record)


async def test_a_host_that_was_not_proven_restored_is_put_back_later(lab: Lab) -> None:
    watched = Watched(lab)

    def meddle(event: e.AnyEvent) -> None:
        if isinstance(event, e.LoadStarted):
            (lab.etc / "app.conf").write_text("foreign\n")

    watched.on_event = meddle
    spec = lab.spec(file_step(lab))
    record = await watched.run(spec)
    assert record.restored is not None
    assert "someone else changed" in record.restored.differences["sut"][0]
    for fence, force in ((2, False), (3, True)):
        again = Watched(lab, fence=fence, events=list(watched.events))
        record = Record.fold(again.events)
        await again.runner(spec, record).restore_again(force=force)
        assert record.restored is not None
        assert bool(record.restored.differences) is not force
    assert_left_as_it_was(lab, record)


async def test_an_undo_that_runs_already_is_waited_for_not_begun_twice(lab: Lab) -> None:
    counted = lab.folder / "counted"
    step = file_step(lab) | {
        "undo": 'echo undo >>"$4"; sleep 2; printf %s "$3" >"$1"; echo end >>"$4"',
        "arguments": [str(lab.etc / "app.conf"), "tuned\n", "as it was\n", str(counted)],
    }
    watched = Watched(lab)
    spec = lab.spec(step)
    first = asyncio.create_task(watched.run(spec))

    def die(event: e.AnyEvent) -> None:
        if isinstance(event, e.JobIntended) and event.name == "undo-1-0":
            asyncio.get_running_loop().call_later(1, first.cancel)

    watched.on_event = die
    with pytest.raises(asyncio.CancelledError):
        await first
    again = Watched(lab, fence=2, events=list(watched.events))
    record = Record.fold(again.events)
    await again.runner(spec, record).restore_again()
    assert counted.read_text().split() == ["undo", "end"]
    assert_left_as_it_was(lab, record)


def end_connections(lab: Lab) -> None:
    cut_connections(lab.sut.pid)
