"""Redis: what it is given, what it answers, and a real one started from its commands."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from agents.base.command import CommandResult
from agents.base.errors import ParseError, PlanError
from agents.base.process_start import ProcessStart
from agents.servers.redis.configuration import parse_redis
from agents.servers.redis.protocol import answers
from agents.servers.redis.server import Redis
from agents.steps.base.step import StepContext
from agents.steps.properties import PropertiesStep
from tests import needs
from tests.agents.run_lab import free_port
from tests.agents.servers.native_servers import made, run, started
from tests.listening import listening


def asked(server: Redis, *lines: str) -> tuple[object, ...]:
    """What it answers to whoever reaches its port."""
    with socket.create_connection((server.listen, server.port), timeout=60) as connection:
        connection.sendall("".join(f"{line}\r\n" for line in (*lines, "QUIT")).encode())
        return answers(b"".join(iter(lambda: connection.recv(65536), b"")))[:-1]


def test_a_real_redis_runs_in_a_directory_of_its_own_with_its_settings(tmp_path: Path) -> None:
    needs.require_program("redis-server")
    settings: dict[str, Any] = {"io-threads": 2, "appendfsync": "always", "activedefrag": False, "hz": 50}
    server = Redis.model_validate({"port": free_port(), "persistence": "append_only", "settings": settings})
    server = server.instance(0, "127.0.0.2")
    version = server.parse_version(run(server.version_command()).stdout)
    instance = made(server, tmp_path / "run" / "instance")
    assert run(server.create_instance(instance)).returncode != 0, "an instance is never made over another"
    step = PropertiesStep(path="redis.conf", values={"hz": "100", "maxmemory": "64mb"}, separator=" ")
    context = StepContext(instance)
    for command in step.apply(context, step.parse(run(step.probe(context)).stdout)):
        assert run(command).returncode == 0
    not_yet = run(server.ready_command(instance) or server.version_command())
    assert "did not answer" in server.unready(CommandResult(not_yet.returncode, not_yet.stdout))
    with started(server, instance) as redis:
        assert listening({redis.pid}) == {("127.0.0.2", server.port)}
        assert asked(server, "SET a b", "GET a") == ("OK", "b")
        effective = redis.effective()
    assert effective["redis.settings.appendfsync"] == "always"
    assert effective["redis.settings.io-threads"] == "2"
    assert effective["redis.settings.hz"] == "100"
    assert effective["redis.settings.maxmemory"] == str(64 << 20)
    assert effective["redis.settings.bind"] == "127.0.0.2"
    assert effective["redis.settings.dir"] == instance
    assert effective["redis.build.mem_allocator"]
    assert version in (effective["redis.build.redis_version"], effective.get("redis.build.valkey_version"))
    assert not [path for path in effective if "pass" in path or "masterauth" in path]
    assert step.explains("redis.settings.hz")


def test_who_reaches_the_port_may_use_data_and_not_the_host(tmp_path: Path) -> None:
    needs.require_program("redis-server")
    server = Redis(port=free_port()).instance(0, "127.0.0.1")
    with started(server, made(server, tmp_path / "instance")):
        refused = (
            "CONFIG SET dir /tmp",
            "CONFIG REWRITE",
            "REPLICAOF 127.0.0.1 1",
            "MODULE LOAD /tmp/x.so",
            "DEBUG SLEEP 0",
            "SAVE",
            "SHUTDOWN",
            "ACL LIST",
            "AUTH benchhub x",
        )
        said = asked(server, *refused)
        assert [str(answer)[:5] in ("-NOPE", "-WRON") for answer in said] == [True] * len(refused), said
        assert asked(server, "FLUSHALL", "DBSIZE") == ("OK", 0)
    password = (tmp_path / "instance" / ".control").read_text().split()[2]
    assert len(password) == 64
    assert password not in (tmp_path / "instance" / "redis.conf").read_text()
    assert (tmp_path / "instance" / ".control").stat().st_mode & 0o077 == 0


def test_the_version_is_read_and_one_without_accounts_is_refused() -> None:
    said = b"Redis server v=6.2.14 sha=40305114:0 malloc=libc bits=64 build=dff95a8e7a99d269\n"
    assert Redis().parse_version(said) == "6.2.14"
    assert Redis().parse_version(b"Valkey server v=8.0.1 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64\n") == "8.0.1"
    with pytest.raises(PlanError, match=r"5\.0\.14"):
        Redis().parse_version(said.replace(b"6.2.14", b"5.0.14"))
    with pytest.raises(ParseError):
        Redis().parse_version(b"something else\n")


def test_a_missing_program_is_named() -> None:
    missing = run(Redis(binary="no-such-redis").version_command())
    assert missing.returncode != 0
    assert b"there is no program no-such-redis" in missing.stderr


@pytest.mark.parametrize(
    "output, missing",
    [
        (b"+OK\r\n+PONG\r\n+OK\r\n", ""),
        (b"+OK\r\n-LOADING Redis is loading the dataset in memory\r\n+OK\r\n", "LOADING Redis is loading"),
        (b"bash: line 1: /dev/tcp/127.0.0.1/1: Connection refused\n", "Connection refused"),
        (b"", "did not answer PING"),
    ],
)
def test_it_is_ready_when_it_answers_and_has_its_data(output: bytes, missing: str) -> None:
    said = Redis().unready(CommandResult(0, output))
    assert missing in said
    assert bool(said) == bool(missing)


def test_its_answers_are_read_and_cut_ones_are_refused() -> None:
    settings = b"*4\r\n$2\r\nhz\r\n$2\r\n10\r\n$11\r\nrequirepass\r\n$1\r\nx\r\n"
    text = b"+OK\r\n" + settings + b"$11\r\na:1\r\nhz:2\r\n\r\n:7\r\n$-1\r\n-ERR x\r\n"
    read = answers(text)
    assert read == ("OK", ("hz", "10", "requirepass", "x"), "a:1\r\nhz:2\r\n", 7, None, "-ERR x")
    for cut in (text[:-1], text[:30], b"$5\r\nab\r\n", b"HTTP/1.1 200\r\n", b"*2\r\n+a\r\n"):
        with pytest.raises(ParseError):
            answers(cut)


def test_no_password_is_among_its_settings_and_a_refusal_is_none() -> None:
    info = b"# Server\r\nredis_version:7.2.0\r\nuptime_in_seconds:3\r\n"
    bulk = b"$%d\r\n%s\r\n" % (len(info), info)
    settings = b"*6\r\n+hz\r\n+10\r\n+requirepass\r\n+x\r\n+masterauth\r\n+y\r\n"
    assert parse_redis(b"+OK\r\n" + settings + bulk + bulk + b"+OK\r\n") == {
        "redis.settings.hz": "10",
        "redis.build.redis_version": "7.2.0",
    }
    with pytest.raises(ParseError, match="NOPERM"):
        parse_redis(b"-WRONGPASS x\r\n-NOPERM y\r\n-NOPERM y\r\n-NOPERM y\r\n+OK\r\n")
    with pytest.raises(ParseError, match="did not answer"):
        parse_redis(b"")


def test_jvm_options_are_refused() -> None:
    with pytest.raises(PlanError, match="no effect on Redis"):
        Redis().environment("/i", ProcessStart(jvm_options=("-Xmx1g",)))


@pytest.mark.parametrize(
    "raw, named",
    [
        ({"binary": "-x"}, "binary"),
        ({"settings": {"port": "1"}}, "port"),
        ({"settings": {"user": "x on nopass +@all"}}, "user"),
        ({"settings": {"hz": "1\nloadmodule x"}}, "hz"),
        ({"settings": {"Hz 1\nloadmodule": "x"}}, "settings"),
        ({"persistence": "some"}, "persistence"),
    ],
)
def test_a_redis_that_makes_no_sense_is_refused(raw: dict[str, Any], named: str) -> None:
    with pytest.raises(ValidationError, match=named):
        Redis.model_validate(raw)
