"""Whole runs with steps that reach beyond files: a build, a control group, a kernel that was started otherwise."""

from __future__ import annotations

import glob
import os
import subprocess
from pathlib import Path

import pytest

from agents import events as e
from tests import needs
from tests.agents.run_lab import Lab, Watched, assert_left_as_it_was, needs_wrk

pytestmark = needs_wrk


def repository(at: Path, recipe: str) -> str:
    """A repository with one commit, whose Makefile has this recipe; its SHA."""
    needs.require_program("git", "make")
    at.mkdir()
    (at / "Makefile").write_text(f"all:\n\t{recipe}\n")
    own = ("git", "-c", "user.name=a", "-c", "user.email=a@localhost", "-C", str(at))
    for words in (("init", "-q", "-b", "main"), ("add", "."), ("commit", "-qm", "one")):
        subprocess.run([*own, *words], check=True)
    return subprocess.run([*own, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()


async def test_a_run_builds_its_commit_serves_what_was_built_and_keeps_the_log(lab: Lab, tmp_path: Path) -> None:
    commit = repository(tmp_path / "shop", "echo page of this commit >page.txt")
    step = {"kind": "build", "repository": str(tmp_path / "shop"), "commit": "main", "tool": "make"}
    for cached in ("applied, built in", "applied, taken from the cache"):
        watched = Watched(lab)
        record = await watched.run(lab.spec({**step, "artefact": "page.txt"}))
        assert record.failed is None
        assert_left_as_it_was(lab, record)
        assert record.configuration is not None
        assert record.configuration.values["build.commit"] == commit
        assert b"echo page of this commit" in watched.kept["server-build.log"]
        assert any(cached in line for event in watched.of(e.Logged) for line in event.lines)
    assert list((lab.sut.home / ".benchhub/builds").glob("*/built/*/done"))


async def test_a_build_that_fails_ends_the_run_with_its_last_lines(lab: Lab, tmp_path: Path) -> None:
    repository(tmp_path / "shop", "echo one; echo two; echo three; echo the compiler says no; false")
    step = {"kind": "build", "repository": str(tmp_path / "shop"), "commit": "main", "tool": "make", "artefact": "a"}
    watched = Watched(lab)
    record = await watched.run(lab.spec(step))
    assert record.failed is not None
    assert "make ended with exit status" in record.failed.message
    assert any("the compiler says no" in line for event in watched.of(e.Logged) for line in event.lines)
    assert_left_as_it_was(lab, record)


@needs.root("it makes a control group")
async def test_the_server_of_a_run_is_in_its_control_group_which_is_gone_afterwards(lab: Lab) -> None:
    needs.require(os.access("/sys/fs/cgroup", os.W_OK), "control groups", needs.NOT_ALLOWED)
    watched = Watched(lab)
    record = await watched.run(lab.spec({"kind": "cgroup", "cpus": 0.5}))
    assert record.failed is None
    (applied,) = [one for index, one in record.applied.items() if index]
    assert [(o.setting, o.result) for o in applied.outcomes] == [("cpu.max", "applied")]
    assert_left_as_it_was(lab, record)
    assert not glob.glob("/sys/fs/cgroup/**/benchhub-r1-*", recursive=True)


@pytest.mark.parametrize(
    ("step", "words"),
    [
        ({"kind": "kernel_command_line", "present": ["benchhub.never=1"]}, "started without benchhub.never=1"),
        ({"kind": "block_device", "device": "no-such-disk", "nr_requests": 64}, "this device does not have it"),
        ({"kind": "mount", "path": "/no/such/mount", "options": ["noatime"]}, "no file system is mounted"),
    ],
    ids=lambda one: one["kind"] if isinstance(one, dict) else "",
)
async def test_a_host_that_cannot_is_left_as_it_is(lab: Lab, step: dict[str, object], words: str) -> None:
    watched = Watched(lab)
    record = await watched.run(lab.spec(step))
    assert record.failed is not None
    assert words in record.failed.message
    assert_left_as_it_was(lab, record)
