"""Several web processes on one port: a real start, real answers, and an end that leaves nobody."""

from __future__ import annotations

import http.client
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import uvicorn
from django.conf import settings
from django.db import connection

from benchhub.embedded import PROJECT_DIR
from benchhub.processes import wait_until
from benchhub.web import shared_socket
from tests.agents.run_lab import free_port
from tests.benchhub.test_supervisor import processes_of
from tests.faults.stage import surroundings

COUNTED = "benchhub_http_requests_total"


def test_the_shared_socket_says_that_it_is_tcp_so_no_answer_is_kept_back() -> None:
    with shared_socket(uvicorn.Config("benchhub.asgi:application", port=0)) as shared:
        assert shared.proto == socket.IPPROTO_TCP


@pytest.mark.django_db
def test_two_processes_answer_on_one_port_count_as_one_and_end_together(tmp_path: Path) -> None:
    database, port = connection.settings_dict, free_port()
    url = f"postgresql://{database['USER']}@/{database['NAME']}?host={database['HOST']}"
    environment = surroundings(url, settings.REDIS_URL, data_dir=tmp_path, key_file=settings.BENCHHUB_KEY_FILE)
    environment["BENCHHUB_HTTPS"] = "0"
    argv = [sys.executable, "-m", "benchhub.web", "--port", str(port), "--workers", "2"]
    with (tmp_path / "log").open("wb") as log:
        web = subprocess.Popen(argv, cwd=PROJECT_DIR, env=environment, stdout=log, stderr=log)

    def get(path: str) -> str:
        """Over a connection of its own, which any of the processes may take."""
        link = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
        try:
            link.request("GET", path, headers={"Host": "localhost"})
            return link.getresponse().read().decode()
        finally:
            link.close()

    def answers() -> bool:
        try:
            return get("/healthz") == "ok\n"
        except OSError:
            return False

    try:
        assert wait_until(answers, seconds=300), (tmp_path / "log").read_text()
        assert wait_until(lambda: len(processes_of(tmp_path)) >= 3, seconds=300)  # the parent and two that serve
        for _ in range(10):
            get("/api/v1/nothing")
        told = {line for _ in range(10) for line in get("/metrics").splitlines() if line.startswith(COUNTED)}
        assert told == {f'{COUNTED}{{method="GET",status="4xx"}} 10.0'}
    finally:
        web.send_signal(signal.SIGTERM)
        web.wait(300)
    assert wait_until(lambda: processes_of(tmp_path) == [], seconds=300)
