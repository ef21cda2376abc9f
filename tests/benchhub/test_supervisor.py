from __future__ import annotations

import http.client
import io
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from benchhub import embedded, tables
from benchhub.management.commands import up
from benchhub.processes import is_running, wait_until
from benchhub.supervisor import (
    ChildSpec,
    Lock,
    Running,
    Supervisor,
    SupervisorError,
    hold_port,
    require_free_port,
    web_answers,
)
from benchhub.terminal import Terminal
from tests.agents.run_lab import free_port

PATIENCE_S = 300.0
STUBBORN = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(3600)"
)
WITH_CHILD = "import subprocess, time; print(subprocess.Popen(['sleep', '3671']).pid, flush=True); time.sleep(3600)"


WEB = """
import http.server, pathlib, sys
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if pathlib.Path(sys.argv[2]).exists() else 503)
        self.end_headers()
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Answer).serve_forever()
"""


def python(name: str, code: str, *arguments: str, stop_turn: int = 0, later: bool = False) -> ChildSpec:
    return ChildSpec(name, (sys.executable, "-c", code, *arguments), stop_turn, patience_s=2, later=later)


def log(data_dir: Path, name: str) -> str:
    path = data_dir / "logs" / f"{name}.log"
    return path.read_text() if path.exists() else ""


def test_a_child_that_dies_is_started_again_and_a_deaf_one_is_killed_at_the_end(data_dir: Path) -> None:
    output = io.StringIO()
    specs = (python("short", "print('hello', flush=True)"), python("deaf", STUBBORN, stop_turn=1))
    supervisor = Supervisor(data_dir, specs, Terminal(output))
    supervisor.start()

    def stop_after_a_restart() -> None:
        wait_until(
            lambda: log(data_dir, "short").count("hello") >= 2 and "deaf" in log(data_dir, "deaf"), seconds=PATIENCE_S
        )
        supervisor.stopping = True

    watcher = threading.Thread(target=stop_after_a_restart)
    watcher.start()
    supervisor.supervise(free_port(), lambda: None)
    watcher.join()
    supervisor.stop()

    assert log(data_dir, "short").count("hello") >= 2
    assert re.search(r"short +ended with 0; starts again in 1 s", output.getvalue())
    assert output.getvalue().rstrip().splitlines()[-1].split() == ["deaf", "stopped"]
    assert [child.process.returncode for child in supervisor.children.values()] == [0, -signal.SIGKILL]


@pytest.mark.parametrize("web_is_well", [True, False])
def test_workers_leave_the_processor_to_the_web_until_it_answers_and_start_without_it_at_last(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch, web_is_well: bool
) -> None:
    monkeypatch.setattr("benchhub.supervisor.LATER_S", 1000.0 if web_is_well else 0.0)
    port, pages, seen = free_port(), data_dir / "pages", []
    web = python("web", WEB, str(port), str(pages))
    worker = python("worker", "print('here', flush=True)", later=True)
    supervisor = Supervisor(data_dir, [worker, web], Terminal(io.StringIO()))

    def open_the_pages_then_wait_for_the_worker() -> None:
        if web_is_well:
            wait_until(lambda: log(data_dir, "web").count("503") >= 2, seconds=PATIENCE_S)
            seen.append(log(data_dir, "worker"))
            pages.touch()
        wait_until(lambda: "here" in log(data_dir, "worker"), seconds=PATIENCE_S)
        supervisor.stopping = True

    watcher = threading.Thread(target=open_the_pages_then_wait_for_the_worker)
    supervisor.start()
    watcher.start()
    supervisor.supervise(port, lambda: seen.append("ready"))
    watcher.join()
    supervisor.stop()

    assert seen == (["", "ready"] if web_is_well else [])
    assert "here" in log(data_dir, "worker")


