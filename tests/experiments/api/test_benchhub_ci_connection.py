"""benchhub-ci against what is not BenchHub, or is it only sometimes."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.experiments.api.ci_client import NAMES, run_ci


class Flaky(BaseHTTPRequestHandler):
    """Answers 503, drops the connection, answers half of something, and then properly."""

    seen: list[str]

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        Flaky.seen.append(self.headers["Idempotency-Key"])
        attempt = len(Flaky.seen)
        if attempt == 2:
            self.connection.close()
            return
        body = b'{"number":' if attempt == 3 else b'{"number": 7}'
        self.send_response(503 if attempt == 1 else 202)
        if attempt == 1:
            self.send_header("Retry-After", "0")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        self.send_response(302)
        self.send_header("Location", "http://elsewhere.invalid/")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - the base class names it so
        """Nothing on the test's output."""


@pytest.fixture
def flaky() -> Iterator[str]:
    Flaky.seen = []
    server = HTTPServer(("127.0.0.1", 0), Flaky)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_start_is_tried_again_under_one_key(flaky: str, script: Path) -> None:
    done = run_ci(script, flaky, "bh_a_b", "trigger", *NAMES)
    assert (done.returncode, done.stdout) == (0, "run:7\n"), done.stderr
    assert len(Flaky.seen) == 4
    assert len(set(Flaky.seen)) == 1


class Odd(BaseHTTPRequestHandler):
    """What stands between a job and BenchHub, or in its place; `/gone` comes back after a restart."""

    ANSWERS = {
        "login-page": (200, b"<!DOCTYPE html><html><head><title>\n Sign in &amp; go on\x1b[2J</title>"),
        "sign-in": (401, b"\xef\xbb\xbf <html><TITLE lang='en'>Who are you?</TITLE>"),
        "gateway": (502, b"<html><title>502 Bad Gateway</title>"),
        "forbidden": (403, b"<html>"),
        "lost": (404, b"nothing here"),
        "half": (200, b'{"finished": tr'),
        "other-api": (200, b"[]"),
        "busy": (429, b'{"detail": "This token may send 1 request"}'),
        "gone": (200, b'{"finished": true}'),
    }
    asked: list[str]

    def do_GET(self) -> None:
        place = self.path.split("/")[1]
        Odd.asked.append(place)
        if place == "gone" and len(Odd.asked) == 1:
            self.connection.close()
            return
        status, body = self.ANSWERS["gateway" if place == "gone" and len(Odd.asked) == 2 else place]
        self.send_response(status)
        if status == 429:
            self.send_header("Retry-After", "4000")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.do_GET()

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - the base class names it so
        """Nothing on the test's output."""


@pytest.fixture
def odd(tmp_path: Path) -> Iterator[Callable[[bool], str]]:
    """An address that answers oddly, with a certificate of its own when it speaks HTTPS."""
    Odd.asked = []
    servers: list[tuple[HTTPServer, threading.Thread]] = []

    def serve(https: bool) -> str:
        server = HTTPServer(("127.0.0.1", 0), Odd)
        if https:
            server.socket = own_certificate(tmp_path).wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        servers.append((server, thread))
        return f"http{'s' * https}://127.0.0.1:{server.server_port}"

    yield serve
    for server, thread in servers:
        server.shutdown()
        thread.join()
        server.server_close()


def own_certificate(place: Path) -> ssl.SSLContext:
    key, file = ec.generate_private_key(ec.SECP256R1()), place / "own.pem"
    name, now = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "bench")]), datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), 1, now - timedelta(days=1), now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
        + made.public_bytes(serialization.Encoding.PEM)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context


@pytest.mark.parametrize(
    "place, said",
    [
        ("login-page", 'HTTP 200 with a web page titled "Sign in & go on\ufffd[2J", and not from BenchHub: is http'),
        ("gateway", 'HTTP 502 with a web page titled "502 Bad Gateway", and not from BenchHub: is http'),
        ("forbidden", "HTTP 403 with a web page without a title, and not from BenchHub: is http"),
        ("half", "the answer is not JSON; is "),
        ("other-api", "answered in a way that is not BenchHub's"),
        ("busy", "HTTP 429: This token may send 1 request"),
    ],
)
def test_what_stands_in_benchhubs_place_is_an_error_in_one_line(
    odd: Callable[[bool], str], place: str, said: str, script: Path
) -> None:
    done = run_ci(script, f"{odd(False)}/{place}", "bh_a_b\n", "gate", "run:1", "--patience", "0")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (3, "", 1), done.stderr
    assert said in done.stderr


@pytest.mark.parametrize(
    "place, title", [("login-page", "Sign in & go on"), ("sign-in", "Who are you?"), ("lost", "no answer of an API")]
)
def test_a_page_that_would_come_again_ends_the_job_at_once(
    odd: Callable[[bool], str], place: str, title: str, script: Path
) -> None:
    address = f"{odd(False)}/{place}"
    done = run_ci(script, address, "bh_a_b", "gate", "run:1", "--patience", "250")
    assert (done.returncode, done.stdout, Odd.asked) == (3, "", [place]), done.stderr
    assert title in done.stderr
    assert f"{address}/api/v1/runs/1/verdict" in done.stderr


def test_a_page_of_a_gateway_is_asked_again_within_the_patience(odd: Callable[[bool], str], script: Path) -> None:
    done = run_ci(script, f"{odd(False)}/gateway", "bh_a_b", "gate", "run:1", "--patience", "2")
    assert (done.returncode, len(Odd.asked) > 1) == (3, True), done.stderr
    assert 'a web page titled "502 Bad Gateway"' in done.stderr


def test_a_job_outlives_a_restart_of_benchhub_while_it_waits(odd: Callable[[bool], str], script: Path) -> None:
    done = run_ci(script, f"{odd(False)}/gone/api/v1/", "bh_a_b", "wait", "run:1")
    assert (done.returncode, done.stdout, len(Odd.asked)) == (0, "run:1\n", 3), done.stderr


def test_a_certificate_that_cannot_be_verified_is_said_at_once(
    odd: Callable[[bool], str], tmp_path: Path, script: Path
) -> None:
    done = run_ci(script, odd(True), "bh_a_b", "gate", "run:1", "--patience", "60")
    assert (done.returncode, "self-signed certificate; name the file" in done.stderr) == (3, True), done.stderr
    plain = run_ci(script, odd(False).replace("http:", "https:"), "bh_a_b", "gate", "run:1", "--patience", "60")
    assert (plain.returncode, "does not speak HTTPS" in plain.stderr) == (3, True), plain.stderr
    assert Odd.asked == []


def test_a_redirect_does_not_get_the_token(flaky: str, script: Path) -> None:
    done = run_ci(script, flaky, "bh_a_b", "gate", "run:1")
    assert (done.returncode, "redirects" in done.stderr) == (3, True)


def test_a_server_that_is_away_is_an_error_in_the_end(script: Path) -> None:
    done = run_ci(script, "http://127.0.0.1:1", "bh_a_b", "gate", "run:1", "--patience", "0")
    assert (done.returncode, "no connection" in done.stderr) == (3, True)
