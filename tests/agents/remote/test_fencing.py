from __future__ import annotations

import asyncio
import os
import secrets
from dataclasses import replace
from pathlib import Path

import pytest

from agents.base.command import NTH_CONNECTION, Command, CommandResult, script
from agents.base.errors import CommandError, ConnectError, FenceError
from agents.base.installation import Installation
from agents.remote.fencing import LOCK_WAIT_S, FencedSession, Hold, fenced
from agents.remote.jobs import Job
from agents.remote.link import Link
from agents.remote.ssh import SshSession, connect
from agents.remote.transfer import put_command
from tests.sshd import SshdHost, eventually

COOKIE = secrets.token_hex()  # tests that run beside these must not end their processes

OURS = Installation("11111111-0000-4000-8000-000000000001", "https://ours.example")
OTHER = Installation("22222222-0000-4000-8000-000000000002", "https://other.example")


@pytest.fixture
def holder(session: SshSession, tmp_path: Path) -> FencedSession:
    return FencedSession(session, Hold(7, str(tmp_path / "fence")))


def at(holder: FencedSession, fence: int) -> FencedSession:
    """The same holder with another fence."""
    return replace(holder, hold=replace(holder.hold, fence=fence))


def touch(path: Path) -> Command:
    return Command(("touch", str(path)))


def test_a_fenced_command_keeps_all_but_its_words_and_its_time() -> None:
    command = Command(("rm", "-rf", "a b"), stdin=b"in", privileged=True, timeout_s=3.0)
    rewritten = fenced(command, Hold(7, "/var/fence", OTHER, "/var/tmp", "/var/tmp/claim"), "sut")
    assert rewritten.argv[:2] == ("sh", "-c")
    checked = ("7", "/var/fence", str(LOCK_WAIT_S), "2", "sut", NTH_CONNECTION)
    whose = (OTHER.id, OTHER.name, "/var/tmp", "/var/tmp/claim")
    assert rewritten.argv[3:] == ("sh", *checked, *whose, *command.argv)
    assert (rewritten.stdin, rewritten.privileged, rewritten.timeout_s) == (b"in", True, 3.0 + LOCK_WAIT_S)


def test_a_fence_is_not_negative() -> None:
    with pytest.raises(ValueError, match="negative"):
        fenced(Command(("true",)), Hold(-1, "/var/fence"))


@pytest.mark.parametrize(("seen", "fence"), [(None, 0), (None, 7), (7, 7), (7, 8), (9, 10), (2**40, 2**40 + 1)])
async def test_the_newest_holder_may_change_the_host(
    holder: FencedSession, tmp_path: Path, seen: int | None, fence: int
) -> None:
    if seen is not None:
        await at(holder, seen).mutate(Command(("true",)))
    result = await at(holder, fence).mutate(script("cat; exit 3", stdin=b"data"))
    assert (result.exit_status, result.stdout) == (3, b"data")


@pytest.mark.parametrize(("seen", "fence"), [(8, 7), (10, 9), (1, 0), (2**40, 7)])
async def test_an_older_holder_changes_nothing(holder: FencedSession, tmp_path: Path, seen: int, fence: int) -> None:
    await at(holder, seen).mutate(Command(("true",)))
    old = at(holder, fence)
    with pytest.raises(FenceError, match=f"the host has seen fence {seen}, this is {fence}"):
        await old.mutate(touch(tmp_path / "changed"))
    with pytest.raises(FenceError):
        await old.put(str(tmp_path / "changed"), b"data")
    with pytest.raises(FenceError):
        await Job(old, str(tmp_path / "jobs" / "1")).start(touch(tmp_path / "changed"), cookie=COOKIE)
    assert os.listdir(tmp_path) == ["fence"]


