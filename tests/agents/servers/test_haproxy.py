"""HAProxy: what it is given, what its files and its build say, and a real one started from its commands."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from agents.base.errors import ParseError
from agents.servers.haproxy.configuration import SECTION_OF, built_with, settings_of
from agents.servers.haproxy.server import HAProxy
from tests import needs
from tests.agents.run_lab import free_port
from tests.agents.servers.native_servers import fetch, made, run, started
from tests.listening import listening

BUILD = """HAProxy version 2.6.12-1+deb12u4 2026/10/17 - https://haproxy.org/
Build options :
  CFLAGS  = -O2 -g
Feature list : -51DEGREES +EPOLL +THREAD -QUIC
Built with OpenSSL version : OpenSSL 3.0.22 25 Aug 2026
Running on OpenSSL version : OpenSSL 3.0.19 27 Jan 2026
Total: 3 (3 usable), will use epoll.
"""


@pytest.fixture
def behind() -> Iterator[int]:
    """The port of a server that says which page it was asked for."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = f"behind {self.path}".encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield int(server.server_address[1])
        server.shutdown()


@pytest.mark.parametrize("tls", [False, True])
def test_a_real_haproxy_stands_before_others_in_a_directory_of_its_own(tmp_path: Path, behind: int, tls: bool) -> None:
    needs.require_program("haproxy", *(["openssl"] if tls else []))
    settings = {"nbthread": "2", "timeout client": "7s", "option http-server-close": "", "maxconn": "50"}
    server = HAProxy(port=free_port(), proxy_to=(f"127.0.0.1:{behind}",), settings=settings, tls=tls)
    server = server.instance(0, "127.0.0.2")
    version = server.parse_version(run(server.version_command()).stdout)
    instance = made(server, tmp_path / "run" / "an instance")
    assert run(server.create_instance(instance)).returncode != 0, "an instance is never made over another"
    with started(server, instance) as haproxy:
        assert fetch(f"{'https' if tls else 'http'}://127.0.0.2:{server.port}/x") == b"behind /x"
        assert listening({haproxy.pid}) == {("127.0.0.2", server.port)}
        effective = haproxy.effective()
        assert server.problems(haproxy.log.read_text()) == ()
    assert effective["haproxy.conf.global.nbthread"] == "2"
    assert effective["process.threads"] == "2"
    assert effective["haproxy.conf.defaults.timeout client"] == "7s"
    assert effective["haproxy.conf.defaults.timeout server"] == "60s"
    assert effective["haproxy.conf.listen load.server s1"] == f"127.0.0.1:{behind}"
    assert effective["haproxy.version"] == version


def test_a_real_haproxy_answers_by_itself_and_its_own_conf_is_taken_as_it_is(tmp_path: Path) -> None:
    needs.require_program("haproxy")
    alone = HAProxy(port=free_port()).instance(0, "127.0.0.1")
    conf = (
        "defaults\n  mode http\n  timeout client 5s\n  timeout server 5s\n  timeout connect 5s\n"
        'frontend own\n  bind {address}:{port}\n  http-request return status 200 content-type text/plain string "mine"'
    )
    own = HAProxy(port=free_port(), conf=conf).instance(0, "127.0.0.1")
    with started(alone, made(alone, tmp_path / "a" / "i")), started(own, made(own, tmp_path / "b" / "i")) as given:
        assert fetch(f"http://127.0.0.1:{alone.port}/") == b"ok"
        assert fetch(f"http://127.0.0.1:{own.port}/") == b"mine"
        assert given.effective()["haproxy.conf.frontend own.bind"] == f"127.0.0.1:{own.port}"


def test_a_missing_program_is_named() -> None:
    missing = run(HAProxy(binary="no-such-haproxy").version_command())
    assert missing.returncode != 0
    assert b"there is no program no-such-haproxy" in missing.stderr


def test_the_build_tells_version_and_features() -> None:
    assert built_with(BUILD) == {
        "version": "2.6.12-1+deb12u4",
        "tls_library": "OpenSSL 3.0.19",
        "multiplexing": "epoll",
        "compiler_flags": "-O2 -g",
        "features": "EPOLL THREAD",
    }
    assert HAProxy().parse_version(b"HA-Proxy version 2.2.9-2 2021/01/15\n") == "2.2.9-2"
    with pytest.raises(ParseError):
        HAProxy().parse_version(b"nginx version: nginx/1.25.3\n")


def test_a_configuration_is_read_flat() -> None:
    text = "# all\nglobal\n  maxconn 5 # few\nlisten a\n  server s1 h:1 check\n  bind :1\n  bind :2\n\n"
    text += "  timeout client 1s\n"
    assert settings_of(text) == {
        "global.maxconn": "5",
        "listen a.server s1": "h:1 check",
        "listen a.bind": ":1",
        "listen a.bind[2]": ":2",
        "listen a.timeout client": "1s",
    }
    with pytest.raises(ParseError, match="stands in no section") as error:
        settings_of("\n  maxconn 5\n")
    assert error.value.line == 2


def test_every_keyword_that_tunes_is_read_back_from_the_section_where_it_was_put(tmp_path: Path) -> None:
    server = HAProxy(settings=dict.fromkeys(SECTION_OF, "1")).instance(0, "::1")
    flat = settings_of((Path(made(server, tmp_path / "instance")) / "haproxy.cfg").read_text())
    assert all(flat[f"{section}.{name}"] == "1" for name, section in SECTION_OF.items())
    assert flat["listen load.bind"] == "[::1]:8080"


@pytest.mark.parametrize(
    "raw, named",
    [
        ({"binary": "-f"}, "binary"),
        ({"settings": {"chroot": "/"}}, "chroot"),
        ({"settings": {"maxconn": "5\n  chroot /"}}, "maxconn"),
        ({"settings": {"maxconn": '"${HOME}"'}}, "maxconn"),
        ({"proxy_to": ["localhost"]}, "proxy_to"),
        ({"mode": "tcp"}, "proxy_to"),
        ({"conf": "listen a\n  bind :80\n"}, r"bind \{address\}"),
        ({"conf": "global\n  daemon\nlisten a\n  bind {address}:{port}\n"}, "daemon"),
        ({"conf": "bind {address}:{port}\n"}, "in no section"),
        ({"conf": "listen a\n  bind {address}:{port}\n", "tls": True}, "tls"),
    ],
)
def test_a_haproxy_that_makes_no_sense_is_refused(raw: dict[str, Any], named: str) -> None:
    with pytest.raises(ValidationError, match=named):
        HAProxy.model_validate(raw)
