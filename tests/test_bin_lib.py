"""What the installation keeps, and what it leaves behind when somebody interrupts it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from benchhub.embedded import PROJECT_DIR
from benchhub.processes import wait_until

BACKEND = """
import pathlib, time
def get_requires_for_build_wheel(settings=None):
    pathlib.Path({reached!r}).write_text(__import__("tempfile").gettempdir())
    time.sleep(600)
"""
PYPROJECT = '[build-system]\nrequires = []\nbuild-backend = "slow"\nbackend-path = ["."]\n'


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose one requirement takes ten minutes to build, from this machine alone."""
    package, project = tmp_path / "package", tmp_path / "project"
    package.mkdir()
    (package / "pyproject.toml").write_text(PYPROJECT)
    (package / "slow.py").write_text(BACKEND.format(reached=str(tmp_path / "reached")))
    (project / "bin").mkdir(parents=True)
    shutil.copy(PROJECT_DIR / "bin" / "lib.sh", project / "bin")
    (project / "requirements.txt").write_text(f"slow @ file://{package}\n")
    return project


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_installation_leaves_nothing_of_pips(project: Path, number: signal.Signals) -> None:
    usual, venv, reached = project.parent / "tmp", project.parent / "venv", project.parent / "reached"
    usual.mkdir()
    environment = os.environ | {"BENCHHUB_VENV": str(venv), "TMPDIR": str(usual), "HOME": str(project)}
    installing = subprocess.Popen(
        # What a shell starts in the background ignores SIGINT, and so would all that these tests start then.
        ["env", "--default-signal=INT", "bash", "-euc", ". bin/lib.sh; bh_venv requirements.txt"],
        cwd=project,
        env=environment,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        assert wait_until(lambda: reached.exists() and bool(reached.read_text()), seconds=300), installing.stderr
        place = Path(reached.read_text())
        assert venv in place.parents
        assert list(place.iterdir())
    finally:
        os.killpg(installing.pid, number)
        installing.communicate(timeout=60)
    assert installing.returncode != 0
    assert wait_until(lambda: not place.exists(), seconds=60)
    assert [*usual.iterdir(), *venv.glob("benchhub-*"), *venv.glob("pip-*")] == []


@pytest.mark.parametrize(
    ("home", "python", "kept"),
    [
        ("/usr/bin", "/usr/bin/python3.11", True),
        ("/root/.pyenv/versions/3.11.7/bin", "/usr/bin/python3.11", False),
        ("/opt/python/bin", "/opt/python/bin/python3.12", True),
        ("/usr/bin", "/opt/python/bin/python3.12", True),
    ],
)
def test_an_environment_of_another_python_than_the_distributions_is_made_anew(
    home: str, python: str, kept: bool, tmp_path: Path
) -> None:
    (tmp_path / "pyvenv.cfg").write_text(f"home = {home}\nversion = 3.11.7\n")
    asked = subprocess.run(
        ["bash", "-euc", '. bin/lib.sh; if bh_is_made_with "$1"; then echo kept; else echo anew; fi', "bash", python],
        cwd=PROJECT_DIR,
        env=os.environ | {"BENCHHUB_VENV": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert asked.stdout == ("kept\n" if kept else "anew\n")


def test_what_fails_shows_its_last_lines_and_keeps_its_status(tmp_path: Path) -> None:
    script = '. bin/lib.sh; bh_live bash -c "echo first; echo then >&2; exit 7" || echo "ended with $?"; ls "$TMPDIR"'
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=PROJECT_DIR,
        env=os.environ | {"TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert (done.stdout, done.stderr) == ("ended with 7\n", "first\nthen\n")
