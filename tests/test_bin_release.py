"""bin/release: what it refuses before it builds anything, in a repository of its own."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from benchhub.embedded import PROJECT_DIR

CHANGELOG = "# Changelog\n\n## Unreleased\n\n## 1.2.0 - 2026-11-22\n\n### Added\n\n- Something.\n"
PROJECT = '[project]\nname = "benchhub"\nversion = "1.2.0"  # the one source\n'


def git(directory: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    subprocess.run(["git", *identity, *arguments], cwd=directory, check=True, capture_output=True)


def commit(directory: Path, **files: str) -> None:
    for name, text in files.items():
        (directory / name.replace("__", ".")).write_text(text)
    git(directory, "add", "--all")
    git(directory, "commit", "--allow-empty", "--message", "A change")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "bin").mkdir()
    for name in ("release", "lib.sh"):
        shutil.copy(PROJECT_DIR / "bin" / name, tmp_path / "bin")
    git(tmp_path, "init")
    commit(tmp_path, CHANGELOG__md=CHANGELOG, pyproject__toml=PROJECT)
    return tmp_path


def refusal(source: Path, *arguments: str) -> str:
    refused = subprocess.run(
        [source / "bin" / "release", "--dry-run", "--untested", *arguments], capture_output=True, text=True, check=False
    )
    assert refused.returncode == 1
    assert not (source / "dist").exists()
    return refused.stderr


def test_a_version_is_made_of_a_commit(source: Path) -> None:
    (source / "new.py").touch()
    assert "changes that are not committed" in refusal(source)


def test_a_version_is_made_once(source: Path) -> None:
    git(source, "tag", "v1.2.0")
    assert "v1.2.0 is there already" in refusal(source)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("1.2.0 - 2026-11-22", "1.2.0", 'no heading "## 1.2.0 - YYYY-MM-DD"'),
        ("2026-11-22", "2026-13-22", 'no heading "## 1.2.0 - YYYY-MM-DD"'),
        ("1.2.0", "1.2.0.1", 'no heading "## 1.2.0 - YYYY-MM-DD"'),
        ("- Something.\n", "", "says nothing about 1.2.0"),
        ("## Unreleased\n", "## Unreleased\n\n- More.\n", "lines below Unreleased"),
    ],
)
def test_the_changelog_has_a_dated_section_of_the_version_and_nothing_left(
    source: Path, old: str, new: str, words: str
) -> None:
    commit(source, CHANGELOG__md=CHANGELOG.replace(old, new))
    assert words in refusal(source)


def test_the_version_has_three_numbers(source: Path) -> None:
    commit(source, pyproject__toml=PROJECT.replace("1.2.0", "1.2"))
    assert "no version like 1.2.3: 1.2" in refusal(source)


def test_an_unknown_option_is_named(source: Path) -> None:
    assert "unknown option: --fast" in refusal(source, "--fast")
