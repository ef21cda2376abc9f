from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from agents.base.command import Command, script
from agents.base.cpuset import format_cpus
from agents.base.errors import CommandError, PlanError
from agents.remote.job_script import job_script
from agents.remote.job_supervisor import COOKIE_VARIABLE
from agents.remote.jobs import Job, JobStatus, StreamName
from agents.remote.ssh import SshSession, connect
from tests.agents.remote.job_ends import COOKIE, end, first_line, folder
from tests.sshd import SshdHost, eventually, exists, process_bytes

BOOT_ID = Path("/proc/sys/kernel/random/boot_id").read_text().strip()


@pytest.fixture
def job(session: SshSession, tmp_path: Path) -> Job:
    return Job(session, str(tmp_path / "jobs" / "1"))


@pytest.mark.parametrize(
    ("command", "exit_status", "out", "err"),
    [
        (script("echo out; echo err >&2"), 0, b"out\n", b"err\n"),
        (script("exit 3"), 3, b"", b""),
        (script("kill -KILL $$"), 137, b"", b""),
        (script("kill -TERM $$"), 143, b"", b""),
        (script(r"printf '\377\000\n'"), 0, b"\xff\x00\n", b""),
        (Command(("printf", "%s|", "$(id)", "a'b", "line\nline")), 0, b"$(id)|a'b|line\nline|", b""),
    ],
)
async def test_a_job_tells_its_end_and_its_output(
    job: Job, command: Command, exit_status: int, out: bytes, err: bytes
) -> None:
    started = await job.start(command, cookie=COOKIE)
    status, had_out, had_err = await end(job)
    assert not started.already
    assert (status.state, status.exit_status, had_out, had_err) == ("exited", exit_status, out, err)
    assert (status.pid, status.start_ticks, status.boot_id) == (started.pid, started.start_ticks, started.boot_id)
    assert (status.out_bytes, status.err_bytes, status.truncated) == (len(out), len(err), False)


async def test_a_missing_program_gives_127_and_says_its_name(job: Job) -> None:
    await job.start(Command(("no-such-program", "--fast")), cookie=COOKIE)
    status, _, err = await end(job)
    assert status.exit_status == 127
    assert b"no-such-program" in err


async def test_a_job_that_never_started_is_absent(job: Job) -> None:
    assert (await job.status()) == JobStatus("absent")
    assert await job.kill() == ()


async def test_the_pid_is_that_of_the_program_itself(job: Job) -> None:
    started = await job.start(Command(("sleep", "1000")), cookie=COOKIE)
    assert (await job.status()).state == "running"
    await eventually(lambda: process_bytes(started.pid, "comm") == b"sleep\n")
    ticks = int(process_bytes(started.pid, "stat").rpartition(b") ")[2].split()[19])
    assert started.start_ticks == ticks
    assert started.boot_id == BOOT_ID
    assert f"{COOKIE_VARIABLE}={COOKIE}".encode() in process_bytes(started.pid, "environ").split(b"\0")
    assert await job.kill() == ()


async def test_five_starts_at_once_start_once(job: Job, sshd_host: SshdHost) -> None:
    sessions = await asyncio.gather(*(connect(sshd_host.login(), sshd_host.private_key) for _ in range(5)))
    command = script('echo "$$" >>"$1"; exec sleep 1000', f"{folder(job).parent}/starts")
    started = await asyncio.gather(*(replace(job, session=s).start(command, cookie=COOKIE) for s in sessions))
    assert sorted(s.already for s in started) == [False, True, True, True, True]
    assert len({(s.pid, s.start_ticks, s.boot_id) for s in started}) == 1
    starts = folder(job).parent / "starts"
    await eventually(starts.exists)
    assert starts.read_text().split() == [str(started[0].pid)]
    assert sorted(path.name for path in folder(job).parent.iterdir()) == ["1", "starts"]
    assert await job.kill() == ()
    await asyncio.gather(*(s.close() for s in sessions))