async def test_what_sudo_and_shells_complain_of_first_hides_no_refusal(
    holder: FencedSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await at(holder, 8).mutate(Command(("true",)))
    run = SshSession.run

    async def complaining(session: SshSession, command: Command, **limits: int) -> CommandResult:
        result = await run(session, command, **limits)
        noise = b"sudo: unable to resolve host sut: Name or service not known\nsh: warning: setlocale: LC_ALL\n"
        return replace(result, stderr=noise + result.stderr)

    monkeypatch.setattr(SshSession, "run", complaining)
    with pytest.raises(
        FenceError, match=r"newer holder: benchhub-fence: the host has seen fence 8, this is 7$"
    ) as said:
        await at(holder, 7).mutate(touch(tmp_path / "changed"))
    assert said.value.seen == 8
    lost = replace(holder.hold, fence=9, place=str(tmp_path), claim=str(tmp_path / "claim"))
    with pytest.raises(FenceError, match=r"is not this run's any more: .*/claim is gone\.$"):
        await replace(holder, hold=lost).mutate(touch(tmp_path / "changed"))
    assert os.listdir(tmp_path) == ["fence"]


async def test_an_older_holder_cannot_end_a_job_but_may_look_at_it(holder: FencedSession, tmp_path: Path) -> None:
    job = Job(holder, str(tmp_path / "jobs" / "1"))
    await job.start(Command(("sleep", "1000")), cookie=COOKIE)
    old = replace(job, session=at(holder, 6))
    with pytest.raises(FenceError):
        await old.kill()
    assert (await old.status()).state == "running"
    assert await job.kill() == ()


async def test_reading_and_putting_pass_through(holder: FencedSession, tmp_path: Path) -> None:
    await holder.put(str(tmp_path / "file"), b"data")
    assert await holder.get(str(tmp_path / "file"), offset=1) == b"ata"
    assert (await holder.run(script("echo on"))).stdout == b"on\n"
    assert holder.host == "sut"
    stream = await holder.start(script("echo stream"))
    assert b"".join([chunk async for chunk in stream]) == b"stream\n"
    await stream.close()


async def test_a_command_with_the_status_of_a_refusal_is_no_refusal(holder: FencedSession) -> None:
    assert (await holder.mutate(script("exit 97"))).exit_status == 97


async def test_changes_of_two_holders_do_not_overlap(
    holder: FencedSession, sshd_host: SshdHost, tmp_path: Path
) -> None:
    other_session = await connect(sshd_host.login(), sshd_host.private_key)
    newer = replace(at(holder, 8), session=other_session)
    inside, go = tmp_path / "inside", tmp_path / "go"
    slow = script('touch "$1"; while [ ! -e "$2" ]; do sleep 0.02; done; rm "$1"', str(inside), str(go))
    first = asyncio.create_task(holder.mutate(slow))
    await eventually(inside.exists)
    second = asyncio.create_task(newer.mutate(script('[ ! -e "$1" ]', str(inside))))
    go.touch()
    assert (await first).ok
    assert (await second).ok
    with pytest.raises(FenceError):
        await holder.mutate(Command(("true",)))
    await other_session.close()


async def test_a_holder_that_sends_its_input_no_further_keeps_nobody_from_the_host(
    holder: FencedSession, session: SshSession, tmp_path: Path
) -> None:
    stalled = fenced(put_command(str(tmp_path / "old"), b"late data"), holder.hold)
    process = await session.connection.create_process(stalled.shell(), encoding=None)
    process.stdin.write(b"late")
    await eventually((tmp_path / "fence" / "lock").exists)
    newer = replace(at(holder, 8), patience_s=lambda: 0.0)
    await newer.put(str(tmp_path / "new"), b"data")
    process.stdin.write(b" data")
    process.stdin.write_eof()
    await process.wait_closed()
    assert process.exit_status == 97
    assert sorted(os.listdir(tmp_path)) == ["fence", "new"]
    assert sorted(os.listdir(tmp_path / "fence")) == ["fence", "holder", "lock"]


async def test_half_an_input_changes_nothing(holder: FencedSession, session: SshSession, tmp_path: Path) -> None:
    whole = fenced(script('cat >"$1"', str(tmp_path / "new"), stdin=b"data"), holder.hold)
    result = await session.run(replace(whole, stdin=b"da"))
    assert (result.exit_status, result.stderr) == (1, b"only 2 of 4 bytes arrived\n")
    assert os.listdir(tmp_path) == ["fence"]


async def test_a_newer_holder_waits_for_the_end_of_a_change_as_long_as_its_patience_lasts(
    holder: FencedSession, sshd_host: SshdHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside, go = tmp_path / "inside", tmp_path / "go"
    slow = script('touch "$1"; while [ ! -e "$2" ]; do sleep 0.02; done', str(inside), str(go))
    told: list[str] = []

    async def on_trouble(text: str) -> None:
        told.append(text)
        go.touch()

    other_session = await connect(sshd_host.login(), sshd_host.private_key)
    older = asyncio.create_task(holder.mutate(slow))
    await eventually(inside.exists)
    monkeypatch.setattr("agents.remote.fencing.LOCK_WAIT_S", 0)
    newer = replace(at(holder, 8), session=other_session)
    with pytest.raises(ConnectError, match="sut takes no change: another one has been going on there"):
        await replace(newer, patience_s=lambda: 0.0).mutate(Command(("true",)))
    assert (await replace(newer, on_trouble=on_trouble).mutate(Command(("true",)))).ok
    assert (await older).ok
    assert told == ["sut takes no change yet, another one is going on there. Trying again for up to 600 s."]
    await other_session.close()


async def test_what_comes_late_over_a_connection_that_was_given_up_changes_nothing(
    sshd_host: SshdHost, tmp_path: Path
) -> None:
    sessions: list[SshSession] = []

    async def log_in() -> SshSession:
        sessions.append(await connect(sshd_host.login(), sshd_host.private_key))
        return sessions[-1]

    link = Link("sut", log_in)
    holder, other = (FencedSession(link, Hold(7, str(tmp_path / "fence")), name) for name in ("sut", "driver"))
    change = fenced(touch(tmp_path / "late"), holder.hold, "sut")
    late = replace(change, argv=tuple("1" if word == NTH_CONNECTION else word for word in change.argv))
    assert (await holder.mutate(Command(("true",)))).ok
    sessions[0].connection.abort()
    assert (await holder.mutate(Command(("true",)))).ok
    assert len(sessions) == 2
    result = await sessions[1].run(late)
    assert (result.exit_status, result.stderr) == (75, b"benchhub-fence is held by a newer connection\n")
    assert (await other.mutate(Command(("true",)))).ok
    assert not (tmp_path / "late").exists()
    assert (await replace(at(holder, 8), session=Link("sut", log_in)).mutate(Command(("true",)))).ok
    assert sorted(os.listdir(tmp_path / "fence")) == ["fence", "holder", "link-sut", "lock"]
    for session in sessions:
        await session.close()


async def test_what_a_command_leaves_running_does_not_hold_the_lock(holder: FencedSession) -> None:
    result = await holder.mutate(script("sleep 1000 >/dev/null 2>&1 & echo $!"))
    assert (await holder.mutate(Command(("kill", result.text.strip())))).ok


@pytest.mark.parametrize("damaged", ["", "x", "-1", "7 8", "9" * 26])
async def test_a_damaged_fence_refuses_everybody(holder: FencedSession, tmp_path: Path, damaged: str) -> None:
    await holder.mutate(Command(("true",)))
    (tmp_path / "fence" / "fence").write_text(damaged)
    with pytest.raises(CommandError, match=r"does not hold a number|holds a number of 26 digits"):
        (await holder.mutate(touch(tmp_path / "changed"))).check("Changing")
    assert not (tmp_path / "changed").exists()


def whose(holder: FencedSession, installation: Installation, fence: int = 7) -> FencedSession:
    """The same host in the hands of this installation."""
    return replace(holder, hold=replace(holder.hold, installation=installation, fence=fence))


async def test_a_host_of_another_installation_takes_no_change_whatever_the_number(
    holder: FencedSession, tmp_path: Path
) -> None:
    await whose(holder, OTHER, 7).mutate(Command(("true",)))
    for fence in (6, 7, 900):
        with pytest.raises(FenceError, match=r"other\.example has taken it"):
            await whose(holder, OURS, fence).mutate(touch(tmp_path / "changed"))
    assert not (tmp_path / "changed").exists()
    assert (await whose(holder, OTHER, 8).mutate(Command(("true",)))).ok


async def test_a_fence_of_an_older_version_becomes_the_installations_own(holder: FencedSession, tmp_path: Path) -> None:
    (tmp_path / "fence").mkdir()
    (tmp_path / "fence/fence").write_text("6\n")
    with pytest.raises(FenceError, match="seen fence 6, this is 5"):
        await whose(holder, OURS, 5).mutate(Command(("true",)))
    assert (await whose(holder, OURS, 7).mutate(Command(("true",)))).ok
    assert (tmp_path / "fence/holder").read_text() == f"7 {OURS.id}\n{OURS.name}\n"
    assert (tmp_path / "fence/fence").read_text() == "7\n"  # an older version reads this


async def test_a_worker_of_an_older_version_may_come_in_between(holder: FencedSession, tmp_path: Path) -> None:
    await whose(holder, OURS, 7).mutate(Command(("true",)))
    (tmp_path / "fence/fence").write_text("8\n")
    with pytest.raises(FenceError, match="seen fence 8, this is 7"):
        await whose(holder, OURS, 7).mutate(Command(("true",)))
    assert (await whose(holder, OURS, 9).mutate(Command(("true",)))).ok


async def test_a_change_takes_a_lost_host_back_first(holder: FencedSession, tmp_path: Path) -> None:
    await whose(holder, OTHER).mutate(Command(("true",)))
    taken = []

    async def take() -> None:
        taken.append(True)
        (tmp_path / "fence/holder").unlink()

    ours = replace(whose(holder, OURS), take=take)
    assert (await ours.mutate(Command(("true",)))).ok
    assert taken == [True]
