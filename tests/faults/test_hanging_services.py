"""What pages and API say while Redis or PostgreSQL hangs: real servers, frozen by SIGSTOP, and real processes."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from benchhub import embedded
from benchhub.embedded import Places
from benchhub.processes import wait_until
from benchhub.supervisor import web_answers
from tests.agents.run_lab import free_port
from tests.benchhub.test_back_pressure import frozen
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
