"""A plain login that becomes root by sudo, as on a fresh Debian: what it starts as root is read and ended."""

from __future__ import annotations

import os
import secrets
import subprocess
from pathlib import Path

import pytest

from agents.base.command import Command
from agents.base.errors import CommandError
from agents.remote.jobs import Job
from agents.remote.ssh import SshSession, connect
from tests import needs
from tests.sshd import cut_connections, eventually, exists, running_sshd


@pytest.fixture(autouse=True)
def sudo() -> None:
    needs.require(os.geteuid() != 0, "a plain user who may use sudo", "run it without root")
    needs.require_program("sudo")
    allowed = subprocess.run(["sudo", "-n", "true"], capture_output=True, check=False).returncode == 0
    needs.require(allowed, "sudo without a password", f"allow it in /etc/sudoers.d/{os.environ.get('USER', 'you')}")


@pytest.mark.parametrize(
    ("text", "stdin", "exit_status", "stdout"),
    [
        ("id -u", b"", 0, b"0\n"),
        ("cat", b"a\x00\xff\n\x04\x03", 0, b"a\x00\xff\n\x04\x03"),
        ("printf 'a\\n\\r\\377'; exit 3", b"", 3, b"a\n\r\xff"),
        ("kill -TERM $$", b"", 143, b""),
    ],
)
async def test_a_command_of_root_gets_and_gives_its_bytes_and_its_status(
    session: SshSession, text: str, stdin: bytes, exit_status: int, stdout: bytes
) -> None:
    result = await session.run(Command(("sh", "-c", text), privileged=True, stdin=stdin))
    assert (result.exit_status, result.stdout) == (exit_status, stdout)


async def test_a_command_of_root_that_is_out_of_time_is_ended(session: SshSession, tmp_path: Path) -> None:
    said = tmp_path / "pid"
    command = Command(("sh", "-c", 'echo $$ >"$1"; exec sleep 1000', "sh", str(said)), privileged=True, timeout_s=0.5)
    with pytest.raises(CommandError, match="was ended"):
        await session.run(command)
    pid = int(said.read_text())
    await eventually(lambda: not exists(pid))


async def test_a_stream_of_root_ends_with_its_reader(session: SshSession) -> None:
    command = Command(("sh", "-c", "echo $$; while :; do sleep 1; done"), privileged=True)
    stream = await session.start(command)
    pid = int(await anext(aiter(stream)))
    assert exists(pid)
    await stream.close()
    await eventually(lambda: not exists(pid))


async def test_a_stream_of_root_ends_with_its_connection(tmp_path: Path) -> None:
    with running_sshd(tmp_path) as host:
        session = await connect(host.login(), host.private_key)
        stream = await session.start(Command(("sh", "-c", "echo $$; while :; do sleep 1; done"), privileged=True))
        pid = int(await anext(aiter(stream)))
        cut_connections(host.pid)
        await eventually(lambda: not exists(pid))
        await session.close()


async def test_a_job_of_root_is_ended_with_all_that_it_started(session: SshSession, tmp_path: Path) -> None:
    job = Job(session, str(tmp_path / "jobs" / "1"), privileged=True)
    said = tmp_path / "pid"
    hide = """(setsid sh -c 'trap "" TERM; echo $$ >"$1"; while :; do sleep 1; done' sh "$1" &) & exec sleep 1000"""
    command = Command(("sh", "-c", hide, "sh", str(said)), privileged=True)
    started = await job.start(command, cookie=secrets.token_hex())
    await eventually(lambda: said.exists() and said.read_text().endswith("\n"))
    pid = int(said.read_text())
    assert exists(pid)
    assert exists(started.pid or 0)
    assert await job.kill(grace_s=1) == ()
    assert (exists(pid), exists(started.pid or 0)) == (False, False)
    assert (await job.status()).state != "running"
    await session.run(Command(("rm", "-rf", str(tmp_path / "jobs")), privileged=True))  # it is root's
