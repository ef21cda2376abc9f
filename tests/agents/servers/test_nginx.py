"""nginx: what it is given, what its files and its build say, and a real one started from its commands."""

from __future__ import annotations

import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from agents.base.errors import ParseError, PlanError
from agents.base.process_start import ProcessStart
from agents.servers.nginx.build import built_with
from agents.servers.nginx.configuration import PLACE_OF, settings_of
from agents.servers.nginx.server import Nginx
from agents.steps.properties import PropertiesStep
from tests import needs
from tests.agents.run_lab import free_port
from tests.agents.servers.native_servers import fetch, made, run, started
from tests.listening import listening

HOSTILE = "$(touch PWNED); `touch PWNED` '\"\\ {}\n"
BUILD = """nginx version: nginx/1.25.3
built by gcc 12.2.0 (Debian 12.2.0-14)
built with OpenSSL 3.0.9 30 May 2023 (running with OpenSSL 3.0.11 19 Sep 2023)
TLS SNI support enabled
configure arguments: --prefix=/etc/nginx --with-http_ssl_module --with-stream=dynamic --with-http_perl_module=dynamic \
--without-http_uwsgi_module --add-module=/build/echo-nginx-module --with-cc-opt='-g -O2 -fPIC'
"""


@pytest.mark.parametrize("tls", [False, True])
def test_a_real_nginx_serves_its_pages_from_a_prefix_of_its_own(tmp_path: Path, tls: bool) -> None:
    needs.require_program("nginx", *(["openssl"] if tls else []))
    server = Nginx(
        port=free_port(),
        pages={"index.html": HOSTILE, "shop/list.json": "[]"},
        settings={"worker_connections": "512", "sendfile": "on", "worker_rlimit_nofile": "2048"},
        tls=tls,
        stub_status=True,
        reuse_port=True,
    ).instance(0, "127.0.0.2")
    version = run(server.version_command())
    assert version.returncode == 0, version.stderr
    assert server.parse_version(version.stdout)[0].isdigit()
    instance = made(server, tmp_path / "run" / "an instance")
    assert run(server.create_instance(instance)).returncode != 0, "an instance is never made over another"
    with started(server, instance) as nginx:
        address = f"{'https' if tls else 'http'}://127.0.0.2:{server.port}"
        assert fetch(f"{address}/").decode() == HOSTILE
        assert fetch(f"{address}/shop/list.json") == b"[]"
        assert b"Active connections" in fetch(f"{address}/stub_status")
        with pytest.raises(urllib.error.HTTPError, match="404"):
            fetch(f"{address}/nginx.conf")
        assert listening({nginx.pid}) == {("127.0.0.2", server.port)}
        effective = nginx.effective()
        assert "[error]" in nginx.log.read_text()
        assert server.problems(nginx.log.read_text()) == (), "a page that is not there is no problem of the server"
    assert effective["nginx.conf.events.worker_connections"] == "512"
    assert effective["nginx.conf.worker_rlimit_nofile"] == "2048"
    assert effective["nginx.conf.http.sendfile"] == "on"
    assert effective["nginx.conf.http.server.listen"].startswith(f"127.0.0.2:{server.port}")
    assert effective["nginx.version"] == server.parse_version(version.stdout)
    assert int(effective["nginx.workers"]) >= 1
    assert effective["process.cpus"]
    assert not list(tmp_path.rglob("PWNED"))
    assert not Path("PWNED").exists()


def test_a_real_nginx_passes_requests_on_and_its_own_conf_is_taken_as_it_is(tmp_path: Path) -> None:
    needs.require_program("nginx")
    behind = Nginx(port=free_port(), pages={"index.html": "from behind"}).instance(0, "127.0.0.1")
    before = Nginx(port=free_port(), proxy_to=(f"127.0.0.1:{behind.port}",), settings={"worker_processes": "3"})
    text = (
        "worker_processes 1;\nevents {}\nhttp {\n  access_log off;\n  include temporary.conf;\n  server {\n"
        "    listen {address}:{port};\n    return 200 mine;\n  }\n}\n"
    )
    own = Nginx(port=free_port(), conf=text).instance(0, "127.0.0.1")
    with (
        started(behind, made(behind, tmp_path / "a" / "instance")),
        started(before, made(before, tmp_path / "b" / "instance")) as proxy,
        started(own, made(own, tmp_path / "c" / "instance")) as given,
    ):
        assert fetch(f"http://127.0.0.1:{before.port}/") == b"from behind"
        assert proxy.effective()["nginx.workers"] == "3"
        assert fetch(f"http://127.0.0.1:{own.port}/") == b"mine"
        assert given.effective()["nginx.conf.http.server.return"] == "200 mine"
        assert given.effective()["nginx.workers"] == "1"


