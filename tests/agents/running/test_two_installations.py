"""Two installations of BenchHub on the same hosts: never beside each other, and none leaves anything to the other."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import fcntl
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents import events as e
from agents.base.installation import Installation
from agents.record import Record
from agents.remote import claiming
from agents.remote.ssh import connect
from agents.remote.survey import read
from tests.agents.run_lab import Lab, Watched, WorkerDiedError, assert_left_as_it_was, file_step, make_lab, needs_wrk
from tests.sshd import SshdHost, eventually, exists, running_sshd

pytestmark = needs_wrk

OURS = Installation("11111111-0000-4000-8000-000000000001", "https://ours.example")
OTHER = Installation("22222222-0000-4000-8000-000000000002", "https://other.example")


@pytest.fixture(scope="module")
def two_logins(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SshdHost, SshdHost]]:
    """Two logins of one machine: homes of their own, and one place that both see."""
    place = tmp_path_factory.mktemp("place")
    with (
        running_sshd(tmp_path_factory.mktemp("ours"), place=place) as first,
        running_sshd(tmp_path_factory.mktemp("theirs"), place=place) as second,
    ):
        yield first, second


@pytest.fixture
def logins(
    two_logins: tuple[SshdHost, SshdHost], lab: Lab, lab_hosts: tuple[SshdHost, SshdHost], tmp_path: Path
) -> Iterator[tuple[Lab, Lab]]:
    """Our SUT and theirs are one machine with two logins; each has a driver host of its own."""
    (tmp_path / "theirs").mkdir()
    mine, other = (
        dataclasses.replace(lab, sut=two_logins[0]),
        make_lab(two_logins[1], lab_hosts[0], tmp_path / "theirs"),
    )
    yield mine, other
    for host in two_logins:
        shutil.rmtree(host.home / ".benchhub", ignore_errors=True)


@pytest.fixture(autouse=True)
def looks_again_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claiming, "LOOK_AGAIN_S", 0.2)


def timers(lab: Lab, key: str) -> list[int]:
    """Processes of dead-man timers of the run on the lab's hosts."""
    homes = [str(host.home).encode() for host in (lab.sut, lab.driver)]
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it ended meanwhile
            words = path.read_bytes().split(b"\0")
            if any(b"no worker has been here" in word for word in words) and any(
                word.startswith(home) and word.endswith(b"/runs/" + key.encode()) for word in words for home in homes
            ):
                found.append(int(path.parent.name))
    return found


def theirs(lab: Lab, *, fence: int = 900, deadman_s: int = 600) -> Watched:
    """A run of the other installation on the same hosts."""
    return Watched(lab, fence=fence, installation=OTHER, key="r9-70aa", deadman_s=deadman_s)


def ours(lab: Lab, *, fence: int = 3, patience_s: float = 600.0) -> Watched:
    return Watched(lab, fence=fence, installation=OURS, patience_s=patience_s)


async def die(watched: Watched, lab: Lab) -> None:
    """The run's worker dies when its load has started; nobody adopts it."""

    def at_load(event: e.AnyEvent) -> None:
        if isinstance(event, e.LoadStarted):
            raise WorkerDiedError

    watched.on_event = at_load
    with pytest.raises(WorkerDiedError):
        await watched.run(lab.spec(file_step(lab), phases=(("measure", 60),)))


@pytest.mark.parametrize(("fence", "other_fence"), [(3, 900), (900, 3)])
async def test_the_second_one_waits_for_the_first_and_says_for_whom(lab: Lab, fence: int, other_fence: int) -> None:
    first, second = theirs(lab, fence=other_fence), ours(lab, fence=fence)
    spec = lab.spec(file_step(lab), phases=(("measure", 3),))
    began = asyncio.Event()
    first.on_event = lambda event: began.set() if isinstance(event, e.LoadStarted) else None
    running = asyncio.create_task(first.run(spec))
    await began.wait()
    after = await second.run(lab.spec(file_step(lab)))
    record = await running
    assert (record.failed, after.failed) == (None, None)
    assert (record.restored, after.restored) == (e.Restored({}), e.Restored({}))
    assert "is used by run r9-70aa of BenchHub at https://other.example" in second.log
    assert len(lab.starts) == 2
    assert_left_as_it_was(lab, after)