async def test_a_job_outlives_its_connection_and_is_adopted(job: Job, sshd_host: SshdHost) -> None:
    first = await connect(sshd_host.login(), sshd_host.private_key)
    go = folder(job).parent / "go"
    command = script('echo one; while [ ! -e "$1" ]; do sleep 0.02; done; echo two; exit 5', str(go))
    started = await replace(job, session=first).start(command, cookie=COOKIE)
    first.connection.abort()
    assert await first_line(job) == "one"
    again = await job.start(command, cookie=COOKIE)
    assert again == replace(started, already=True)
    go.touch()
    status, out, _ = await end(job)
    assert (status.exit_status, out) == (5, b"one\ntwo\n")
    assert (await job.start(command, cookie=COOKIE)) == again


async def test_output_is_read_by_offset_and_followed_from_one(job: Job) -> None:
    await job.start(script("echo 0123456789; echo error >&2"), cookie=COOKIE)
    await end(job)
    assert await job.read("out", 3, 4) == b"3456"
    assert await job.read("out", 11) == b""
    assert await job.read("err", 0) == b"error\n"
    got = []

    async def keep(stream: StreamName, offset: int, data: bytes) -> None:
        got.append((stream, offset, data))

    await job.follow(keep, interval_s=0.01, deadline_s=600, out_offset=8, err_offset=6, max_bytes=2)
    assert got == [("out", 8, b"89"), ("out", 10, b"\n")]


async def never(stream: StreamName, offset: int, data: bytes) -> None:
    raise AssertionError("there is no output")


@pytest.mark.parametrize(
    ("deadline_s", "should_stop"), [(0.0, lambda: False), (1000.0, lambda: True)], ids=["deadline", "asked to stop"]
)
async def test_following_ends_before_the_job_when_it_should(
    job: Job, deadline_s: float, should_stop: Callable[[], bool]
) -> None:
    await job.start(Command(("sleep", "1000")), cookie=COOKIE)
    status = await job.follow(never, interval_s=0.01, deadline_s=deadline_s, should_stop=should_stop)
    assert status.state == "running"
    assert await job.kill() == ()


async def test_output_beyond_the_cap_is_dropped_and_the_job_goes_on(job: Job) -> None:
    text = "head -c 20000000 /dev/zero; echo late >&2; exit 4"
    await job.start(script(text), cookie=COOKIE, max_output_bytes=1_000_001)
    status, out, err = await end(job)
    assert (status.state, status.exit_status, status.truncated) == ("exited", 4, True)
    assert (out, err) == (bytes(1_000_001), b"late\n")


async def test_output_of_exactly_the_cap_is_whole(job: Job) -> None:
    await job.start(script("printf 12345"), cookie=COOKIE, max_output_bytes=5)
    status, out, _ = await end(job)
    assert (out, status.truncated) == (b"12345", False)


async def test_output_is_there_while_the_job_runs(job: Job) -> None:
    await job.start(script("echo early; exec sleep 1000"), cookie=COOKIE)
    assert await first_line(job) == "early"
    assert (await job.status()).out_bytes == 6
    assert await job.kill() == ()


async def test_a_child_that_keeps_the_output_open_does_not_hold_back_the_end(job: Job) -> None:
    await job.start(script("sleep 1000 & echo $!"), cookie=COOKIE)
    status, out, _ = await end(job)
    assert (status.state, status.exit_status) == ("exited", 0)
    assert exists(int(out))
    assert await job.kill() == ()
    assert not exists(int(out))


TREES = {
    "a child": 'sleep 1000 & echo "$$ $!"; wait',
    "a child in its own session": 'setsid sleep 1000 & echo "$$ $!"; wait',
    "under timeout": "exec timeout 900 sh -c 'sleep 1000 & echo \"$PPID $$ $!\"; wait'",
    "ignoring TERM": "trap '' TERM; (while :; do sleep 1; done) & echo \"$$ $!\"; wait",
    "in its own session and ignoring TERM": "trap '' TERM; setsid sleep 1000 & echo \"$$ $!\"; wait",
    "without the cookie": f'env -u {COOKIE_VARIABLE} sleep 1000 & echo "$$ $!"; wait',
    "stopped": 'sleep 1000 & kill -STOP $!; echo "$$ $!"; wait',
    "left behind": 'setsid sleep 1000 & echo "$$ $!"; exit 0',
}


