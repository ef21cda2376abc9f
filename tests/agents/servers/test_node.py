"""A server for Node.js: what it is given, and a real one started from the commands of BenchHub."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from agents.base.errors import ParseError, PlanError
from agents.base.process_start import ProcessStart
from agents.servers.node import Node, flag_is_harmless
from tests import needs
from tests.agents.run_lab import free_port
from tests.agents.servers.native_servers import fetch, made, run, started
from tests.listening import listening

PROGRAM = """
const said = JSON.stringify([process.argv.slice(2), process.env.NODE_ENV, process.cwd()]);
require("http").createServer((_, answer) => answer.end(said)).listen(Number(process.env.PORT), process.env.HOST);
"""
HOSTILE = "$(touch PWNED) `touch PWNED` '; \" *"


def test_a_real_script_listens_where_the_load_goes(tmp_path: Path) -> None:
    needs.require_program("node")
    (tmp_path / "server.js").write_text(PROGRAM)
    server = Node(
        entry=f"{tmp_path}/server.js", port=free_port(), flags=("--max-old-space-size=64",), arguments=(HOSTILE,)
    ).instance(0, "127.0.0.2")
    version = server.parse_version(run(server.version_command()).stdout)
    instance = made(server, tmp_path / "run" / "an instance")
    launch = ProcessStart(environment={"UV_THREADPOOL_SIZE": "2"})
    with started(server, instance, launch) as node:
        said = fetch(f"http://127.0.0.2:{server.port}/").decode()
        assert listening({node.pid}) == {("127.0.0.2", server.port)}
        effective = node.effective()
    assert HOSTILE.replace('"', '\\"') in said
    assert said.endswith(f'"production","{instance}"]')
    assert effective["node.versions.node"] == version
    assert effective["node.versions.v8"]
    assert effective["node.sha256"] == hashlib.sha256(PROGRAM.encode()).hexdigest()
    assert effective["process.arguments[1]"] == "--max-old-space-size=64"
    assert effective["process.environment.UV_THREADPOOL_SIZE"] == "2"
    assert not list(tmp_path.rglob("PWNED"))


def test_what_is_missing_on_the_host_is_named(tmp_path: Path) -> None:
    missing = run(Node(entry="/opt/a.js", binary="no-such-node").version_command())
    assert missing.returncode != 0
    assert b"there is no program no-such-node" in missing.stderr
    no_script = run(Node(entry=f"{tmp_path}/gone.js", binary="sh").version_command())
    assert no_script.returncode != 0
    assert b"there is no" in no_script.stderr


def test_the_version_is_read() -> None:
    assert Node(entry="/opt/a.js").parse_version(b"v20.20.2\n") == "20.20.2"
    with pytest.raises(ParseError):
        Node(entry="/opt/a.js").parse_version(b"deno 2.0\n")


def test_the_port_is_the_application_s_and_jvm_options_are_refused() -> None:
    server = Node(entry="/opt/a.js", port=81)
    assert server.environment("/i", ProcessStart(environment={"NODE_ENV": "test"})) == {
        "NODE_ENV": "test",
        "PORT": "81",
        "HOST": "0.0.0.0",
    }
    with pytest.raises(PlanError, match="PORT"):
        server.environment("/i", ProcessStart(environment={"PORT": "80"}))
    with pytest.raises(PlanError, match=r"no effect on Node\.js"):
        server.environment("/i", ProcessStart(jvm_options=("-Xmx1g",)))


@pytest.mark.parametrize(
    "flag, harmless",
    [
        ("--max-old-space-size=512", True),
        ("--no-opt", True),
        ("--v8-pool-size=2", True),
        ("--require=/tmp/x.js", False),
        ("--import=data:text/javascript,0", False),
        ("--eval=1", False),
        ("--inspect=0.0.0.0:9229", False),
        ("--max-old-space-size=512 --require=x", False),
        ("-e", False),
    ],
)
def test_only_flags_that_tune_are_an_editor_s(flag: str, harmless: bool) -> None:
    assert flag_is_harmless(flag) == harmless
    assert bool(Node(entry="/opt/a.js", flags=(flag,)).reserved()) != harmless


@pytest.mark.parametrize(
    "raw, named",
    [
        ({"entry": "server.js"}, "entry"),
        ({"entry": "/opt/server.py"}, "ends in .js"),
        ({"entry": "/opt/$(id).js"}, "entry"),
        ({"flags": ["max"]}, "flags"),
        ({"binary": "-e"}, "binary"),
    ],
)
def test_a_node_that_makes_no_sense_is_refused(raw: dict[str, Any], named: str) -> None:
    with pytest.raises(ValidationError, match=named):
        Node.model_validate({"entry": "/opt/server.js", **raw})
