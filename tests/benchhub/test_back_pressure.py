"""The web while Redis or PostgreSQL hangs: real servers, frozen by SIGSTOP, and real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
import redis
from django.conf import settings
from django.db import connection

from benchhub import embedded
from benchhub.connections import BoundedConnection


@contextmanager
def frozen(pids: list[int]) -> Iterator[None]:
    """The processes do nothing and answer nobody until the end of the block."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


@pytest.mark.django_db
def test_a_connection_to_a_server_that_hangs_in_the_middle_of_an_answer_gives_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    database = connection.settings_dict
    with BoundedConnection.connect(
        host=database["HOST"], user=database["USER"], dbname=database["NAME"], autocommit=True
    ) as bounded:
        pid = bounded.info.backend_pid
        monkeypatch.setattr(BoundedConnection, "_limit_s", 0.2)
        with frozen([pid]), pytest.raises(psycopg.OperationalError, match=r"said nothing for 0\.2 s"):
            bounded.cursor().execute("SELECT 1")
        assert bounded.closed


def in_another_process(tmp_path: Path, code: str, **environment: str) -> str:
    """What the code prints in a process of its own, on this test's database and broker."""
    database = connection.settings_dict
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("BENCHHUB_", "DJANGO_"))}
    given = {
        "DATABASE_URL": f"postgresql://{database['USER']}@/{database['NAME']}?host={database['HOST']}",
        "REDIS_URL": settings.REDIS_URL,
        "SECRET_KEY": "x" * 60,
        "ALLOWED_HOSTS": "localhost",
        "BENCHHUB_KEY_FILE": str(settings.BENCHHUB_KEY_FILE),
        "BENCHHUB_DATA_DIR": str(tmp_path),
    }
    done = subprocess.run(
        [sys.executable, "manage.py", "shell", "-v", "0", "-c", code],
        cwd=embedded.PROJECT_DIR, env=plain | given | environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout


@pytest.mark.django_db
@pytest.mark.parametrize(
    "given, shown",
    [
        ({}, "0 0 1min"),
        ({"DATABASE_STATEMENT_TIMEOUT_S": "7"}, "7s 10s 1min"),
        ({"BENCHHUB_LEASE_S": "90"}, "0 0 90s"),
        ({"BENCHHUB_LEASE_S": "6"}, "0 0 10s"),
        ({"DATABASE_IDLE_TRANSACTION_S": "0"}, "0 0 0"),
    ],
)
def test_every_process_has_a_limit_on_idle_transactions_and_one_that_asks_on_its_statements(
    tmp_path: Path, given: dict[str, str], shown: str
) -> None:
    names = ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout")
    show = "from django.db import connection as c; q = c.cursor(); "
    show += f"print('LIMITS', *(q.execute('SHOW ' + n).fetchone()[0] for n in {names}))"

    printed = in_another_process(tmp_path, show, DATABASE_POOL_SIZE="2", **given)

    assert f"LIMITS {shown}" in printed


MANY_THREADS = """
import threading
from django.db import connection
from experiments.models import Run
from experiments.registry.connections import lent
answers, all_have_asked = [], threading.Barrier(12)
def ask():
    answers.append(lent(Run.objects.count)())
    all_have_asked.wait()
threads = [threading.Thread(target=ask) for _ in range(12)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print("ANSWERS", len(answers), "LENT", connection.pool.get_stats()["pool_max"])
"""


@pytest.mark.django_db
def test_the_threads_of_live_runs_share_a_few_connections(tmp_path: Path) -> None:
    assert "ANSWERS 12 LENT 2" in in_another_process(tmp_path, MANY_THREADS, DATABASE_POOL_SIZE="2")


@pytest.mark.django_db
def test_a_process_that_ends_at_once_still_sends_its_last_messages(tmp_path: Path) -> None:
    with redis.Redis.from_url(settings.REDIS_URL) as broker:
        broker.delete("runs")

        send_hints = "from experiments.registry.workers import outbox; outbox.FLUSH_S = outbox.HINT_EXPIRES_S = 300; "
        send_hints += "[outbox.hint(run_id) for run_id in range(20)]"
        in_another_process(tmp_path, send_hints)

        assert broker.llen("runs") == 20
        broker.delete("runs")
