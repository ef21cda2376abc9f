"""The load tools that are installed here, run for real with the commands that BenchHub makes."""

from __future__ import annotations

import http.server
import ssl
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agents.drivers import DRIVERS
from agents.drivers.base.driver import Target
from tests import needs
from tests.agents.drivers.plain_drivers import HEADERS, KINDS, make


@pytest.fixture
def address() -> Iterator[str]:
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            sent = self.rfile.read(int(self.headers["Content-Length"] or 0))
            self.send_response(200 if self.headers["X-Own"] == "a b; $(id)" and sent == b"name=x" else 400)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"ok")

        def log_message(self, *args: object) -> None:
            """Says nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "hyperfoil"])
def test_the_real_tool_takes_the_command_and_prints_what_is_read(kind: str, address: str, tmp_path: Path) -> None:
    needs.require_program(kind)
    options: dict[str, Any] = {"method": "POST", "body": "name=x", "headers": HEADERS, "timeout_s": 5}
    if kind == "ab":
        # It speaks HTTP/1.0, and this server does not tell an HTTP/1.0 client that it keeps the connection.
        options["keep_alive"] = False
    if kind == "h2load":
        options = {"method": "POST", "body": "name=x", "headers": HEADERS, "http_version": "1.1"}
    driver = make(kind, **options)
    for name, text in driver.files().items():
        (tmp_path / name).write_text(text)
    command = driver.command(Target(address), 1)
    done = subprocess.run(command.argv, capture_output=True, text=True, cwd=tmp_path, timeout=300, check=True)
    report = driver.parse(done.stdout + done.stderr)
    assert report.usable, report.why
    assert report.requests
    assert report.errors.status in (0, None)
    version = subprocess.run(driver.version_command().argv, capture_output=True, check=True).stdout
    assert driver.parse_version(version)


@pytest.fixture(scope="module")
def tls_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with a certificate that nobody trusts."""
    folder = tmp_path_factory.mktemp("tls")
    key, certificate = folder / "key.pem", folder / "cert.pem"
    argv = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=elsewhere"]
    subprocess.run([*argv, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args: object) -> None:
            """Says nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"https://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("wrk", {"connections": 2, "threads": 1}),
        ("h2load", {"connections": 2, "http_version": "1.1"}),
        ("hey", {"connections": 2}),
    ],
)
def test_a_self_signed_certificate_is_no_obstacle(
    kind: str, options: dict[str, Any], tls_address: str, tmp_path: Path
) -> None:
    needs.require_program(kind)
    driver = DRIVERS[kind].model_validate(options)
    command = driver.command(Target(tls_address), 1)
    done = subprocess.run(command.argv, capture_output=True, text=True, cwd=tmp_path, timeout=300, check=True)
    report = driver.parse(done.stdout + done.stderr)
    assert report.usable, report.why
    assert report.requests
    assert not report.errors.total