async def test_the_second_one_is_refused_with_the_name_of_the_first_after_its_patience(lab: Lab) -> None:
    first, second = theirs(lab), ours(lab, patience_s=0.0)
    refused: list[Record] = []
    began, go_on = asyncio.Event(), asyncio.Event()
    emit = first.emit

    async def hold(event: e.AnyEvent) -> None:
        await emit(event)
        if isinstance(event, e.LoadStarted):
            began.set()
            await go_on.wait()

    first.emit = hold  # type: ignore[method-assign]
    running = asyncio.create_task(first.run(lab.spec(file_step(lab))))
    await began.wait()
    refused.append(await second.run(lab.spec(file_step(lab))))
    go_on.set()
    record = await running
    (after,) = refused
    assert after.failed is not None
    assert "is used by run r9-70aa of BenchHub at https://other.example" in after.failed.message
    assert "Only one BenchHub" in after.failed.hint
    assert after.failed.cause == "host"
    assert after.restored == e.Restored({})  # it has touched nothing
    assert record.failed is None
    assert len(lab.starts) == 1
    assert_left_as_it_was(lab, record)


async def test_another_login_of_the_machine_waits_too(logins: tuple[Lab, Lab]) -> None:
    lab, other_lab = logins
    first, second = theirs(other_lab), ours(lab)
    began = asyncio.Event()
    first.on_event = lambda event: began.set() if isinstance(event, e.LoadStarted) else None
    running = asyncio.create_task(first.run(other_lab.spec(file_step(other_lab), phases=(("measure", 3),))))
    await began.wait()
    after = await second.run(lab.spec(file_step(lab)))
    assert (await running).failed is None
    assert after.failed is None
    assert "sut is used by run r9-70aa of BenchHub at https://other.example (login " in second.log
    assert second.of(e.LoadStarted)[0]
    assert_left_as_it_was(lab, after)


async def vanish(watched: Watched, lab: Lab) -> None:
    """The run's worker dies, and somebody kills its timers: nobody looks after the hosts any more."""
    await die(watched, lab)
    for pid in timers(lab, watched.key):
        os.kill(pid, signal.SIGKILL)
    await eventually(lambda: timers(lab, watched.key) == [])


async def test_what_a_vanished_run_has_left_is_put_back_before_the_snapshot(lab: Lab) -> None:
    await vanish(theirs(lab, deadman_s=5), lab)
    assert (lab.etc / "app.conf").read_text() == "tuned\n"
    load = lab.starts
    watched = ours(lab)
    record = await watched.run(lab.spec(file_step(lab)))
    assert record.failed is None
    for host in ("sut", "driver"):
        assert f"run r9-70aa of BenchHub at https://other.example had left something on {host}" in watched.log
    assert not any(exists(int(pid)) for pid in load)
    assert_left_as_it_was(lab, record)
    assert list(lab.sut.home.glob("benchhub-claim.*")) == []


async def test_a_worker_that_comes_back_after_that_is_told(lab: Lab) -> None:
    first = theirs(lab, deadman_s=5)
    await vanish(first, lab)
    assert (await ours(lab).run(lab.spec(file_step(lab)))).failed is None
    later = theirs(lab, fence=901)
    later.events = list(first.events)
    record = await later.run(lab.spec(file_step(lab), phases=(("measure", 60),)), Record.fold(first.events))
    assert record.failed is not None
    assert "put itself back" in record.failed.message
    assert record.restored == e.Restored({})
    assert (lab.etc / "app.conf").read_text() == "as it was\n"


async def test_a_vanished_run_of_this_installation_is_put_back_as_well(lab: Lab) -> None:
    """As after a restored backup: the database knows nothing of it."""
    vanished = Watched(lab, fence=3, installation=OURS, key="r8-6fff")
    await die(vanished, lab)
    watched = ours(lab, fence=4)
    record = await watched.run(lab.spec(file_step(lab)))
    assert record.failed is None
    assert "run r8-6fff had left something on sut; it was ended and put back" in watched.log
    assert timers(lab, "r8-6fff") == []
    assert_left_as_it_was(lab, record)


