"""One machine with several logins, and one home with several machines, on the lab."""

from __future__ import annotations

import asyncio
import dataclasses
import sys
from collections.abc import Iterator

import pytest

from agents import events as e
from agents.base.errors import OccupiedError
from agents.base.installation import Installation
from agents.remote.claiming import Claimant, Taken, take
from agents.remote.fencing import Hold
from agents.remote.ssh import SshSession, connect
from agents.remote.survey import read
from lab.lab import LabHost
from tests.faults.lab_run import LIGHT, Play, play
from tests.lab.conftest import lab, lab_of_module, login

__all__ = ["lab", "lab_of_module", "play"]

pytestmark = [pytest.mark.faults, pytest.mark.lab, pytest.mark.slow]

OTHER = Installation("22222222-0000-4000-8000-000000000002", "https://other.example")

# A mount of another mount namespace cannot be bound; its copy can be moved there.
SHARE = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
def insist(answer):
    if answer < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return answer
source, pid, target = sys.argv[1].encode(), sys.argv[2], sys.argv[3].encode()
copy = insist(libc.syscall(428, -100, source, 1))
insist(libc.setns(os.open(f"/proc/{pid}/ns/mnt", os.O_RDONLY), 0x20000))
insist(libc.syscall(429, copy, b"", -100, target, 4))
"""


@pytest.fixture
def bench(play: Play) -> Iterator[LabHost]:
    """The SUT with a second login, `bench`, that may not become root."""
    play.sut.exec("useradd", "--create-home", "bench", check=False)
    play.sut.exec("chmod", "755", "/etc/ssh/lab")
    play.sut.exec("chmod", "644", "/etc/ssh/lab/authorized_keys")
    yield play.sut
    play.sut.exec("sh", "-c", "rm -rf /home/bench/.benchhub /var/tmp/benchhub-claim.*")


async def claim(session: SshSession, key: str = "r9-70aa") -> Taken:
    """The other installation's claim of the machine, without patience."""
    return await take(session, Claimant(key, "sut", 600), Hold(5, "", OTHER), patience_s=lambda: 0.0)


async def test_a_login_without_rights_keeps_another_installation_away_and_root_keeps_it(
    play: Play, bench: LabHost
) -> None:
    session = await connect(login(bench, "bench"), bench.private_key)
    taken = await claim(session)
    play.give_up_soon()
    await play.run(play.spec(*LIGHT))
    assert "sut is used by run r9-70aa of BenchHub at https://other.example (login bench)" in play.failed.message
    assert play.load_starts == 0
    await play.assert_restored()

    bench.exec("rm", "--", taken.claim)
    again = dataclasses.replace(play, events=[])
    again.lay_out()
    record = await again.run(again.spec(*LIGHT))
    assert record.failed is None
    await again.assert_restored()
    await session.close()


async def test_another_login_cannot_take_or_remove_what_a_run_holds(play: Play, bench: LabHost) -> None:
    session = await connect(login(bench, "bench"), bench.private_key)
    seen: list[str] = []

    def try_it() -> None:
        script = (
            'rm -f /var/tmp/benchhub-claim.*; for f in /var/tmp/benchhub-claim.*; do echo x >>"$f"; done; ls /var/tmp'
        )
        done = bench.exec("setpriv", "--reuid", "bench", "--clear-groups", "sh", "-c", script, check=False)
        seen.append(done.stdout.decode())

    play.at(e.LoadStarted, try_it)
    refused: list[OccupiedError] = []
    emit = play.emit

    async def meet(event: e.AnyEvent) -> None:
        await emit(event)
        if isinstance(event, e.LoadStarted):
            with pytest.raises(OccupiedError) as info:
                await claim(session)
            refused.append(info.value)

    play.emit = meet  # type: ignore[method-assign]
    record = await play.run(play.spec(*LIGHT))
    assert record.failed is None
    assert "benchhub-claim." in seen[0]
    assert "is used by run " in refused[0].message
    assert "(login root)" in refused[0].message
    await claim(session)  # and it may, once the run is over
    await session.close()
    await play.assert_restored()


async def test_machines_that_share_a_home_have_a_directory_and_a_timer_each(play: Play) -> None:
    """A directory that both hosts see stands for one that NFS brings to both."""
    assert play.driver.init is not None
    words = (sys.executable, "-c", SHARE, str(play.sut.home), str(play.driver.init.pid), "/root")
    sharing = await asyncio.create_subprocess_exec(*words)
    assert await sharing.wait() == 0
    timers: dict[str, list[str]] = {}

    def look() -> None:
        for host in (play.sut, play.driver):
            found = [" ".join(process.argv) for process in host.processes()]
            timers[host.name] = [line for line in found if "no worker has been here" in line]

    play.at(e.LoadStarted, look)
    try:
        record = await play.run(play.spec(*LIGHT))
        session = await connect(login(play.driver), play.driver.private_key)
        found = await read(session)
        await session.close()
    finally:
        play.driver.exec("umount", "-l", "/root")
    assert record.failed is None
    directories = {record.facts[role].directory for role in ("sut", "driver")}
    assert len(directories) == 2
    assert any("/.benchhub/machines/" in directory for directory in directories)
    assert all(timers.values())
    assert found.shares_home == ("/machines/" in record.facts["driver"].directory)
    await play.assert_restored()


async def test_a_home_of_root_that_leads_to_etc_is_refused_before_anything_is_written(play: Play) -> None:
    play.sut.exec("ln", "-s", "/etc", "/root/.benchhub")
    before = play.sut.exec("sh", "-c", "find /etc -newer /proc/1 | sort; ls -la /etc").stdout
    try:
        await play.run(play.spec(*LIGHT))
    finally:
        play.sut.exec("rm", "/root/.benchhub")
    assert "has no place for runs: /root/.benchhub, which is a link to /etc, holds" in play.failed.message
    assert play.sut.exec("sh", "-c", "find /etc -newer /proc/1 | sort; ls -la /etc").stdout == before
    await play.assert_restored()


async def test_a_host_whose_key_changes_in_the_middle_of_a_run_is_given_up_and_put_back_later(play: Play) -> None:
    def change() -> None:
        play.sut.new_host_key()
        play.sut.end_connections()

    play.at(e.LoadStarted, change)
    try:
        await play.run(play.spec(*LIGHT, measure_s=2))
    finally:
        play.sut.old_host_key()
    assert "did not prove to be the approved host" in play.failed.message
    assert play.restored.away == ("sut",)
    assert await play.restore_again() == e.Restored({})
    await play.assert_restored()
