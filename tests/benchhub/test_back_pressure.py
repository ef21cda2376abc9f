"""The web while Redis or PostgreSQL hangs: real servers, frozen by SIGSTOP, and real processes."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
import redis
from django.conf import settings
from django.db import connection

from benchhub import embedded
from benchhub.connections import BoundedConnection
from benchhub.embedded import Places
from benchhub.processes import wait_until
from benchhub.supervisor import web_answers
from tests.agents.run_lab import free_port
from tests.benchhub.test_supervisor import PATIENCE_S, benchhub_up

CLIENT_S = 300
MANY = 60
"""More requests at once than a web process has connections to the database."""
SETUP = """
from django.contrib.auth import get_user_model
from experiments.models import Application, Host, Member, Recipe, Role, Team, Workload
from experiments.registry.documents.versions import save_version
from experiments.registry.teams.tokens import issue
from tests.experiments.conftest import APPLICATION, HOST_KEY, RECIPE, WORKLOAD
team = Team.objects.create(slug="perf", name="Performance")
user = get_user_model().objects.create_user("ada", password="correct horse battery")
member = Member.objects.create(team=team, user=user, role=Role.ADMIN)
for role in ("sut", "driver"):
    fields = {"address": "127.0.0.1", "port": 1, "user": "bench", "host_key": HOST_KEY, "state": Host.State.READY}
    Host.objects.create(team=team, name=role, roles=role, **fields)
for model, body in ((Application, APPLICATION), (Recipe, RECIPE), (Workload, WORKLOAD)):
    save_version(member, model, "it", body)
print("TOKEN", issue(member, name="ci", scopes=["read", "launch"])[1])
"""
LAUNCH = {"application": "it", "recipe": "it", "workload": "it", "sut": "sut", "drivers": ["driver"]}


@dataclass(frozen=True)
class Answer:
    status: int
    text: str


@dataclass(frozen=True)
class Product:
    """BenchHub as `manage.py up` starts it, with a team and a token."""

    data_dir: Path
    port: int
    token: str

    def ask(self, path: str, body: object = None, **headers: str) -> Answer:
        client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=CLIENT_S)
        try:
            data = None if body is None else json.dumps(body)
            client.request(
                "GET" if body is None else "POST", path, data, {"Content-Type": "application/json"} | headers
            )
            answer = client.getresponse()
            return Answer(answer.status, answer.read().decode())
        finally:
            client.close()

    def api(self, path: str, body: object = None) -> Answer:
        return self.ask(f"/api/v1/{path}", body, Authorization=f"Bearer {self.token}")

    def redis(self) -> list[int]:
        return [int((Places(self.data_dir).redis / "redis.pid").read_text())]

    def postgres(self) -> list[int]:
        """The server and all of its processes."""
        server = int((Places(self.data_dir).cluster / "postmaster.pid").read_text().split("\n", 1)[0])
        children = Path(f"/proc/{server}/task/{server}/children").read_text().split()
        return [server, *map(int, children)]


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


@pytest.fixture
def product(data_dir: Path) -> Iterator[Product]:
    port = free_port()
    with benchhub_up(data_dir, port) as process:
        assert wait_until(lambda: process.poll() is not None or web_answers(port), seconds=PATIENCE_S)
        assert process.poll() is None, process.stdout and process.stdout.read()
        plain = {name: value for name, value in os.environ.items() if not name.startswith(("BENCHHUB_", "DJANGO_"))}
        made = subprocess.run(
            [sys.executable, "manage.py", "shell", "-v", "0", "-c", SETUP],
            cwd=embedded.PROJECT_DIR,
            env=plain | {"BENCHHUB_DATA_DIR": str(data_dir), "PYTHONPATH": str(embedded.PROJECT_DIR)},
            capture_output=True,
            text=True,
            check=True,
        )
        yield Product(data_dir, port, made.stdout.split("TOKEN ", 1)[1].split()[0])
        process.send_signal(signal.SIGINT)
        process.wait(PATIENCE_S)


@pytest.mark.slow
@pytest.mark.faults
def test_the_web_answers_while_redis_hangs_and_says_so_while_postgresql_does(product: Product) -> None:
    with frozen(product.redis()):
        launched = product.api("runs", LAUNCH)
        number = json.loads(launched.text)["number"]
        ready = product.ask("/readyz")
        listed = product.api("runs")

    assert (launched.status, listed.status, ready.status) == (202, 200, 200)
    assert "The broker (Redis) does not answer" in ready.text

    def started() -> bool:
        return bool(json.loads(product.api(f"runs/{number}").text)["state"] != "queued")

    assert wait_until(started, seconds=PATIENCE_S, interval_s=0.5)

    with frozen(product.postgres()):
        api = product.api("runs", LAUNCH)
        page = product.ask("/t/perf/", Cookie="benchhub_session=0123456789abcdef0123456789abcdef")
        with ThreadPoolExecutor(MANY) as clients:
            waiting = [clients.submit(product.api, "runs") for _ in range(MANY)]
            alive, ready = product.ask("/healthz"), product.ask("/readyz")
            still_wait = sum(not one.done() for one in waiting)

    assert still_wait > 0
    assert {one.result().status for one in waiting} == {503}
    assert (alive.status, ready.status, api.status, page.status) == (200, 503, 503, 503)
    assert "The database does not answer" in page.text
    assert "Traceback" not in page.text
    assert json.loads(api.text)["detail"].startswith("The database does not answer.")
    assert wait_until(lambda: product.api("runs").status == 200, seconds=PATIENCE_S)
    assert len(json.loads(product.api("runs").text)["items"]) == 1  # what was answered with 503 was not stored


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
