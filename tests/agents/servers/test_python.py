"""An application in Python: what it is given, and a real one under uvicorn and gunicorn."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from agents.base.errors import ParseError, PlanError
from agents.base.process_start import ProcessStart
from agents.servers.python import Python
from tests import needs
from tests.agents.run_lab import free_port
from tests.agents.servers.native_servers import fetch, made, run, started
from tests.agents.servers.tomcat_install import tree_hash
from tests.listening import listening

ASGI = """
async def app(scope, receive, send):
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"5")]})
        await send({"type": "http.response.body", "body": b"hello"})
"""
WSGI = """
def app(environ, start_response):
    start_response("200 OK", [("Content-Length", "5")])
    return [b"hello"]
"""
OPT: dict[str, Any] = {"application": "shop.main:app", "directory": "/opt/shop"}


@pytest.mark.parametrize("name, program", [("uvicorn", ASGI), ("gunicorn", WSGI)])
@pytest.mark.parametrize("workers", [1, 2])
def test_a_real_application_listens_where_the_load_goes(tmp_path: Path, name: str, program: str, workers: int) -> None:
    there = subprocess.run([sys.executable, "-c", f"import {name}"], capture_output=True, check=False).returncode == 0
    needs.require(there, name, f"pip install {name}")
    package = tmp_path / "opt" / "shop"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "main.py").write_text(program)
    before = tree_hash(tmp_path / "opt")
    server = Python.model_validate(
        {
            "application": "shop.main:app",
            "directory": str(tmp_path / "opt"),
            "server": name,
            "binary": sys.executable,
            "workers": workers,
            "port": free_port(),
        }
    ).instance(0, "127.0.0.2")
    version = server.parse_version(run(server.version_command()).stdout)
    instance = made(server, tmp_path / "run" / "an instance")
    with started(server, instance, ProcessStart(environment={"PYTHONUNBUFFERED": "1"})) as python:
        assert fetch(f"http://127.0.0.2:{server.port}/") == b"hello"
        assert listening({python.pid}) == {("127.0.0.2", server.port)}
        effective = python.effective()
        assert server.problems(python.log.read_text()) == ()
    assert version == f"{name} {effective[f'python.versions.{name}']}"
    assert effective["python.versions.python"]
    assert effective["process.environment.PYTHONUNBUFFERED"] == "1"
    assert tree_hash(tmp_path / "opt") == before, "the installation is only read"


def test_what_is_missing_on_the_host_is_named(tmp_path: Path) -> None:
    no_python = run(Python(**OPT, binary="no-such-python").version_command())
    assert no_python.returncode != 0
    assert b"there is no program no-such-python" in no_python.stderr
    no_directory = run(Python(application="a:b", directory=f"{tmp_path}/gone", binary=sys.executable).version_command())
    assert b"there is no directory" in no_directory.stderr
    (tmp_path / "python").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "python").chmod(0o755)
    no_server = run(Python(application="a:b", directory=str(tmp_path), binary=f"{tmp_path}/python").version_command())
    assert b"has no uvicorn" in no_server.stderr


def test_each_server_is_told_its_port_in_its_own_way() -> None:
    uvicorn = Python(**OPT, port=81, workers=3).instance(0, "::1").start_command("/i", ProcessStart()).argv
    assert uvicorn[6:11] == ("uvicorn", "--host", "::1", "--port", "81")
    assert uvicorn[-1] == "shop.main:app"
    gunicorn = Python(**OPT, port=81, server="gunicorn", threads=4).instance(0, "::1")
    argv = gunicorn.start_command("/i", ProcessStart()).argv
    assert argv[6:9] == ("gunicorn", "--bind", "[::1]:81")
    assert argv[argv.index("--threads") + 1] == "4"


def test_the_version_is_read() -> None:
    assert Python(**OPT).parse_version(b"uvicorn 0.30.1\npython 3.11.7\n") == "uvicorn 0.30.1"
    with pytest.raises(ParseError):
        Python(**OPT).parse_version(b"python 3.11.7\n")


@pytest.mark.parametrize("name", ["GUNICORN_CMD_ARGS", "UVICORN_HOST", "WEB_CONCURRENCY", "PYTHONPATH"])
def test_variables_with_options_or_code_are_refused(name: str) -> None:
    with pytest.raises(PlanError, match=name):
        Python(**OPT).environment("/i", ProcessStart(environment={name: "x"}))


@pytest.mark.parametrize(
    "raw, named",
    [
        ({"application": "shop.main"}, "application"),
        ({"application": "-c:app"}, "application"),
        ({"application": "a:b()"}, "application"),
        ({"directory": "shop"}, "directory"),
        ({"binary": "-c"}, "binary"),
        ({"threads": 2}, "threads"),
        ({"server": "flask"}, "server"),
    ],
)
def test_a_python_that_makes_no_sense_is_refused(raw: dict[str, Any], named: str) -> None:
    with pytest.raises(ValidationError, match=named):
        Python.model_validate({**OPT, **raw})
