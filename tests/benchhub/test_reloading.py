"""`manage.py dev` on a copy of the source: what is changed there shows in the next answers."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchhub.embedded import PROJECT_DIR
from benchhub.processes import wait_until
from benchhub.reloading import is_source
from benchhub.supervisor import web_answers
from tests.agents.run_lab import free_port
from tests.benchhub.test_supervisor import PATIENCE_S, processes_of


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for package in PROJECT_DIR.glob("*/__init__.py"):
        shutil.copytree(package.parent, tmp_path / package.parent.name, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "docs").mkdir()
    for name in ("manage.py", "pyproject.toml"):
        shutil.copy(PROJECT_DIR / name, tmp_path)
    return tmp_path


@pytest.fixture
def development(copy: Path, data_dir: Path) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """BenchHub for developers, and its port."""
    port = free_port()
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("BENCHHUB_", "DJANGO_"))}
    with subprocess.Popen(
        [sys.executable, "manage.py", "dev", "--port", str(port)],
        cwd=copy,
        env=environment | {"BENCHHUB_DATA_DIR": str(data_dir)},
        stdout=subprocess.DEVNULL,
    ) as process:
        try:
            assert wait_until(lambda: process.poll() is not None or web_answers(port), seconds=PATIENCE_S)
            assert process.poll() is None
            yield process, port
        finally:
            process.kill()


@pytest.mark.slow
def test_changes_of_templates_static_files_and_code_show_without_a_restart_by_hand(
    copy: Path, development: tuple[subprocess.Popen[bytes], int], data_dir: Path
) -> None:
    process, port = development

    def answer(path: str) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=PATIENCE_S) as response:
            return str(response.read().decode())

    def code_is_new() -> bool:
        try:
            return answer("/healthz") == "new code\n"
        except OSError:  # between the old process and the new one
            return False

    answer("/accounts/login/")
    (page,) = copy.glob("frontend/**/account/login.html")
    replace(page, "{% endblock", "New words{% endblock")
    assert "New words" in answer("/accounts/login/")

    (sheet,) = copy.glob("frontend/static/**/tokens.css")
    replace(sheet, ":root", "new-rule, :root")
    assert "new-rule" in answer("/static/css/tokens.css")

    assert answer("/healthz") == "ok\n"
    replace(copy / "benchhub" / "health.py", 'HttpResponse("ok\\n"', 'HttpResponse("new code\\n"')
    assert wait_until(code_is_new, seconds=PATIENCE_S)

    process.send_signal(signal.SIGINT)
    process.wait(PATIENCE_S)
    assert processes_of(data_dir) == []


@pytest.mark.parametrize(
    ("path", "starts_again"),
    [
        ("/src/experiments/tasks.py", True),
        ("/src/experiments/library/recipes/swap.yaml", True),
        ("/src/docs/queue.md", True),
        ("/src/frontend/templates/base.html", False),
        ("/src/frontend/static/js/theme.js", False),
        ("/src/experiments/__pycache__/tasks.cpython-311.py", False),
    ],
)
def test_only_what_a_process_reads_once_makes_it_start_again(path: str, *, starts_again: bool) -> None:
    assert is_source("modified", path) is starts_again