@pytest.mark.parametrize("text", TREES.values(), ids=TREES.keys())
async def test_every_process_of_a_job_is_ended(job: Job, text: str) -> None:
    await job.start(script(text), cookie=COOKIE)
    pids = [int(pid) for pid in (await first_line(job)).split()]
    assert await job.kill(grace_s=1) == ()
    assert not [pid for pid in pids if exists(pid)]
    assert (await job.status()).state == "exited"
    assert await job.kill() == ()


@pytest.mark.parametrize(("cookie", "is_left"), [(COOKIE, False), ("", True)], ids=["cookie", "no cookie"])
async def test_a_job_whose_directory_was_removed_is_found_by_its_cookie(job: Job, cookie: str, is_left: bool) -> None:
    await job.start(script("echo $$; exec sleep 300"), cookie=COOKIE)
    pid = int(await first_line(job))
    shutil.rmtree(job.directory)
    assert await job.kill(cookie=cookie) == ()
    assert exists(pid) is is_left
    assert await job.kill(cookie=COOKIE) == ()
    assert not exists(pid)


async def test_a_job_of_five_hundred_processes_is_ended(job: Job) -> None:
    text = 'n=0; while [ $n -lt 500 ]; do sleep 1000 & n=$((n + 1)); done; echo "$!"; wait'
    await job.start(script(text), cookie=COOKIE)
    last = int(await first_line(job))
    assert await job.kill() == ()
    assert not exists(last)


async def test_a_job_that_handles_term_keeps_its_last_words_and_its_status(job: Job) -> None:
    await job.start(script("trap 'echo saved; exit 9' TERM; echo ready; while :; do sleep 0.1; done"), cookie=COOKIE)
    await first_line(job)
    assert await job.kill(grace_s=20) == ()
    status, out, _ = await end(job)
    assert (status.exit_status, out) == (9, b"ready\nsaved\n")


async def test_killing_spares_the_processes_of_others(job: Job) -> None:
    other = replace(job, directory=f"{job.directory}0")
    await other.start(Command(("sleep", "1000")), cookie=COOKIE + "-other")
    await job.start(Command(("sleep", "1000")), cookie=COOKIE + "-this")
    assert await job.kill() == ()
    assert (await other.status()).state == "running"
    assert await other.kill() == ()


async def test_a_job_without_its_supervisor_is_dead_not_successful(job: Job) -> None:
    started = await job.start(Command(("sleep", "1000")), cookie=COOKIE)
    assert started.pid is not None
    os.kill(int((folder(job) / "starter").read_text().split()[0]), signal.SIGKILL)
    assert (await job.status()).state == "running"
    os.kill(started.pid, signal.SIGKILL)
    await eventually(lambda: not exists(started.pid or 0))
    status = await job.status()
    assert (status.state, status.exit_status) == ("dead", None)


@pytest.mark.parametrize("word", [1, 2], ids=["another start time", "another boot"])
async def test_a_process_that_only_has_the_same_pid_is_not_the_job(job: Job, word: int) -> None:
    started = await job.start(Command(("sleep", "1000")), cookie=COOKIE)
    copy = replace(job, directory=f"{job.directory}-after")
    folder(copy).mkdir()
    for name in ("out", "err"):
        (folder(copy) / name).touch()
    for name in ("starter", "meta"):
        words = (folder(job) / name).read_text().split()
        words[word] = "1"
        (folder(copy) / name).write_text(" ".join([*words[:3], "another-cookie-0123456789"][: len(words)]) + "\n")
    assert (await copy.status()).state == "dead"
    assert await copy.kill() == ()
    assert exists(started.pid or 0)
    assert await job.kill() == ()


async def test_a_directory_with_nothing_in_it_counts_as_dead(job: Job) -> None:
    folder(job).mkdir(parents=True)
    assert (await job.status()).state == "dead"


@pytest.mark.parametrize("damaged", ["", "x", "0 0", "-1", "256", "1e2", "0\n1\n", "0" * 100])
async def test_a_damaged_exit_status_is_unknown(job: Job, damaged: str) -> None:
    await job.start(Command(("true",)), cookie=COOKIE)
    await end(job)
    (folder(job) / "rc").write_text(damaged)
    status = await job.status()
    assert (status.state, status.exit_status) == ("exited", None)


