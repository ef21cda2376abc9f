"""A host that is SUT and driver with one login: both parts share the run's directory and its timer there."""

from __future__ import annotations

import dataclasses

import pytest

from agents import events as e
from agents.base.errors import ConnectError
from agents.base.session import Session
from agents.record import Record
from agents.spec import HostAddress
from tests.agents.run_lab import Lab, Watched, assert_left_as_it_was, file_step, needs_wrk
from tests.sshd import eventually

pytestmark = needs_wrk


@pytest.fixture
def one(lab: Lab) -> Lab:
    """The SUT's sshd is the driver's, too."""
    return dataclasses.replace(lab, driver=lab.sut)


def claims(lab: Lab) -> list[str]:
    return sorted(path.name.rpartition(".")[2] for path in lab.sut.home.glob("benchhub-claim.*"))


async def left_dirty(lab: Lab) -> Watched:
    """A run whose file somebody else has changed meanwhile."""
    watched = Watched(lab)

    def meddle(event: e.AnyEvent) -> None:
        if isinstance(event, e.LoadStarted):
            (lab.etc / "app.conf").write_text("foreign\n")

    watched.on_event = meddle
    record = await watched.run(lab.spec(file_step(lab)))
    assert record.restored is not None
    assert record.restored.differences.keys() == {"sut"}
    return watched


async def test_a_run_leaves_nothing_on_it(one: Lab) -> None:
    record = await Watched(one).run(one.spec(file_step(one)))
    assert record.failed is None
    assert_left_as_it_was(one, record)
    assert claims(one) == []


async def test_what_the_driver_leaves_is_not_what_a_dirty_sut_needs(one: Lab) -> None:
    watched = await left_dirty(one)
    assert (one.directory(one.sut) / "journal/restore.sh").exists()
    assert claims(one) == ["sut"]

    again = Watched(one, fence=2, events=list(watched.events))
    record = Record.fold(again.events)
    await again.runner(one.spec(file_step(one)), record).restore_again(force=True)
    assert_left_as_it_was(one, record)
    assert claims(one) == []


async def test_the_drivers_part_alone_is_put_back_and_keeps_the_script_of_a_dirty_sut(one: Lab) -> None:
    watched = await left_dirty(one)
    for fence, roles in ((2, ("driver",)), (3, ("driver",))):
        again = Watched(one, fence=fence, events=list(watched.events))
        await again.runner(one.spec(file_step(one)), Record.fold(again.events)).restore_again(roles=roles)
        assert (one.directory(one.sut) / "journal/restore.sh").exists()
    again = Watched(one, fence=4, events=list(watched.events))
    record = Record.fold(again.events)
    await again.runner(one.spec(file_step(one)), record).restore_again(roles=("sut",), force=True)
    assert_left_as_it_was(one, record)


async def test_a_sut_out_of_reach_puts_itself_back_though_the_driver_on_it_answers(one: Lab) -> None:
    watched = Watched(one, patience_s=0.0, deadman_s=3)
    closed: list[Session] = []
    connect = watched.connect

    async def refuse_after_the_load(address: HostAddress) -> Session:
        if address.name == "sut" and closed:
            raise ConnectError("sut does not answer")
        session = await connect(address)
        if address.name == "sut":
            suts.append(session)
        return session

    suts: list[Session] = []
    emit = watched.emit

    async def cut(event: e.AnyEvent) -> None:
        await emit(event)
        if isinstance(event, e.PhaseFinished) and event.phase == "measure":
            closed.extend(suts)
            for session in suts:
                await session.close()

    watched.connect = refuse_after_the_load  # type: ignore[method-assign]
    watched.emit = cut  # type: ignore[method-assign]
    record = await watched.run(one.spec(file_step(one)))
    assert record.restored is not None
    assert record.restored.away == ("sut",)
    await eventually(lambda: (one.etc / "app.conf").read_text() == "as it was\n", within_s=30)


async def test_a_driver_that_cannot_take_part_takes_nothing_of_the_sut_away(one: Lab) -> None:
    (one.folder / "wrk").unlink()
    record = await Watched(one).run(one.spec(file_step(one)))
    assert record.failed is not None
    assert "cannot run wrk" in record.failed.message
    assert_left_as_it_was(one, record)
    assert claims(one) == []
