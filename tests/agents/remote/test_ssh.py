from __future__ import annotations

import asyncio
import os
import re
import resource
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import agents.remote.ssh
from agents.base.command import Command, script
from agents.base.errors import CommandError, ConnectError
from agents.remote.address import new_key_pair
from agents.remote.ssh import MAX_CHANNELS, SshSession, connect, scan_host_keys
from tests.sshd import SshdHost, children, eventually, exists, running_sshd

ECDSA_LINE = (
    "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBJIE2Lu0"
    "CGkdmFOJzxRBmtx0Si7nLFXGnX8bqG/uvu1KJMp5LRD4YtHXBf+9TYUgYOo101RKoW9NfpM3RByB5Ww="
)


async def connection_pid(session: SshSession) -> int:
    """The sshd process that serves this connection: above a command are the shell of its frame, `timeout`, and sshd."""
    up = "set -- $(cat /proc/$4/stat)"
    result = await session.run(script(f'set -- 1 2 3 $PPID; {up}; {up}; echo "$4"'))
    return int(result.check("asking for the parent").stdout)


@pytest.mark.parametrize(
    ("text", "exit_status", "stdout"),
    [
        ("printf 'a b'", 0, b"a b"),
        ("exit 3", 3, b""),
        (r"printf '\377\376\000\n'", 0, b"\xff\xfe\x00\n"),
        ("kill -KILL $$", 137, b""),
        ("kill -TERM $$", 143, b""),
        ("cat", 0, b""),
    ],
)
async def test_a_command_gives_its_status_and_its_bytes(
    session: SshSession, text: str, exit_status: int, stdout: bytes
) -> None:
    result = await session.run(script(text))
    assert (result.exit_status, result.stdout, result.truncated) == (exit_status, stdout, False)


