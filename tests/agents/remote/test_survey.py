"""What the survey of a host finds: runs of any installation, their timers and jobs, and the claims of logins."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents.base.command import Command
from agents.base.installation import Installation
from agents.remote import survey
from agents.remote.jobs import Job
from agents.remote.ssh import SshSession
from tests.sshd import SshdHost

OTHER = Installation("7d0c2c3e-0000-4000-8000-000000000001", "https://other.example")
LOGIN = pwd.getpwuid(os.geteuid()).pw_name
"""Whose a claim is, whatever it says: people are told to run a script as that login."""
BOOT_ID = Path("/proc/sys/kernel/random/boot_id").read_text().strip()


@pytest.fixture
def home(sshd_host: SshdHost) -> Iterator[Path]:
    yield sshd_host.home
    shutil.rmtree(sshd_host.home / ".benchhub", ignore_errors=True)
    for claim in sshd_host.home.glob("benchhub-claim.*"):
        claim.rmdir() if claim.is_dir() and not claim.is_symlink() else claim.unlink()


def make_run(home: Path, key: str, *files: str, **contents: str) -> Path:
    """A run's directory with these files; `fired` and `owner` as given."""
    directory = home / ".benchhub/runs" / key
    (directory / "journal").mkdir(parents=True)
    for file in files:
        (directory / file).write_text("{}\n")
    for name, content in contents.items():
        (directory / name).write_text(content)
    return directory


async def test_a_host_without_any_run_has_nothing_to_tell(session: SshSession, home: Path) -> None:
    found = await survey.read(session)
    assert (found.runs, found.claims, found.fence, found.holder) == ((), (), None, Installation())
    assert (found.base, found.place, found.boot_id) == (str(home / ".benchhub"), str(home), BOOT_ID)
    assert not found.shares_home


@pytest.mark.parametrize(
    ("files", "fired", "fate", "undone"),
    [
        ((), None, "nothing", False),
        (("journal/0000.json", "deadline"), None, "armed", True),
        (("journal/0000.json", "deadline"), "0\n", "restored", False),
        (("journal/0000.json", "deadline"), "1\n", "failed", True),
        (("journal/0000.json",), None, "left", False),
        (("journal/0000.json", "settled"), None, "restored", False),
        (("deadline",), None, "armed", False),
    ],
)
async def test_each_run_tells_what_became_of_its_changes(
    session: SshSession, home: Path, files: tuple[str, ...], fired: str | None, fate: str, undone: bool
) -> None:
    make_run(home, "r5-1", *files, **({} if fired is None else {"fired": fired}))
    (run,) = (await survey.read(session)).runs
    assert (run.key, run.fate, run.undone, run.timer, run.jobs) == ("r5-1", fate, undone, "none", ())


async def test_a_run_tells_whose_it_is_and_which_of_its_jobs_live(session: SshSession, home: Path) -> None:
    directory = make_run(home, "r5-1", owner=f"{OTHER.id} 31 {BOOT_ID}\n{OTHER.name}\n")
    make_run(home, "r6-1")
    jobs = [Job(session, f"{directory}/jobs/server"), Job(session, f"{directory}/deadman")]
    for job in jobs:
        await job.start(Command(("sleep", "1000")), cookie=secrets.token_hex(16))
    run, older = (await survey.read(session)).runs
    assert (run.installation, run.fence, run.boot_id) == (OTHER, 31, BOOT_ID)
    assert (run.jobs, run.timer) == (("server",), "live")
    assert (older.installation, older.fence) == (Installation(), None)
    for job in jobs:
        await job.kill()
    run, _ = (await survey.read(session)).runs
    assert (run.jobs, run.timer) == ((), "ended")


@pytest.mark.parametrize(
    ("fence", "holder", "whose"),
    [
        ("31\n", f"31 {OTHER.id}\n{OTHER.name}\n", OTHER),
        ("31\n", None, Installation()),
        ("32\n", f"31 {OTHER.id}\n{OTHER.name}\n", Installation()),  # an older version has been there since
    ],
)
async def test_the_fence_tells_whose_it_is(
    session: SshSession, home: Path, fence: str, holder: str | None, whose: Installation
) -> None:
    directory = home / ".benchhub/fence"
    directory.mkdir(parents=True)
    (directory / "fence").write_text(fence)
    if holder is not None:
        (directory / "holder").write_text(holder)
    found = await survey.read(session)
    assert (found.fence, found.holder) == (int(fence), whose)


CLAIM = (
    "{state} {boot} {until} {installation} 31 r5-1 sut somebody-else 1700000000\n"
    "/home/bench/.benchhub/runs/r5-1\n{name}\n"
)


@pytest.mark.parametrize(
    ("state", "boot", "until", "changes", "lives"),
    [
        ("0", BOOT_ID, 10**11, "none", True),
        ("1", BOOT_ID, 10**11, "made", True),
        ("1", BOOT_ID, 1, "made", False),
        ("1", "another-boot", 10**11, "made", False),
        ("2", BOOT_ID, 10**11, "left", False),
    ],
)
async def test_a_claim_counts_for_its_time_and_boot(
    session: SshSession, home: Path, state: str, boot: str, until: int, changes: str, lives: bool
) -> None:
    text = CLAIM.format(state=state, boot=boot, until=until, installation=OTHER.id, name=OTHER.name)
    (home / "benchhub-claim.x").write_text(text)
    (claim,) = (await survey.read(session)).claims
    assert (claim.installation, claim.fence, claim.run, claim.login) == (OTHER, 31, "r5-1", LOGIN)
    assert (claim.changes, claim.lives) == (changes, lives)
    assert str(claim) == f"run r5-1 of BenchHub at https://other.example (login {LOGIN})"


@pytest.mark.parametrize("text", ["", "\n", "3 a b c", "1 boot soon x 1 r sut bench 1\n", "\0" * 50, "1 " * 5000])
async def test_a_claim_that_makes_no_sense_is_none(session: SshSession, home: Path, text: str) -> None:
    (home / "benchhub-claim.x").write_text(text)
    (home / "benchhub-claim.y").symlink_to("/etc/passwd")
    (home / "benchhub-claim.z").mkdir()
    assert (await survey.read(session)).claims == ()


async def test_what_another_user_writes_into_a_claim_is_only_text(session: SshSession, home: Path) -> None:
    hostile = CLAIM.format(
        state="1", boot="$(touch${IFS}pwned)", until=10**11, installation="`x`", name="\x1b[31m$(x)\tred"
    )
    (home / "benchhub-claim.x").write_text(hostile)
    (claim,) = (await survey.read(session)).claims
    assert claim.boot_id == "$(touch${IFS}pwned)"
    assert claim.installation.name.isprintable()
    assert not (home / "pwned").exists()


async def test_another_machine_with_the_same_home_has_a_directory_of_its_own(session: SshSession, home: Path) -> None:
    (home / ".benchhub").mkdir()
    (home / ".benchhub/machine").write_text("the-first-one\n")
    found = await survey.read(session)
    assert found.shares_home
    assert found.base == str(home / ".benchhub/machines" / found.machine)
