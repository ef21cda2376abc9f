"""Undoing on a real host: whatever a worker left when it died, the state from before is back."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents import events as e
from agents.base.errors import ConnectError, FenceError, PlanError
from agents.record import Record
from agents.remote.fencing import FencedSession, Hold
from agents.remote.ssh import SshSession
from agents.running.tuning import Tuning
from agents.servers.command import CommandServer
from agents.steps.base.step import HostStep
from agents.steps.command import CommandStep
from agents.steps.file import FileStep

OLD, NEW, FOREIGN = "old\n", "new\n", "foreign\n"
STEP = FileStep(path="app.conf", content=NEW)
STEPS: dict[int, HostStep] = {1: STEP}


class Run:
    """One run's tuning on the test host, and the events of it."""

    def __init__(self, session: SshSession, folder: Path) -> None:
        self.record = Record()
        self.file = folder / "instance/app.conf"
        self.fenced = FencedSession(session, Hold(1, str(folder / "fence")))
        self.tuning = Tuning(self.fenced, str(folder), self.record, self._emit)

    async def _emit(self, event: e.AnyEvent) -> None:
        self.record.add(event)


@pytest.fixture
async def run(session: SshSession, tmp_path: Path) -> Run:
    made = Run(session, tmp_path)
    await made.tuning.create_instances(CommandServer(argv=("true",), files={"app.conf": OLD}), "")
    return made


async def test_a_step_is_applied_once_and_taken_back_once(run: Run) -> None:
    for _ in range(2):
        await run.tuning.apply(1, STEP)
        assert run.file.read_text() == NEW
    assert [outcome.result for outcome in run.record.applied[1].outcomes] == ["applied", "unchanged"]
    for _ in range(2):
        assert await run.tuning.revert(STEPS) == ()
        assert not run.file.exists()
    assert run.record.reverted == {0, 1}


@pytest.mark.parametrize("left", [OLD, NEW, FOREIGN])
async def test_what_a_worker_left_half_done_is_put_back(run: Run, left: str) -> None:
    await run.tuning.apply(1, STEP)
    del (
        run.record.applied[1],
        run.record.intended[0],
    )  # it died before it could tell; the instance stays to be looked at
    run.file.write_text(left)
    assert await run.tuning.revert(STEPS) == ()
    assert run.file.read_text() == OLD


@pytest.mark.parametrize("now, problem", [(OLD, ""), (NEW, ""), (FOREIGN, "someone else changed content")])
async def test_after_applying_only_our_own_value_is_undone(run: Run, now: str, problem: str) -> None:
    await run.tuning.apply(1, STEP)
    del run.record.intended[0]
    run.file.write_text(now)
    problems = await run.tuning.revert(STEPS)
    assert [problem in line for line in problems] == ([True] if problem else [])
    assert run.file.read_text() == (FOREIGN if problem else OLD)
    assert (1 in run.record.reverted) is not bool(problem)


async def test_one_step_that_cannot_be_undone_does_not_keep_the_others(run: Run) -> None:
    bad = CommandStep(run=":", undo="echo stuck >&2; exit 1")
    await run.tuning.apply(1, STEP)
    await run.tuning.apply(2, bad)
    del run.record.intended[0]
    (problem,) = await run.tuning.revert({1: STEP, 2: bad})
    assert problem.startswith("Undoing: Run : failed with exit status 1: stuck")
    assert run.file.read_text() == OLD


async def test_an_undo_that_has_no_effect_is_told(run: Run) -> None:
    stuck = CommandStep(run=f"echo 2 >{run.file}", undo=":", observe=f"cat {run.file}", expect="2")
    await run.tuning.apply(1, stuck)
    (problem,) = await run.tuning.revert({1: stuck})
    assert problem.endswith("observed could not be put back")


async def test_a_refused_value_is_an_error_each_time_it_is_asked(run: Run) -> None:
    refused = CommandStep(run=":", undo=":", observe="echo 1", expect="2")
    for _ in range(2):
        with pytest.raises(PlanError, match="did not take Run : = 2: it shows 1"):
            await run.tuning.apply(1, refused)
    assert len(run.record.applied[1].outcomes) == 1


async def test_a_newer_holder_stops_the_undo(run: Run, session: SshSession) -> None:
    await run.tuning.apply(1, STEP)
    newer = FencedSession(session, Hold(2, run.fenced.hold.directory))
    await newer.put(str(run.file.parent / "other"), b"")
    with pytest.raises(FenceError):
        await run.tuning.revert(STEPS)
    assert run.file.read_text() == NEW
    assert run.record.reverted == set()


async def test_a_host_that_stays_away_is_asked_once_not_for_every_step(run: Run, session: SshSession) -> None:
    for index in (1, 2, 3):
        await run.tuning.apply(index, STEP)
    await session.close()
    with pytest.raises(ConnectError):
        await run.tuning.revert({1: STEP, 2: STEP, 3: STEP})
