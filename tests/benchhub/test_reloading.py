"""`manage.py dev`: what is changed in a copy of the source shows in the next answers."""

from __future__ import annotations

import io
import os
import shutil
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.contrib.auth import get_user_model

from benchhub.embedded import PROJECT_DIR
from benchhub.management.commands import dev
from benchhub.processes import wait_until
from benchhub.reloading import is_source
from benchhub.supervisor import child_specs
from benchhub.terminal import Terminal
from experiments.models import Run
from tests.agents.run_lab import free_port
from tests.benchhub.test_supervisor import PATIENCE_S, processes_of


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The source, with its compiled modules: their times are copied as well, so Python takes them."""
    for package in PROJECT_DIR.glob("*/__init__.py"):
        shutil.copytree(package.parent, tmp_path / package.parent.name)
    (tmp_path / "docs").mkdir()
    for name in ("manage.py", "pyproject.toml"):
        shutil.copy(PROJECT_DIR / name, tmp_path)
    return tmp_path


WEB = """
import sys
from pathlib import Path
from benchhub.reloading import reloading
from benchhub.supervisor import Supervisor, child_specs
from benchhub.terminal import Terminal

port = int(sys.argv[2])
web = [reloading(spec) for spec in child_specs(port) if spec.name == "web"]
boss = Supervisor(Path(sys.argv[1]), web, Terminal())
boss.listen_to_signals()
boss.start()
boss.supervise(port, lambda: None)
boss.stop()
"""


@pytest.fixture
def development(copy: Path, data_dir: Path) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """The web server as `manage.py dev` runs it, and its port; its page for forgotten passwords asks no database."""
    port = free_port()
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("BENCHHUB_", "DJANGO_"))}
    with subprocess.Popen(
        [sys.executable, "-c", WEB, str(data_dir), str(port)],
        cwd=copy,
        env=environment | {"BENCHHUB_DATA_DIR": str(data_dir)},
        stdout=subprocess.DEVNULL,
    ) as process:
        try:
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

    def health() -> str:
        try:
            return answer("/healthz")
        except OSError:  # before the first process, and between the old one and the new one
            return ""

    assert wait_until(lambda: process.poll() is not None or health() == "ok\n", seconds=PATIENCE_S)
    answer("/accounts/password/reset/")
    (page,) = copy.glob("frontend/**/account/password_reset.html")
    replace(page, "{% endblock", "New words{% endblock")
    assert "New words" in answer("/accounts/password/reset/")

    (sheet,) = copy.glob("frontend/static/**/tokens.css")
    replace(sheet, ":root", "new-rule, :root")
    assert "new-rule" in answer("/static/css/tokens.css")

    replace(copy / "benchhub" / "health.py", 'HttpResponse("ok\\n"', 'HttpResponse("new code\\n"')
    assert wait_until(lambda: health() == "new code\n", seconds=PATIENCE_S)

    process.send_signal(signal.SIGINT)
    process.wait(PATIENCE_S)
    assert processes_of(data_dir) == []


def test_every_process_starts_again_and_only_the_web_server_shows_errors_with_their_code() -> None:
    specs = dev.Command().children(8123)

    assert [spec.name for spec in specs] == [spec.name for spec in child_specs(8123)]
    assert all("watchfiles" in spec.argv for spec in specs)
    assert {spec.name for spec in specs if "DEBUG" in spec.environment} == {"web"}


def test_the_first_start_makes_an_account_with_runs_to_look_at_and_the_next_one_nothing(db: None) -> None:
    for _ in range(2):
        dev.Command().prepared(Terminal(io.StringIO()))

    (user,) = get_user_model().objects.all()
    assert user.check_password(dev.PASSWORD)
    assert Run.objects.filter(team__members__user=user).count() == dev.RUNS


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