async def test_what_another_login_has_left_keeps_the_host_out_of_service(logins: tuple[Lab, Lab]) -> None:
    lab, other_lab = logins
    await vanish(theirs(other_lab, deadman_s=5), other_lab)
    watched = ours(lab)
    record = await watched.run(lab.spec(file_step(lab)))
    assert record.failed is not None
    assert "has left changes, and nobody looks after them" in record.failed.message
    assert record.restored is not None
    assert "run r9-70aa of BenchHub at https://other.example (login " in record.restored.differences["sut"][0]
    assert not watched.of(e.SnapshotTaken)

    again = ours(lab, fence=4)
    again.events = list(watched.events)
    await again.runner(lab.spec(file_step(lab)), Record.fold(watched.events)).restore_again()
    assert again.of(e.Restored)[-1].differences.keys() == {"sut"}

    restore = other_lab.sut.home / ".benchhub/runs/r9-70aa/journal/restore.sh"
    restoring = await asyncio.create_subprocess_exec("sh", str(restore))
    assert await restoring.wait() == 0
    assert (other_lab.etc / "app.conf").read_text() == "as it was\n"
    again = ours(lab, fence=5)
    again.events = list(watched.events)
    await again.runner(lab.spec(file_step(lab)), Record.fold(watched.events)).restore_again()
    assert again.of(e.Restored)[-1] == e.Restored({})
    assert_left_as_it_was(lab, Record.fold(again.events))


async def test_what_another_installation_has_left_to_a_person_is_not_overwritten_unasked(lab: Lab) -> None:
    first = theirs(lab)

    def edit(event: e.AnyEvent) -> None:
        if isinstance(event, e.LoadStarted):
            (lab.etc / "app.conf").write_text("somebody's own\n")

    first.on_event = edit
    left = await first.run(lab.spec(file_step(lab)))
    assert left.restored is not None
    assert left.restored.differences["sut"]
    watched = ours(lab)
    record = await watched.run(lab.spec(file_step(lab)))
    assert record.failed is not None
    assert "has left changes to a person" in record.failed.message
    assert record.restored is not None
    assert (lab.etc / "app.conf").read_text() == "somebody's own\n"

    again = ours(lab, fence=4)
    again.events = list(watched.events)
    await again.runner(lab.spec(file_step(lab)), Record.fold(watched.events)).restore_again(force=True)
    assert again.of(e.Restored)[-1] == e.Restored({})
    assert (lab.etc / "app.conf").read_text() == "as it was\n"


async def test_a_claim_of_before_a_restart_keeps_nobody_away(lab: Lab) -> None:
    text = f"0 an-earlier-boot 99999999999 {OTHER.id} 900 r9-70aa sut bench 1700000000\n/nowhere\n{OTHER.name}\n"
    (lab.sut.home / f"benchhub-claim.{OTHER.id}.r9-70aa.sut").write_text(text)
    record = await ours(lab).run(lab.spec(file_step(lab)))
    assert record.failed is None


async def test_a_run_that_comes_back_to_a_taken_host_touches_nothing_and_comes_again_later(lab: Lab) -> None:
    first = theirs(lab, deadman_s=5)
    await die(first, lab)
    fired = [host.home / ".benchhub/runs/r9-70aa/fired" for host in (lab.sut, lab.driver)]
    await eventually(lambda: all(file.exists() for file in fired))
    holder, later = ours(lab), theirs(lab, fence=901)
    later.events, later.patience_s = list(first.events), 0.0
    found: list[Record] = []
    emit = holder.emit

    async def come_back(event: e.AnyEvent) -> None:
        await emit(event)
        if isinstance(event, e.LoadStarted):
            spec = lab.spec(file_step(lab), phases=(("measure", 60),))
            found.append(await later.run(spec, Record.fold(first.events)))

    holder.emit = come_back  # type: ignore[method-assign]
    record = await holder.run(lab.spec(file_step(lab)))
    assert record.failed is None
    assert record.restored == e.Restored({})
    (back,) = found
    assert back.failed is not None
    assert "is used by run r1-65f0 of BenchHub at https://ours.example" in back.failed.message
    assert back.restored is not None
    assert back.restored.away == ("sut", "driver")  # looked at again later

    again = theirs(lab, fence=902)
    again.events = list(later.events)
    runner = again.runner(lab.spec(file_step(lab), phases=(("measure", 60),)), Record.fold(later.events))
    await runner.restore_again()
    assert again.of(e.Restored)[-1] == e.Restored({})
    assert_left_as_it_was(lab, Record.fold(again.events))


