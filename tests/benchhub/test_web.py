"""Several web processes on one port: a real start, real answers, and an end that leaves nobody."""

from __future__ import annotations

import http.client
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection

from benchhub.embedded import PROJECT_DIR
from benchhub.processes import wait_until
from benchhub.web import TcpConfig
from tests.agents.run_lab import free_port
from tests.benchhub.test_supervisor import processes_of
from tests.faults.stage import surroundings


def test_the_shared_socket_says_that_it_is_tcp_so_no_answer_is_kept_back() -> None:
    with TcpConfig("benchhub.asgi:application", port=0).bind_socket() as shared:
        assert shared.proto == socket.IPPROTO_TCP


@pytest.mark.django_db
def test_two_processes_answer_on_one_port_and_end_together(tmp_path: Path) -> None:
    database, port = connection.settings_dict, free_port()
    url = f"postgresql://{database['USER']}@/{database['NAME']}?host={database['HOST']}"
    environment = surroundings(url, settings.REDIS_URL, data_dir=tmp_path, key_file=settings.BENCHHUB_KEY_FILE)
    environment["BENCHHUB_HTTPS"] = "0"
    argv = [sys.executable, "-m", "benchhub.web", "--port", str(port), "--workers", "2"]
    with (tmp_path / "log").open("wb") as log:
        web = subprocess.Popen(argv, cwd=PROJECT_DIR, env=environment, stdout=log, stderr=log)

    def answers() -> bool:
        link = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        try:
            link.request("GET", "/healthz", headers={"Host": "localhost"})
            return link.getresponse().status == 200
        except OSError:
            return False
        finally:
            link.close()

    try:
        assert wait_until(answers, seconds=120), (tmp_path / "log").read_text()
        assert wait_until(lambda: len(processes_of(tmp_path)) >= 3, seconds=120)  # the parent and two that serve
    finally:
        web.send_signal(signal.SIGTERM)
        web.wait(120)
    assert wait_until(lambda: processes_of(tmp_path) == [], seconds=120)
