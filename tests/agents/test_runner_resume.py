"""Runs whose worker dies: the next one goes on from any event, and a former one can do nothing any more."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents import events as e
from agents.base.command import Command
from agents.base.errors import FenceError
from agents.base.session import Session
from agents.record import Record
from agents.remote.ssh import connect
from agents.spec import RunSpec
from tests.agents.run_lab import Lab, Watched, assert_left_as_it_was, die_after, file_step, make_lab, needs_wrk, stored
from tests.sshd import children, eventually, exists, running_sshd

pytestmark = needs_wrk


@pytest.fixture
def labs(tmp_path: Path) -> Iterator[list[Lab]]:
    """Four pairs of hosts: a run mostly waits, so four at a time take little longer than one."""
    with contextlib.ExitStack() as stack:
        made = []
        for number in range(4):
            folder = tmp_path / str(number)
            (folder / "sut").mkdir(parents=True)
            (folder / "driver").mkdir()
            sut = stack.enter_context(running_sshd(folder / "sut"))
            driver = stack.enter_context(running_sshd(folder / "driver"))
            made.append(make_lab(sut, driver, folder))
        yield made


@pytest.mark.parametrize("part", range(2))
async def test_a_run_is_resumed_after_every_event(lab: Lab, labs: list[Lab], part: int) -> None:
    """A worker dies after each event in turn; the next one goes on. Always restored, the load never started twice."""
    whole = Watched(lab)
    assert (await whole.run(resumed_spec(lab))).failed is None
    counts = list(range(len(stored(whole.events)) - 1))[part::2]

    async def work(own: Lab) -> None:
        while counts:
            await die_and_resume(own, counts.pop())

    await asyncio.gather(*(work(own) for own in labs))


def resumed_spec(lab: Lab) -> RunSpec:
    return lab.spec(file_step(lab))


async def die_and_resume(lab: Lab, count: int) -> None:
    lab.witness.unlink(missing_ok=True)
    for host in (lab.sut, lab.driver):
        shutil.rmtree(host.home / ".benchhub", ignore_errors=True)
    spec = resumed_spec(lab)
    before = await die_after(lab, spec, count)
    second = Watched(lab, fence=2, events=[e.from_json(e.to_json(event)) for event in before])
    record = await second.run(spec, Record.fold(second.events))
    died_after = stored(before)[-1:]
    assert record.failed is None, (count, died_after, record.failed)
    assert len(lab.starts) == 1, (count, died_after)
    assert [report.exit_status for report in record.reports.values()] == [0], (count, died_after)
    assert not lab.directory(lab.sut).exists(), (count, died_after, second.log)
    assert_left_as_it_was(lab, record)


async def test_an_old_holder_of_the_host_can_do_nothing_any_more(lab: Lab) -> None:
    spec = lab.spec(file_step(lab), phases=(("measure", 60),))
    old, new = Watched(lab, fence=1), Watched(lab, fence=2)
    first = asyncio.create_task(old.run(spec))
    await eventually(lambda: bool(old.of(e.LoadStarted)))
    new.events, new.cancelled = list(old.events), True
    record = await new.run(spec, Record.fold(new.events))
    assert_left_as_it_was(lab, record)
    with pytest.raises(FenceError):
        await first
    assert old.of(e.Restored) == []
    assert old.of(e.StepReverted) == []


async def test_a_worker_that_slept_before_it_saw_the_host_leaves_no_trace(lab: Lab) -> None:
    fence = lab.sut.home / ".benchhub/fence"
    fence.mkdir(parents=True, exist_ok=True)
    (fence / "fence").write_text("7\n")
    with pytest.raises(FenceError):
        await Watched(lab, fence=6).run(lab.spec(file_step(lab)))
    assert not lab.directory(lab.sut).exists()


async def test_a_runner_that_is_told_to_leave_leaves_all_as_it_is(lab: Lab) -> None:
    spec = lab.spec(file_step(lab), phases=(("measure", 3),))
    first = Watched(lab)
    task = asyncio.create_task(first.run(spec))
    await eventually(lambda: bool(first.of(e.LoadStarted) and lab.starts))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert exists(int(lab.starts[0]))
    assert (lab.etc / "app.conf").read_text() == "tuned\n"
    assert all(not children(host.pid) for host in (lab.sut, lab.driver)) or await no_connections(lab)
    second = Watched(lab, fence=2, events=list(first.events))
    record = await second.run(spec, Record.fold(second.events))
    assert record.failed is None
    assert len(lab.starts) == 1
    assert_left_as_it_was(lab, record)


async def no_connections(lab: Lab) -> bool:
    await eventually(lambda: not children(lab.sut.pid) and not children(lab.driver.pid))
    return True


async def test_restore_sh_works_without_any_controller(lab: Lab) -> None:
    spec = lab.spec(file_step(lab), file_step(lab, "second.conf"))
    whole = Watched(lab)
    await whole.run(spec)
    applied = [i for i, event in enumerate(stored(whole.events)) if isinstance(event, e.StepApplied)]
    await die_after(lab, spec, applied[-1])
    assert (lab.etc / "second.conf").exists()
    session: Session = await connect(lab.sut.login(), lab.sut.private_key)
    for _ in range(2):
        result = await session.run(Command(("sh", str(lab.directory(lab.sut) / "journal/restore.sh"))))
        assert result.exit_status == 0, result
    await session.close()
    assert (lab.etc / "app.conf").read_text() == "as it was\n"
    assert not (lab.etc / "second.conf").exists()
    assert not (lab.directory(lab.sut) / "instance").exists()
