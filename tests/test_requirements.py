"""The lock file names what requirements.txt names, at the same versions, with hashes."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
PIN = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^\]]*\])?==(\S+)", re.MULTILINE)


def pins(file: str) -> set[tuple[str, str]]:
    """(normalised name, version) of each pin in the file."""
    found = PIN.findall((ROOT / file).read_text())
    return {(re.sub(r"[-_.]+", "-", name).lower(), version) for name, version in found}


def test_the_lock_is_made_from_these_requirements() -> None:
    missing = pins("requirements.txt") - pins("requirements.lock")
    assert missing == set(), "run bin/lock"


def test_every_locked_package_has_hashes() -> None:
    text = re.sub(r"^#.*\n", "", (ROOT / "requirements.lock").read_text(), flags=re.MULTILINE)
    entries = re.split(r"\n(?=\S)", text.strip())
    assert len(entries) >= len(pins("requirements.txt"))
    assert [entry for entry in entries if not re.search(r"--hash=sha256:[0-9a-f]{64}", entry)] == []
    assert "://" not in text


def test_the_wheel_is_built_with_what_the_checks_have_installed() -> None:
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    assert set(build) <= set(re.findall(r"^\S+", (ROOT / "requirements-dev.txt").read_text(), re.MULTILINE))