async def test_environment_directory_limits_and_affinity_are_those_asked_for(job: Job) -> None:
    cpu = str(min(os.sched_getaffinity(0)))
    text = 'echo "$LANGUAGE_OF_TEST|$(pwd)|$(ulimit -Sn)|$(ulimit -Hn)|$(grep -h Cpus_allowed_list /proc/self/status)"'
    await job.start(
        script(text),
        cookie=COOKIE,
        environment={"LANGUAGE_OF_TEST": "it's $HOME\nand more"},
        cwd=str(folder(job).parent.parent),
        limits={"nofile": 200, "core": 0},
        cpus=cpu,
    )
    status, out, _ = await end(job)
    assert status.exit_status == 0
    expected = f"it's $HOME\nand more|{folder(job).parent.parent}|200|200|Cpus_allowed_list:\t{cpu}\n"
    assert out.decode() == expected


async def test_a_job_starts_in_the_home_directory(job: Job, sshd_host: SshdHost) -> None:
    await job.start(Command(("pwd",)), cookie=COOKIE)
    assert (await end(job))[1].decode().strip() == str(sshd_host.home)


def all_command_lines() -> bytes:
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it ended meanwhile
            lines.append(path.read_bytes())
    return b"\n".join(lines)


async def test_values_of_the_environment_are_in_no_process_list(job: Job) -> None:
    secret = "planted-secret"
    await job.start(Command(("sleep", "1000")), cookie=COOKIE, environment={"PASSWORD": secret})
    assert secret.encode() not in all_command_lines()
    assert (folder(job).stat().st_mode & 0o777, (folder(job) / "cmd").stat().st_mode & 0o777) == (0o700, 0o600)
    assert await job.kill() == ()


def more_cpus() -> str:
    """All CPUs of this process and one that is not there."""
    return format_cpus([*os.sched_getaffinity(0), 4000])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"limits": {"nofile": 2**40}}, r"cannot set the limit nofile to 1099511627776: the hard limit .* is \d+"),
        ({"cpus": "4000"}, "cannot run on the CPUs 4000"),
        ({"cpus": more_cpus()}, f"asked for the CPUs {more_cpus()}, but the host gives only"),
        ({"cwd": "/no/such/directory"}, "/no/such/directory"),
    ],
    ids=["limit", "no CPU", "not all CPUs", "directory"],
)
async def test_what_cannot_be_had_is_told_before_anything_starts(
    job: Job, options: dict[str, object], message: str
) -> None:
    with pytest.raises(CommandError, match=message):
        await job.start(script('touch "$1"', f"{job.directory}.ran"), cookie=COOKIE, **options)  # type: ignore[arg-type]
    assert (await job.status()).state == "absent"
    assert list(folder(job).parent.iterdir()) == []
    assert not (await job.start(Command(("true",)), cookie=COOKIE)).already


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"limits": {"speed": 1}}, "no limit 'speed'"),
        ({"limits": {"nofile": -1}}, "cannot be -1"),
        ({"environment": {"A B": ""}}, "'A B' is not a name"),
        ({"environment": {"A": "\0"}}, "NUL"),
    ],
)
def test_what_can_never_be_right_is_a_plan_error(options: dict[str, object], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        job_script(("true",), **{"environment": {}, "cwd": None, "limits": {}, "cpus": "", **options})  # type: ignore[arg-type]


def test_the_script_of_a_job_can_be_read_by_a_person() -> None:
    text = job_script(("wrk", "-t2", "http://sut/a b"), environment={"A": "it's"}, cwd="/srv", limits={}, cpus="")
    assert text.splitlines() == [
        "#!/bin/sh",
        "cd /srv || exit 71",
        '[ "${1-}" != check ] || exit 0',
        "umask 022  # what it writes itself is as after a login",
        "export A='it'\"'\"'s'",
        "exec wrk -t2 'http://sut/a b'",
    ]


@pytest.mark.parametrize("directory", ["relative/path", "/top", "/a/../b", "/a/b/", "", "/a//b"])
async def test_a_job_lives_in_a_plain_absolute_directory(session: SshSession, directory: str) -> None:
    with pytest.raises(ValueError, match="plain absolute path"):
        await Job(session, directory).start(Command(("true",)), cookie=COOKIE)


async def test_a_full_disk_starts_nothing(session: SshSession, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CommandError, match="Starting a job on sut failed"):
        await Job(session, f"{tmp_path}/file/1").start(Command(("true",)), cookie=COOKIE)
