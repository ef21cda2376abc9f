"""Jobs on hosts where things go wrong: cut links, damaged records, full disks, processes that do not want to end."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from agents.base.command import Command, script
from agents.base.errors import CommandError
from agents.remote.jobs import Job, JobStatus, StreamName
from agents.remote.link import Link
from agents.remote.ssh import SshSession, connect
from tests import needs
from tests.agents.remote.job_ends import COOKIE, end, first_line, folder
from tests.sshd import SshdHost, cut_connections, eventually, exists, running_sshd

SHA256_OF_NOTHING = hashlib.sha256().hexdigest()


@pytest.fixture
def job(session: SshSession, tmp_path: Path) -> Job:
    return Job(session, str(tmp_path / "jobs" / "1"))


# What reaches us


async def test_what_was_fetched_is_proven_whole_by_its_checksums(job: Job) -> None:
    await job.start(script(r"printf 'a\000\377\n'; echo error >&2"), cookie=COOKIE)
    status, out, err = await end(job)
    assert status.out_sha256 == hashlib.sha256(out).hexdigest()
    assert status.err_sha256 == hashlib.sha256(err).hexdigest()
    assert await job.read("out", 0) == out


async def test_the_checksum_of_a_job_with_too_much_output_is_that_of_what_is_kept(job: Job) -> None:
    await job.start(script("head -c 1000000000 /dev/zero | tr '\\0' x"), cookie=COOKIE, max_output_bytes=100_000)
    status, out, _ = await end(job)
    assert (status.exit_status, status.truncated, out) == (0, True, b"x" * 100_000)
    assert status.out_sha256 == hashlib.sha256(out).hexdigest()


async def test_output_that_shrank_on_the_host_no_longer_has_its_checksum(job: Job) -> None:
    await job.start(script("echo 0123456789"), cookie=COOKIE)
    await end(job)
    os.truncate(folder(job) / "out", 5)
    status = await job.status()
    assert status.out_sha256 == hashlib.sha256(b"0123456789\n").hexdigest()
    assert await job.read("out", 0) == b"01234"


async def test_a_process_that_was_left_behind_and_writes_on_makes_the_checksum_unknown(job: Job) -> None:
    await job.start(
        script('(while [ ! -e "$1" ]; do sleep 0.02; done; echo late) & exit 0', f"{job.directory}.go"), cookie=COOKIE
    )
    assert (await end(job))[0].out_sha256 == SHA256_OF_NOTHING
    folder(job).with_suffix(".go").touch()
    await first_line(job)
    status = await job.status()
    assert (status.out_bytes, status.out_sha256, status.err_sha256) == (5, None, SHA256_OF_NOTHING)


async def test_a_running_job_has_no_checksum_and_two_sessions_see_the_same_of_it(job: Job, sshd_host: SshdHost) -> None:
    other = await connect(sshd_host.login(), sshd_host.private_key)
    await job.start(script("echo one; exec sleep 1000"), cookie=COOKIE)
    await first_line(job)
    first, second = await asyncio.gather(job.status(), replace(job, session=other).status())
    assert first == second
    assert (first.state, first.out_bytes, first.out_sha256) == ("running", 4, None)
    assert await job.kill() == ()
    await other.close()


async def test_a_job_goes_on_while_its_sshd_is_dead_and_is_followed_on_from_the_same_byte(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    go, got, trouble = tmp_path / "go", [], []

    async def keep(stream: StreamName, offset: int, data: bytes) -> None:
        got.append((stream, offset, data))

    async def tell(message: str) -> None:
        trouble.append(message)

    with contextlib.ExitStack() as hosts:
        host = hosts.enter_context(running_sshd(tmp_path / "a"))
        link = Link("sut", lambda: connect(host.login(), host.private_key), on_trouble=tell)
        job = Job(link, str(tmp_path / "jobs" / "1"))
        text = 'echo one; while [ ! -e "$1" ]; do sleep 0.02; done; echo two; exit 5'
        await job.start(script(text, str(go)), cookie=COOKIE)
        following = asyncio.create_task(job.follow(keep, interval_s=0.02, deadline_s=600))
        await eventually(lambda: bool(got))
        cut_connections(host.pid)
        os.kill(host.pid, signal.SIGKILL)
        await eventually(lambda: bool(trouble))
        go.touch()
        await eventually((folder(job) / "rc").exists)
        assert got == [("out", 0, b"one\n")]
        host = hosts.enter_context(running_sshd(tmp_path / "b"))
        status = await following
        await link.close()
    assert got == [("out", 0, b"one\n"), ("out", 4, b"two\n")]
    assert (status.exit_status, status.out_sha256) == (5, hashlib.sha256(b"one\ntwo\n").hexdigest())


# What is left of a record


DAMAGE: dict[str, tuple[str, bytes, JobStatus]] = {
    "an empty exit status": ("rc", b"", JobStatus("exited")),
    "text for an exit status": ("rc", b"no\n", JobStatus("exited")),
    "an exit status over 255": ("rc", b"300\n", JobStatus("exited")),
    "a negative exit status": ("rc", b"-1\n", JobStatus("exited")),
    "an exit status without its newline": ("rc", b"0", JobStatus("exited")),
    "NUL bytes for an exit status": ("rc", b"\0\0\0\0", JobStatus("exited")),
    "two exit statuses": ("rc", b"0\n1\n", JobStatus("exited")),
    "a torn identity": ("meta", b"12", JobStatus("exited", 0)),
    "an identity of NUL bytes": ("meta", b"\0\0\0\0", JobStatus("exited", 0)),
    "a torn identity of the supervisor": ("starter", b"12 3", JobStatus("exited", 0)),
    "torn checksums": ("sums", b"3 ab", JobStatus("exited", 0)),
    "checksums of NUL bytes": ("sums", b"\0\0\0\0", JobStatus("exited", 0)),
}


@pytest.mark.parametrize(("file", "content", "expected"), DAMAGE.values(), ids=DAMAGE.keys())
async def test_a_damaged_record_is_unknown_and_never_a_success(
    job: Job, file: str, content: bytes, expected: JobStatus
) -> None:
    await job.start(Command(("true",)), cookie=COOKIE)
    await end(job)
    (folder(job) / file).write_bytes(content)
    status = await job.status()
    assert (status.state, status.exit_status) == (expected.state, expected.exit_status)
    assert (status.out_sha256 is None) is (file == "sums")
    assert await job.kill(cookie=COOKIE) == ()


@pytest.mark.parametrize("file", ["meta", "starter", "both"])
async def test_a_job_with_a_torn_identity_is_still_found_and_ended_by_its_cookie(job: Job, file: str) -> None:
    started = await job.start(Command(("sleep", "1000")), cookie=COOKIE)
    for name in ("meta", "starter") if file == "both" else (file,):
        (folder(job) / name).write_text("1")
    assert (await job.status()).state == ("dead" if file == "both" else "running")
    assert await job.kill(cookie=COOKIE) == ()
    assert not exists(started.pid or 0)


async def test_a_job_that_nothing_is_known_of_is_not_said_to_be_ended(job: Job) -> None:
    folder(job).mkdir(parents=True)
    with pytest.raises(CommandError, match=r"nothing in .* tells which processes are of this job"):
        await job.kill()
    assert await job.kill(cookie=COOKIE) == ()


async def test_a_job_whose_directory_is_gone_is_absent_and_its_end_is_not_made_up(job: Job) -> None:
    await job.start(script("echo $$; exec sleep 1000"), cookie=COOKIE)
    pid = int(await first_line(job))
    shutil.rmtree(job.directory)
    assert await job.kill(cookie=COOKIE) == ()
    assert not exists(pid)
    assert await job.status() == JobStatus("absent")


# Processes that do not want to end


TREES = {
    "forked twice into a session of its own": "(setsid sh -c 'echo $$; exec sleep 1000' &) & wait",
    "without its environment": 'echo "$$"; exec env -i sleep 1000',
    "without its environment in a session of its own": "env -i setsid sh -c 'echo $$; exec sleep 1000' & wait",
    "under a name that looks like a state": "echo $$; printf 'a\\nb) Z 1' >/proc/$$/comm; while :; do sleep 1; done",
    "reading what nobody writes": 'mkfifo "$1"; echo $$; read -r never <"$1"',
    "a tree of 127": 'f() { [ "$1" = 0 ] || { f $(($1 - 1)) & f $(($1 - 1)) & }; sleep 1000; }; f 6 & echo $!; wait',
    "stopped and ignoring TERM": "trap '' TERM; sleep 1000 & kill -STOP $!; echo $!; wait",
}


@pytest.mark.parametrize("text", TREES.values(), ids=TREES.keys())
async def test_every_process_of_a_stubborn_job_is_ended(job: Job, text: str) -> None:
    await job.start(script(text, f"{job.directory}.pipe"), cookie=COOKIE)
    pid = int(await first_line(job))
    assert (await job.status()).state == "running"
    assert await job.kill(grace_s=1) == ()
    assert not exists(pid)
    status, *_ = await end(job)
    assert status.state == "exited"


def size_bytes(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


async def test_a_job_that_forks_faster_than_it_can_be_named_is_ended(job: Job) -> None:
    go_on = 'printf x >>"$2"; sh -c "$1" x "$1" "$2" &'
    await job.start(script(go_on, go_on, f"{job.directory}.count"), cookie=COOKIE)
    count = Path(f"{job.directory}.count")
    await eventually(lambda: size_bytes(count) > 50)
    assert await job.kill(grace_s=1) == ()
    reached = size_bytes(count)
    await job.status()
    assert size_bytes(count) == reached


# Disks without room


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 1 MB."""
    needs.require_root("it mounts a small disk where a host of the test writes")
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", place], check=False)
    needs.require(mounted.returncode == 0, "mounts", needs.NOT_ALLOWED)
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)


