"""Jobs in a scope of systemd: a stand-in for `systemd-run`, with real control groups and real logins.

The machine of the tests does not need systemd: the sshd of these tests gives its commands a mount namespace in which
/run/systemd/system is there, and a `systemd-run` that makes the control group itself, or fails as the real one may.
"""

from __future__ import annotations

import contextlib
import secrets
import shutil
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from agents.base.command import script
from agents.remote.jobs import Job
from agents.remote.ssh import SshSession, connect
from tests import needs
from tests.agents.remote.job_ends import end, first_line, folder
from tests.sshd import SshdHost, eventually, exists, running_sshd

# ForceCommand: each command of the login, with its own view of /run and of PATH.
INSIDE = """\
#!/bin/sh
export PATH="{tools}:$PATH"
exec unshare --mount sh -c 'mount -t tmpfs tmpfs /run && mkdir -p /run/systemd/system && exec sh -c "$1"' \\
  sh "$SSH_ORIGINAL_COMMAND"
"""

# What the real one does with these options: put itself into a new group of that name, then become the command.
WORKS = """\
for option; do
  shift
  case $option in --unit=*) unit=${option#--unit=} ;; --) break ;; esac
done
mkdir "$SLICE/$unit" && echo $$ >"$SLICE/$unit/cgroup.procs" && exec "$@"
"""
FAILS = "echo 'Failed to connect to bus' >&2; exit 1"
HANGS = "exec sleep 1000"
IS_LATE = """\
while [ "$1" != -- ]; do shift; done
shift
(sleep 1; "$@"; echo $? >"$0.late") &
exit 1
"""
LEAVES_NO_GROUP = 'while [ "$1" != -- ]; do shift; done; shift; exec "$@"'


@pytest.fixture(scope="module")
def slice_directory() -> Iterator[Path]:
    """A control group of our own, for the groups of jobs."""
    roots = [
        Path(line.split()[1]) for line in Path("/proc/self/mounts").read_text().splitlines() if " cgroup2 " in line
    ]
    place = (roots[0] if roots else Path("/none")) / f"benchhub-test-{secrets.token_hex(4)}.slice"
    try:
        place.mkdir()
    except OSError:
        needs.require(False, "control groups of its own (version 2)", needs.RIGHTS)
    yield place
    for group in place.glob("*.scope"):
        (group / "cgroup.kill").write_text("1")
        while "populated 1" in (group / "cgroup.events").read_text():
            time.sleep(0.01)
        group.rmdir()
    place.rmdir()


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory, slice_directory: Path) -> Iterator[SshdHost]:
    needs.require_root("it gives a login its own mounts")
    needs.require_program("unshare")
    place = tmp_path_factory.mktemp("scope")
    tools = place / "tools"
    tools.mkdir()
    inside = place / "inside"
    inside.write_text(INSIDE.format(tools=tools))
    inside.chmod(0o755)
    with running_sshd(place, extra=f"ForceCommand {inside}") as host:
        yield host


@pytest.fixture
def systemd_run(host: SshdHost, slice_directory: Path) -> Path:
    """The stand-in; tests write its text."""
    return host.home.parent / "tools" / "systemd-run"


def write(tool: Path, slice_directory: Path, text: str) -> None:
    tool.write_text(f"#!/bin/sh\necho \"$*\" >'{tool}.args'\nSLICE='{slice_directory}'\n{text}\n")
    tool.chmod(0o755)


@pytest_asyncio.fixture
async def session(host: SshdHost) -> AsyncIterator[SshSession]:
    opened = await connect(host.login(), host.private_key)
    yield opened
    await opened.close()


@pytest.fixture
def job(session: SshSession, tmp_path: Path) -> Job:
    return Job(session, str(tmp_path / "jobs" / "1"))


async def test_the_scope_names_every_process_whatever_it_does_to_hide(
    job: Job, systemd_run: Path, slice_directory: Path
) -> None:
    write(systemd_run, slice_directory, WORKS)
    cookie = secrets.token_hex()
    hide = "(env -i setsid sh -c 'trap \"\" TERM; echo $$; while :; do sleep 1; done' &) & exit 0"
    started = await job.start(script(hide), cookie=cookie)
    pid = int(await first_line(job))
    group = slice_directory / f"benchhub-{cookie[:16]}.scope"
    assert (folder(job) / "scope").read_text().strip() == str(group)
    assert "--system --scope --quiet --collect" in systemd_run.with_suffix(".args").read_text()
    await eventually(lambda: not exists(started.pid or 0))
    assert str(pid) in (group / "cgroup.procs").read_text().split()
    assert await job.kill(grace_s=1) == ()
    assert not exists(pid)
    assert (await job.status()).exit_status == 0


async def test_a_scope_is_found_again_when_the_directory_of_its_job_is_gone(
    job: Job, systemd_run: Path, slice_directory: Path
) -> None:
    write(systemd_run, slice_directory, WORKS)
    cookie = secrets.token_hex()
    await job.start(script("(env -i setsid sh -c 'echo $$; exec sleep 1000' &) & exec sleep 1000"), cookie=cookie)
    pid = int(await first_line(job))
    shutil.rmtree(job.directory)
    assert await job.kill(cookie=cookie) == ()
    assert not exists(pid)


async def test_setsid_chains_that_no_scan_can_name_end_with_their_group(
    job: Job, systemd_run: Path, slice_directory: Path
) -> None:
    write(systemd_run, slice_directory, WORKS)
    cookie = secrets.token_hex()
    go_on = 'printf x >>"$2"; env -i setsid sh -c "$1" x "$1" "$2" &'
    count = folder(job).parent / "count"
    await job.start(script(go_on, go_on, str(count)), cookie=cookie)
    await eventually(lambda: count.exists() and len(count.read_bytes()) > 50)
    assert await job.kill(grace_s=1) == ()
    group = slice_directory / f"benchhub-{cookie[:16]}.scope"
    await eventually(lambda: "populated 0" in (group / "cgroup.events").read_text())


@pytest.mark.parametrize(
    ("text", "is_scoped"),
    [(FAILS, False), (HANGS, False), (IS_LATE, False), (LEAVES_NO_GROUP, True)],
    ids=["fails", "hangs", "is late", "makes no group"],
)
async def test_a_job_that_gets_no_scope_starts_once_all_the_same(
    job: Job, systemd_run: Path, slice_directory: Path, text: str, is_scoped: bool
) -> None:
    write(systemd_run, slice_directory, text)
    ran = folder(job).parent / "ran"
    started = await job.start(script('echo "$$" >>"$1"; echo said', str(ran)), cookie=secrets.token_hex())
    status, out, err = await end(job)
    if text == IS_LATE:
        late = systemd_run.with_suffix(".late")
        await eventually(lambda: late.exists() and late.read_text() == "75\n")
    assert (status.exit_status, out, err) == (0, b"said\n", b"")
    assert ran.read_text().split() == [str(started.pid)]
    with contextlib.suppress(FileNotFoundError):
        assert (folder(job) / "scope").read_text().strip() == ""
    assert (folder(job) / "scope").exists() is is_scoped
    assert await job.kill() == ()