@pytest.mark.django_db(transaction=True)  # its connection is closed
def test_what_an_earlier_start_has_prepared_is_not_prepared_again(
    data_dir: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.BENCHHUB_DATA_DIR, settings.STATIC_ROOT = data_dir, data_dir / "staticfiles"
    monkeypatch.setenv("BENCHHUB_STATIC_ROOT", str(settings.STATIC_ROOT))  # of the process that collects
    Lock(data_dir)

    def prepared() -> str:
        said = io.StringIO()
        up.Command().prepare(Supervisor(data_dir, [], Terminal(said)))
        return " ".join(said.getvalue().split())

    assert [prepared(), prepared()] == ["up preparing: collectstatic", ""]
    (settings.STATIC_ROOT / "staticfiles.json").unlink()
    assert [prepared(), prepared()] == ["up preparing: collectstatic", ""]
    settings.VERSION = "of tomorrow"
    assert [prepared(), prepared()] == ["up preparing: collectstatic", ""]


@pytest.mark.django_db
@pytest.mark.parametrize(
    "damage",
    [
        "DROP TABLE benchhub_cache",
        "ALTER TABLE experiments_run DROP COLUMN notes CASCADE",
        "DELETE FROM django_migrations WHERE name IN (SELECT max(name) FROM django_migrations GROUP BY app)",
    ],
)
def test_tables_are_complete_with_every_migration_column_and_the_table_of_the_cache(
    damage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "_migrated", False)
    assert tables.are_complete()
    monkeypatch.setattr(tables, "_migrated", False)
    with connection.cursor() as cursor:
        cursor.execute(damage)
    assert not tables.are_complete()


def test_stopping_leaves_no_grandchild(data_dir: Path) -> None:
    supervisor = Supervisor(data_dir, [python("parent", WITH_CHILD)], Terminal(io.StringIO()))
    supervisor.start()
    assert wait_until(lambda: log(data_dir, "parent").endswith("\n"), seconds=PATIENCE_S)
    grandchild = int(log(data_dir, "parent"))

    supervisor.stop()

    assert wait_until(lambda: not is_running(grandchild, "sleep"), seconds=PATIENCE_S)


def test_a_preparation_that_fails_shows_its_last_words(data_dir: Path) -> None:
    supervisor = Supervisor(data_dir, [], Terminal(io.StringIO()))

    with pytest.raises(SupervisorError, match="no such table"):
        supervisor.prepare([python("fine", ""), python("migrate", "raise SystemExit('no such table')")])


def test_only_one_supervisor_owns_a_data_directory(data_dir: Path) -> None:
    assert Lock(data_dir).take("http://127.0.0.1:1/") is None  # given back at once: nobody keeps the lock object
    first = Lock(data_dir)
    assert first.take("http://127.0.0.1:2/") is None

    assert Lock(data_dir).take("http://127.0.0.1:3/") == Running(os.getpid(), "http://127.0.0.1:2/")


def test_a_port_that_is_taken_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(SupervisorError, match=f"Port {port} is taken"):
            require_free_port(port)


def test_a_port_is_taken_from_the_moment_somebody_is_about_to_listen_on_it() -> None:
    port = free_port()
    with hold_port(port), pytest.raises(SupervisorError, match=f"Another BenchHub is starting on port {port}"):
        hold_port(port)
    hold_port(port).close()


def test_followed_logs_are_shown_by_whole_lines_with_their_name(tmp_path: Path) -> None:
    path = tmp_path / "web.log"
    path.write_text("old\n")
    output = io.StringIO()
    terminal = Terminal(output, followed=[path])

    with path.open("a") as file:
        file.write("one\ntw")
        file.flush()
        terminal.follow()
        file.write("o\n")
        file.flush()
        terminal.follow()

    assert [line.split() for line in output.getvalue().splitlines()] == [["web", "one"], ["web", "two"]]


@contextmanager
def benchhub_up(data_dir: Path, port: int) -> Iterator[subprocess.Popen[str]]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("BENCHHUB_", "DJANGO_"))}
    argv = [sys.executable, "manage.py", "up", "--port", str(port)]
    with subprocess.Popen(
        argv,
        cwd=embedded.PROJECT_DIR,
        env=environment | {"BENCHHUB_DATA_DIR": str(data_dir)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def processes_of(data_dir: Path) -> list[int]:
    marker = f"BENCHHUB_DATA_DIR={data_dir}".encode()

    def belongs(pid: str) -> bool:
        try:
            return marker in Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            return False

    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit() and belongs(entry.name)]


@pytest.mark.slow
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_up_serves_pages_tells_a_second_up_and_leaves_nothing_behind(data_dir: Path, end: signal.Signals) -> None:
    port = free_port()
    with benchhub_up(data_dir, port) as first:
        assert wait_until(lambda: first.poll() is not None or web_answers(port), seconds=PATIENCE_S)
        assert first.poll() is None, first.stdout and first.stdout.read()
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
        connection.request("GET", "/accounts/login/")
        answer = connection.getresponse()
        assert answer.status == 200
        assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
        with benchhub_up(data_dir, free_port()) as second:
            said, _ = second.communicate(timeout=PATIENCE_S)
        assert second.returncode == 0
        assert f"already running at http://127.0.0.1:{port}/" in said

        first.send_signal(end)
        first.wait(PATIENCE_S)

    assert wait_until(lambda: processes_of(data_dir) == [], seconds=PATIENCE_S)