def fill(disk: Path, *, leaving_bytes: int = 0) -> None:
    with (disk / "filler").open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(bytes(4096)):
            pass
    os.truncate(disk / "filler", (disk / "filler").stat().st_size - leaving_bytes)


@pytest.mark.parametrize("free_pages", range(8))
async def test_a_job_starts_whole_on_a_nearly_full_disk_or_not_at_all(
    session: SshSession, small_disk: Path, free_pages: int
) -> None:
    fill(small_disk, leaving_bytes=free_pages * 4096)
    job, ran = Job(session, f"{small_disk}/jobs/1"), small_disk.parent / "ran"
    try:
        await job.start(script('echo said; touch "$1"; exit 3', str(ran)), cookie=COOKIE)
    except CommandError as error:
        assert "could not be written" in error.message  # noqa: PT017 - the other way out is as good
        assert not folder(job).exists()
        assert not ran.exists()
        assert list((small_disk / "jobs").glob("*")) == []
    else:
        status, out, _ = await end(job)
        assert (status.exit_status, ran.exists()) == (3, True)
        assert out == b"said\n" or status.truncated


async def test_output_to_a_full_disk_neither_blocks_the_job_nor_looks_whole(
    session: SshSession, small_disk: Path
) -> None:
    job = Job(session, f"{small_disk}/jobs/1")
    await job.start(script("head -c 20000000 /dev/zero; exit 4"), cookie=COOKIE)
    status, out, _ = await end(job)
    assert (status.state, status.exit_status, status.truncated) == ("exited", 4, True)
    assert 0 < len(out) < 1 << 20
    assert status.out_sha256 == hashlib.sha256(out).hexdigest()


async def test_a_job_on_a_full_disk_can_be_ended(session: SshSession, small_disk: Path) -> None:
    job = Job(session, f"{small_disk}/jobs/1")
    started = await job.start(script("cat /dev/zero & exec sleep 1000"), cookie=COOKIE)
    await eventually(lambda: shutil.disk_usage(small_disk).free == 0)
    assert await job.kill() == ()
    assert not exists(started.pid or 0)
    assert (await job.status()).exit_status == 143