async def test_a_command_that_has_ended_before_anybody_looks_is_no_lost_connection(
    session: SshSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a busy worker: the host has answered and closed the channel by the time the worker goes on."""
    create = session.connection.create_process

    async def late(*args: Any, **kwargs: Any) -> Any:
        process = await create(*args, **kwargs)
        await process.wait_closed()
        return process

    monkeypatch.setattr(session.connection, "create_process", late)
    result = await session.run(script("echo done; exit 3"))
    assert (result.exit_status, result.stdout) == (3, b"done\n")


async def test_arguments_arrive_as_they_are(session: SshSession) -> None:
    words = ("$(id)", "`id`", "a'b\"c", "line\nline", "; true", "--", "", "é")
    result = await session.run(Command(("printf", "%s|", *words)))
    assert result.text == "|".join(words) + "|"


async def test_bad_bytes_do_not_harm_the_connection(session: SshSession) -> None:
    await session.run(script(r"printf '\377\n'; printf '\377\n' >&2"))
    assert (await session.run(script("echo on"))).stdout == b"on\n"


async def test_standard_input_arrives_whole_and_is_closed(session: SshSession) -> None:
    data = bytes(range(256)) * 20_000
    result = await session.run(Command(("cat",), stdin=data), max_output_bytes=len(data))
    assert result.stdout == data


async def test_a_command_that_ignores_its_standard_input_succeeds(session: SshSession) -> None:
    assert (await session.run(script("exec <&-; echo done", stdin=b"x" * 8_000_000))).stdout == b"done\n"


async def test_output_is_bounded_and_memory_with_it(session: SshSession) -> None:
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = await session.run(script("head -c 50000000 /dev/zero; echo end >&2"), max_output_bytes=1000)
    assert (result.exit_status, result.stdout, result.stderr, result.truncated) == (0, bytes(1000), b"end\n", True)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb < 20_000


async def test_output_of_exactly_the_bound_is_not_truncated(session: SshSession) -> None:
    assert not (await session.run(script("printf 1234"), max_output_bytes=4)).truncated


@pytest.mark.parametrize("text", ["echo $$; exec sleep 1000", "trap '' TERM; echo $$; while :; do sleep 1; done"])
async def test_a_command_past_its_time_is_ended_on_the_host_too(
    session: SshSession, sshd_host: SshdHost, text: str
) -> None:
    path = sshd_host.home / "overdue"
    with pytest.raises(CommandError, match=r"sut did not end within 6 s, and was ended"):
        await session.run(script(f"exec >{path}; {text}", timeout_s=6.0))
    pid = int(path.read_text())
    await eventually(lambda: not exists(pid))
    assert (await session.run(script("echo on"))).ok


async def test_a_killed_connection_gives_an_unknown_status(sshd_host: SshdHost) -> None:
    session = await connect(sshd_host.login(), sshd_host.private_key)
    pid = await connection_pid(session)
    running = asyncio.create_task(session.run(script('echo started; : >"$HOME/started"; exec sleep 1000')))
    await eventually((sshd_host.home / "started").exists)
    os.kill(pid, signal.SIGKILL)
    result = await running
    assert (result.exit_status, result.stdout, result.ok) == (None, b"started\n", False)
    with pytest.raises(CommandError, match="no exit status"):
        result.check("Sleeping")
    with pytest.raises(ConnectError) as refused:
        await session.run(Command(("true",)))
    assert not refused.value.permanent
    await session.close()


async def test_a_silent_connection_is_noticed(sshd_host: SshdHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agents.remote.ssh, "KEEPALIVE_INTERVAL_S", 1.0)
    session = await connect(sshd_host.login(), sshd_host.private_key)
    pid = await connection_pid(session)
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(ConnectError, match="takes no command"):
            await session.run(script("echo never"))
    finally:
        os.kill(pid, signal.SIGCONT)
        await session.close()


async def test_a_command_that_is_overdue_on_a_silent_connection_is_a_lost_connection(
    sshd_host: SshdHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agents.remote.ssh, "ANSWER_WITHIN_S", 0)
    monkeypatch.setattr(agents.remote.ssh, "KEEPALIVE_INTERVAL_S", 600)  # the connection itself notices nothing
    session = await connect(sshd_host.login(), sshd_host.private_key)
    monkeypatch.setattr(agents.remote.ssh, "KEEPALIVE_INTERVAL_S", 0.2)
    pid = await connection_pid(session)
    running = asyncio.create_task(session.run(script(': >"$HOME/overdue"; exec sleep 1000', timeout_s=8.0)))
    await eventually((sshd_host.home / "overdue").exists)
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(ConnectError):
            await running
    finally:
        os.kill(pid, signal.SIGCONT)
        await session.close()


@pytest.mark.parametrize("moment", ["opening", "sending"])
async def test_a_command_that_ran_out_of_time_while_this_process_stood_still_is_a_lost_connection(
    session: SshSession, sshd_host: SshdHost, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    path = sshd_host.home / f"late-{moment}"

    def stand_still() -> None:
        """As a frozen process: nothing else goes on here until the host has ended the command."""
        while not (path.exists() and path.read_text().endswith("\n")):
            pass
        while exists(int(path.read_text())):
            pass

    async def open_late(text: str, opened: Any = session._open) -> Any:
        process = await opened(text)
        stand_still()
        return process

    async def send_late(writer: Any, data: bytes, sent: Any = agents.remote.ssh._send) -> None:
        stand_still()
        await sent(writer, data)

    if moment == "opening":
        monkeypatch.setattr(session, "_open", open_late)
    else:
        monkeypatch.setattr(agents.remote.ssh, "_send", send_late)
    with pytest.raises(ConnectError, match="BenchHub itself stood still for"):
        await session.run(script(f"echo $$ >{path}; cat", stdin=b"late", timeout_s=1.5))


async def test_another_host_key_is_refused_for_good(sshd_host: SshdHost) -> None:
    changed = replace(sshd_host.login(), host_key=new_key_pair("")[1])
    with pytest.raises(ConnectError, match=r"sut \(127\.0\.0\.1:\d+\) did not prove to be the approved host") as error:
        await connect(changed, sshd_host.private_key)
    assert error.value.permanent
    assert "compare the fingerprint" in error.value.hint


async def test_a_host_key_of_another_type_is_refused_for_good(sshd_host: SshdHost) -> None:
    with pytest.raises(ConnectError, match="did not prove to be the approved host") as error:
        await connect(replace(sshd_host.login(), host_key=ECDSA_LINE), sshd_host.private_key)
    assert error.value.permanent


@pytest.mark.parametrize("line", ["", "nonsense", "ssh-ed25519 AAAA"])
async def test_a_host_without_an_approved_key_is_refused(sshd_host: SshdHost, line: str) -> None:
    with pytest.raises(ConnectError, match="No usable host key is approved") as error:
        await connect(replace(sshd_host.login(), host_key=line), sshd_host.private_key)
    assert error.value.permanent


async def test_an_unknown_login_key_is_refused_for_good(sshd_host: SshdHost) -> None:
    with pytest.raises(ConnectError, match=f"refuses the key of user {sshd_host.user}") as error:
        await connect(sshd_host.login(), new_key_pair("another")[0])
    assert error.value.permanent
    assert "authorized_keys" in error.value.hint


@pytest.mark.parametrize(
    "text", ["", "-----BEGIN OPENSSH PRIVATE KEY-----\nnonsense\n-----END OPENSSH PRIVATE KEY-----\n"]
)
async def test_an_unusable_private_key_is_refused_without_showing_it(sshd_host: SshdHost, text: str) -> None:
    with pytest.raises(ConnectError, match="cannot be used") as error:
        await connect(sshd_host.login(), text)
    assert error.value.permanent
    assert "nonsense" not in error.value.message


async def test_a_closed_port_may_be_tried_again(sshd_host: SshdHost) -> None:
    with pytest.raises(ConnectError, match="connection was refused") as error:
        await connect(replace(sshd_host.login(), port=1), sshd_host.private_key)
    assert not error.value.permanent


async def test_the_host_key_is_scanned_without_a_login(sshd_host: SshdHost) -> None:
    (found,) = await scan_host_keys(sshd_host.address, sshd_host.port)
    assert (found.line, found.kind, found.file) == (
        sshd_host.host_key,
        "ED25519",
        "/etc/ssh/ssh_host_ed25519_key.pub",
    )
    assert re.fullmatch(r"SHA256:[A-Za-z0-9+/]{43}", found.fingerprint)
    with pytest.raises(ConnectError, match="the connection was refused"):
        await scan_host_keys(sshd_host.address, 1)


async def test_a_host_behind_a_jump_host_is_reached(sshd_host: SshdHost) -> None:
    jump = await connect(sshd_host.login("jump"), sshd_host.private_key)
    (found,) = await scan_host_keys(sshd_host.address, sshd_host.port, jump)
    await jump.close()
    inner = replace(sshd_host.login(), host_key=found.line, jump=sshd_host.login("jump"))
    session = await connect(inner, sshd_host.private_key)
    assert (await session.run(script("echo inside"))).stdout == b"inside\n"
    await session.close()
    wrong = replace(inner, jump=replace(sshd_host.login("jump"), host_key=new_key_pair("")[1]))
    with pytest.raises(ConnectError, match=r"^jump ") as error:
        await connect(wrong, sshd_host.private_key)
    assert error.value.permanent


async def test_more_commands_than_channels_take_turns(session: SshSession) -> None:
    one = script('mkdir "$HOME/turn.$1" && ls -d "$HOME"/turn.* | wc -l && sleep 0.1; rmdir "$HOME/turn.$1"', "$1")
    many = [replace(one, argv=(*one.argv[:-1], str(n))) for n in range(12)]
    results = await asyncio.gather(*(session.run(command) for command in many))
    assert all(result.ok for result in results)
    assert max(int(result.stdout) for result in results) <= MAX_CHANNELS


async def test_many_logins_at_once_take_turns(tmp_path: Path) -> None:
    with running_sshd(tmp_path, extra="MaxStartups 3:100:3") as host:
        sessions = await asyncio.gather(*(connect(host.login(), host.private_key) for _ in range(12)))
        assert len(children(host.pid)) == 12
        await asyncio.gather(*(session.close() for session in sessions))


async def test_a_stream_is_read_as_it_comes_and_ends_what_it_started(session: SshSession) -> None:
    stream = await session.start(script("echo $$; while :; do sleep 1; done"))
    pid = int(await anext(aiter(stream)))
    assert exists(pid)
    await stream.close()
    await stream.close()
    await eventually(lambda: not exists(pid))


async def test_a_stream_ends_with_its_command(session: SshSession) -> None:
    stream = await session.start(script("echo one; echo two"))
    assert b"".join([chunk async for chunk in stream]) == b"one\ntwo\n"
    await stream.close()


async def test_streams_leave_a_channel_for_commands(session: SshSession) -> None:
    streams = [await session.start(Command(("sleep", "1000"))) for _ in range(MAX_CHANNELS - 1)]
    with pytest.raises(CommandError, match="last channel"):
        await session.start(Command(("sleep", "1000")))
    assert (await session.run(script("echo on"))).ok
    for stream in streams:
        await stream.close()


async def test_a_file_is_put_whole_and_read_in_parts(session: SshSession, sshd_host: SshdHost) -> None:
    data = bytes(range(256)) * 10_000
    path = sshd_host.home / "some file"
    path.write_bytes(b"old")
    await session.put(str(path), data, mode=0o640)
    assert path.read_bytes() == data
    assert path.stat().st_mode & 0o777 == 0o640
    assert await session.get(str(path), max_bytes=len(data)) == data
    assert await session.get(str(path), offset=1000, max_bytes=5) == data[1000:1005]
    assert await session.get(str(path), offset=len(data)) == b""
    assert not list(sshd_host.home.glob("*.part"))


@pytest.mark.parametrize(("path", "why"), [("missing", "there is no file"), (".", "there is no file")])
async def test_reading_what_is_no_file_says_so(session: SshSession, sshd_host: SshdHost, path: str, why: str) -> None:
    with pytest.raises(CommandError, match=why):
        await session.get(f"{sshd_host.home}/{path}")


async def test_a_file_that_cannot_be_put_leaves_nothing(session: SshSession, sshd_host: SshdHost) -> None:
    with pytest.raises(CommandError, match=r"Writing .* on sut failed"):
        await session.put(f"{sshd_host.home}/no such folder/file", b"data")
    folder = sshd_host.home / "folder"
    folder.mkdir()
    with pytest.raises(CommandError, match="cannot overwrite directory"):
        await session.put(str(folder), b"data")
    assert not list(sshd_host.home.glob("*.part"))


async def test_a_connection_that_dies_under_a_file_is_a_lost_connection(sshd_host: SshdHost) -> None:
    session = await connect(sshd_host.login(), sshd_host.private_key)
    pid = await connection_pid(session)
    os.kill(pid, signal.SIGSTOP)
    writing = asyncio.create_task(session.put(f"{sshd_host.home}/half", bytes(50_000_000)))
    await asyncio.sleep(0)  # the command is on its way before the connection dies
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(ConnectError):
        await writing
    await session.close()
    assert not (sshd_host.home / "half").exists()


async def test_no_agent_goes_along_to_a_host_whatever_the_worker_has(
    sshd_host: SshdHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = await asyncio.create_subprocess_exec(
        "ssh-agent", "-D", "-a", str(tmp_path / "agent"), stdout=asyncio.subprocess.DEVNULL
    )
    try:
        monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "agent"))
        session = await connect(sshd_host.login(), sshd_host.private_key)
        said = await session.run(script('echo "agent=$SSH_AUTH_SOCK"'))
        await session.close()
        assert said.text.splitlines() == ["agent="]
    finally:
        agent.terminate()
        await agent.wait()