def test_what_is_missing_on_the_host_is_named(tmp_path: Path) -> None:
    missing = run(Nginx(binary=str(tmp_path / "nginx")).version_command())
    assert missing.returncode != 0
    assert b"there is no program" in missing.stderr
    assert b"correct binary" in missing.stderr
    (tmp_path / "nginx").write_text("#!/bin/sh\n")
    (tmp_path / "nginx").chmod(0o755)
    no_root = run(Nginx(binary=str(tmp_path / "nginx"), root=str(tmp_path / "gone")).version_command())
    assert b"there is no directory" in no_root.stderr


def test_the_build_tells_version_modules_and_flags() -> None:
    assert built_with(BUILD) == {
        "version": "1.25.3",
        "tls_library": "OpenSSL 3.0.11",
        "modules.http_ssl_module": "static",
        "modules.http_perl_module": "dynamic",
        "modules.http_uwsgi_module": "left out",
        "modules.echo-nginx-module": "added",
        "compiler_flags": "-g -O2 -fPIC",
    }
    assert Nginx().parse_version(b"nginx version: openresty/1.25.3.1\n") == "1.25.3.1"
    with pytest.raises(ParseError):
        Nginx().parse_version(b"apache 2.4\n")


@pytest.mark.parametrize(
    "text, expected",
    [
        ("a 1;", {"a": "1"}),
        ("a;", {"a": ""}),
        ("a 1; a 2; b { c 3; c 4; } b { c 5; }", {"a": "1", "a[2]": "2", "b.c": "3", "b.c[2]": "4", "b[2].c": "5"}),
        ("location ~ '^/x{1}$' # y }\n { e 'a b; {' \"c\" ''; }", {"location ~ ^/x{1}$.e": "a b; { c "}),
        ("set ${a;b} $c\\{d;", {"set": "${a;b} $c\\{d"}),
        ("# only { a comment", {}),
    ],
)
def test_a_configuration_is_read_flat(text: str, expected: dict[str, str]) -> None:
    assert settings_of(text) == expected


@pytest.mark.parametrize("text", ["a", "a {", "}", "a { b 1; }}", "a 'b;", "{ }", ";", "a { b }"])
def test_what_is_no_configuration_is_named_with_its_line(text: str) -> None:
    with pytest.raises(ParseError) as error:
        settings_of(f"x 1;\n{text}")
    assert error.value.line == 2


def test_every_directive_that_tunes_is_read_back_from_the_block_where_it_was_put(tmp_path: Path) -> None:
    server = Nginx(settings=dict.fromkeys(PLACE_OF, "1"), binary="sh").instance(0, "::1")
    flat = settings_of((Path(made(server, tmp_path / "instance")) / "nginx.conf").read_text())
    where = {"main": "", "events": "events.", "http": "http."}
    assert all(flat[f"{where[place]}{name}"] == "1" for name, place in PLACE_OF.items())
    assert flat["http.server.listen"] == "[::1]:8080"


def test_a_step_explains_the_directives_that_it_sets() -> None:
    step = PropertiesStep(path="nginx.conf", values={"worker_connections": "4096;"}, separator=" ")
    assert step.explains("nginx.conf.events.worker_connections")
    assert not step.explains("nginx.conf.http.sendfile")


def test_switches_are_written_as_nginx_has_them() -> None:
    assert Nginx.model_validate({"settings": {"sendfile": True, "gzip": False, "worker_processes": 2}}).settings == {
        "sendfile": "on",
        "gzip": "off",
        "worker_processes": "2",
    }


def test_jvm_options_are_refused() -> None:
    with pytest.raises(PlanError, match="no effect on nginx"):
        Nginx().environment("/i", ProcessStart(jvm_options=("-Xmx1g",)))


@pytest.mark.parametrize(
    "raw, named",
    [
        ({"binary": "../nginx"}, "binary"),
        ({"binary": "-c"}, "binary"),
        ({"settings": {"load_module": "x.so"}}, "load_module"),
        ({"settings": {"sendfile": "on; load_module x.so"}}, "sendfile"),
        ({"settings": {"sendfile": "on\nuser root"}}, "sendfile"),
        ({"settings": {"gzip_types": "a'b"}}, "gzip_types"),
        ({"pages": {"../x": ""}}, "pages"),
        ({"pages": {".htaccess": ""}}, "pages"),
        ({"pages": {"a": ""}, "root": "/srv/www"}, "root"),
        ({"root": "/srv/$(id)"}, "root"),
        ({"proxy_to": ["localhost"]}, "proxy_to"),
        ({"proxy_to": ["localhost:80; x"]}, "proxy_to"),
        ({"conf": "events {}\nhttp { server { listen 80; } }"}, r"listen \{address\}"),
        ({"conf": "daemon on; http { server { listen {address}:{port}; } }"}, "daemon"),
        ({"conf": "pid x; http { server { listen {address}:{port}; } }"}, "pid"),
        ({"conf": "http { server { listen {address}:{port}; }"}, "not closed"),
        ({"conf": "http { server { listen {address}:{port}; } }", "tls": True}, "tls"),
    ],
)
def test_an_nginx_that_makes_no_sense_is_refused(raw: dict[str, Any], named: str) -> None:
    with pytest.raises(ValidationError, match=named):
        Nginx.model_validate(raw)
