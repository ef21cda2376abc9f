"""Whose a failed run is: the host's when BenchHub's own work failed there, the specification's by its own words."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agents import events as e
from tests import needs
from tests.agents.run_lab import Lab, Watched, file_step, needs_wrk

pytestmark = needs_wrk


def script_step(run: str) -> dict[str, Any]:
    return {"kind": "command", "run": run, "undo": ":"}


@pytest.mark.parametrize(
    ("run", "cause", "said"),
    [
        ("echo 'no such option' >&2; exit 3", "specification", "exit status 3: no such option"),
        ("echo 'No space left on device' >&2; exit 1", "specification", "No space left on device"),
        ("kill -KILL $$", "host", "exit status 137"),
        ("kill -TERM $$", "host", "exit status 143"),
    ],
)
async def test_what_a_step_of_a_person_says_is_the_specifications_and_a_killed_one_is_the_hosts(
    lab: Lab, run: str, cause: str, said: str
) -> None:
    record = await Watched(lab).run(lab.spec(script_step(run)))
    assert record.failed is not None
    assert said in record.failed.message
    assert (record.failed.phase, record.failed.cause) == ("tune", cause)
    assert record.restored == e.Restored({})


@pytest.fixture
def mounts() -> Iterator[Mounts]:
    needs.require_root("it mounts a disk where a host of the test writes")
    with contextlib.ExitStack() as stack:
        yield Mounts(stack)


class Mounts:
    """File systems laid over a directory of a host, until the test is over or `undo` is called."""

    def __init__(self, stack: contextlib.ExitStack) -> None:
        self._stack = stack

    def read_only(self, place: Path) -> None:
        self._mount(place, "--bind", str(place))
        subprocess.run(["mount", "-o", "remount,ro,bind", place], check=True)

    def full(self, place: Path) -> None:
        self._mount(place, "-t", "tmpfs", "-o", "size=64k", "tmpfs")
        with (place / "filler").open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while file.write(bytes(4096)):
                pass

    def undo(self) -> None:
        self._stack.close()

    def _mount(self, place: Path, *options: str) -> None:
        mounted = subprocess.run(["mount", *options, place], check=False).returncode == 0
        needs.require(mounted, "mounts", needs.NOT_ALLOWED)
        self._stack.callback(lambda: subprocess.run(["umount", "--lazy", place], check=True))


@pytest.mark.parametrize(
    ("fault", "said", "hint"),
    [
        ("read_only", "Read-only file system", "mounted read-only"),
        ("full", "I/O error", "df -h"),  # the words of dash; others say more
    ],
)
async def test_a_disk_that_takes_nothing_any_more_is_the_hosts(
    lab: Lab, mounts: Mounts, fault: str, said: str, hint: str
) -> None:
    watched = Watched(lab)

    def break_it(event: e.AnyEvent) -> None:
        if isinstance(event, e.SnapshotTaken):
            getattr(mounts, fault)(lab.directory(lab.sut))
        if isinstance(event, e.Failed):
            mounts.undo()

    watched.on_event = break_it
    record = await watched.run(lab.spec(file_step(lab)))
    assert record.failed is not None
    assert said in record.failed.message
    assert hint in record.failed.hint
    assert record.failed.cause == "host"