async def test_a_cancelled_run_waits_no_longer(lab: Lab) -> None:
    first = theirs(lab)
    await die(first, lab)
    watched = ours(lab)

    def cancel(event: e.AnyEvent) -> None:
        watched.cancelled = watched.cancelled or (isinstance(event, e.Logged) and "Waiting for up to" in event.lines[0])

    watched.on_event = cancel
    record = await watched.run(lab.spec(file_step(lab)))
    assert record.failed is not None
    assert record.failed.cancelled
    assert (lab.etc / "app.conf").read_text() == "tuned\n"  # nobody's but the other run's
    for pid in timers(lab, first.key):
        os.kill(pid, signal.SIGKILL)


async def test_a_user_who_locks_the_place_of_the_claims_keeps_runs_away_and_they_say_why(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claiming, "LOCK_WAIT_S", 1)
    place = os.open(lab.sut.home, os.O_RDONLY)
    fcntl.flock(place, fcntl.LOCK_EX)
    try:
        record = await ours(lab, patience_s=0.0).run(lab.spec(file_step(lab)))
    finally:
        os.close(place)
    assert record.failed is not None
    assert "sut is used by somebody who holds a lock there" in record.failed.message


@pytest.mark.parametrize("entry", ["passwd", ".hidden"])
async def test_a_link_to_a_directory_of_something_else_is_refused_in_words(lab: Lab, entry: str) -> None:
    elsewhere = lab.folder / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / entry).write_text("not BenchHub's\n")
    (lab.sut.home / ".benchhub").symlink_to(elsewhere)
    try:
        record = await ours(lab).run(lab.spec(file_step(lab)))
    finally:
        (lab.sut.home / ".benchhub").unlink()
    assert record.failed is not None
    assert f"which is a link to {elsewhere}, holds {entry}, which is not BenchHub's" in record.failed.message
    assert [path.name for path in elsewhere.iterdir()] == [entry]


async def test_a_link_to_a_larger_disk_is_fine(lab: Lab) -> None:
    disk = lab.folder / "disk"
    disk.mkdir()
    (lab.sut.home / ".benchhub").symlink_to(disk)
    try:
        record = await ours(lab).run(lab.spec(file_step(lab)))
    finally:
        (lab.sut.home / ".benchhub").unlink()
    assert record.failed is None
    assert (disk / "fence/holder").exists()


async def test_the_second_machine_with_one_home_has_a_directory_of_its_own(lab: Lab) -> None:
    root = lab.sut.home / ".benchhub"
    root.mkdir()
    (root / "machine").write_text("the-first-machine\n")
    watched = ours(lab)
    record = await watched.run(lab.spec(file_step(lab)))
    assert record.failed is None
    assert record.facts["sut"].directory.startswith(f"{root}/machines/")
    assert sorted(path.name for path in root.iterdir()) == ["machine", "machines"]
    assert_left_as_it_was(lab, record)


async def test_nothing_is_left_after_a_run_but_the_fence(lab: Lab) -> None:
    record = await ours(lab).run(lab.spec(file_step(lab)))
    assert_left_as_it_was(lab, record)
    for host in (lab.sut, lab.driver):
        session = await connect(host.login(), host.private_key)
        found = await read(session)
        await session.close()
        assert (found.claims, found.runs, found.holder, found.fence) == ((), (), OURS, 3)
