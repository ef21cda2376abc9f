"""A real Tomcat with the REST application that BenchHub ships, built by its own script: TLS, and memcached."""

from __future__ import annotations

import asyncio
import http.client
import os
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from agents.base.process_start import ProcessStart
from agents.formats.xml_document import parse_xml, select
from agents.servers.tomcat.server import Tomcat
from tests import needs
from tests.agents.run_lab import free_port
from tests.agents.servers.tomcat_install import ARCHIVE, running, unpack_tomcat
from tests.sshd import eventually

BUILD = Path(__file__).parents[3] / "bin" / "build-rest-app"

REQUESTS = (
    ("GET", "/rest/status", None, 200, b"OK"),
    ("GET", "/rest/people/tomcat", None, 200, b'{"name":"tomcat"}'),
    ("GET", "/rest/people/guest", None, 404, None),
    ("POST", "/rest/people/guest", "{}", 404, None),
    ("PUT", "/rest/people/guest", '{"name":"guest"}', 201, b'{"name":"guest"}'),
    ("PUT", "/rest/people/guest", '{"name":"again"}', 200, b'{"name":"again"}'),
    ("GET", "/rest/people/guest", None, 200, b'{"name":"again"}'),
    ("POST", "/rest/people/guest", '{"age":1}', 200, b'{"age":1}'),
    ("DELETE", "/rest/people/guest", None, 204, b""),
    ("DELETE", "/rest/people/guest", None, 204, b""),
    ("GET", "/rest/people/guest", None, 404, None),
)


@pytest.fixture
def rest_war(tmp_path: Path) -> Path:
    needs.require(ARCHIVE.is_file(), f"the Tomcat archive {ARCHIVE.name}", needs.TOMCAT)
    needs.require_program("javac")
    cache = tmp_path / "data" / "cache"
    cache.mkdir(parents=True)
    shutil.copy(ARCHIVE, cache)
    environment = {**os.environ, "BENCHHUB_DATA_DIR": str(tmp_path / "data")}
    built = subprocess.run([str(BUILD)], env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert built.returncode == 0, built.stderr
    return Path(built.stdout.strip().splitlines()[-1])


def test_the_rest_application_answers_over_tls_with_a_key_made_for_the_run(tmp_path: Path, rest_war: Path) -> None:
    home, instance = unpack_tomcat(tmp_path), tmp_path / "instance"
    port = free_port()
    server = Tomcat(home=str(home), port=port, tls=True, webapps=(str(rest_war),))
    create = server.create_instance(str(instance))
    made = subprocess.run(create.argv, input=create.stdin, capture_output=True, check=False, timeout=300)
    assert made.returncode == 0, made.stderr
    root = parse_xml((instance / "conf" / "server.xml").read_bytes())
    connectors = select(root, "Service/Connector")
    assert [one.get("port") for one in connectors] == [str(port)]
    assert connectors[0].get("SSLEnabled") == "true"
    assert (instance / "conf" / "self-signed.p12").stat().st_mode & 0o077 == 0
    assert not (home / "conf" / "self-signed.p12").exists()
    start = server.start_command(str(instance), ProcessStart())
    with running(start, server.environment(str(instance), ProcessStart()), b"Server startup"):
        connection = http.client.HTTPSConnection(
            "127.0.0.1", port, timeout=300, context=ssl._create_unverified_context()
        )
        ask_all(connection)
        connection.close()


def ask_all(connection: http.client.HTTPConnection) -> None:
    for method, path, body, status, content in REQUESTS:
        connection.request(method, path, body)
        answer = connection.getresponse()
        text = answer.read()
        assert answer.status == status, (method, path, text)
        assert content is None or text == content


@contextmanager
def memcached(port: int) -> Iterator[None]:
    argv = ["memcached", "-l", "127.0.0.1", "-p", str(port), "-U", "0", "-m", "16"]
    argv += ["-u", "nobody"] if os.getuid() == 0 else []
    process = subprocess.Popen(argv)
    try:
        asyncio.run(eventually(lambda: answers(port)))
        yield
    finally:
        process.terminate()
        process.wait(120)


def answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 5).close()
    except OSError:
        return False
    return True


@needs.program("memcached")
def test_people_are_kept_in_a_memcached_and_without_it_the_application_does_not_start(
    tmp_path: Path, rest_war: Path
) -> None:
    home, port, store = unpack_tomcat(tmp_path), free_port(), free_port()
    server = Tomcat(home=str(home), port=port, webapps=(str(rest_war),))
    launch = ProcessStart(jvm_options=(f"-Dpeople.memcached=127.0.0.1:{store}",))
    for there, status in ((False, 404), (True, 200)):
        instance = tmp_path / f"instance-{there}"
        create = server.create_instance(str(instance))
        subprocess.run(create.argv, input=create.stdin, capture_output=True, check=True, timeout=300)
        with ExitStack() as running_now:
            if there:
                running_now.enter_context(memcached(store))
            start = server.start_command(str(instance), launch)
            environment = server.environment(str(instance), launch)
            running_now.enter_context(running(start, environment, b"Server startup"))
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
            connection.request("GET", "/rest/status")
            answer = connection.getresponse()
            answer.read()
            assert answer.status == status
            if there:
                ask_all(connection)
            connection.close()
