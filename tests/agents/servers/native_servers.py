"""Real servers that are programs of the host, made and started by the commands that BenchHub sends."""

from __future__ import annotations

import os
import socket
import ssl
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from agents.base.command import Command, CommandResult
from agents.base.process_start import ProcessStart
from agents.servers.base.server import Server

PATIENCE_S = 120.0


def run(command: Command) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(command.argv, input=command.stdin, capture_output=True, timeout=300, check=False)


def made(server: Server, instance: Path) -> str:
    """The instance directory, made by the server's own command."""
    created = run(server.create_instance(str(instance)))
    assert created.returncode == 0, created.stderr
    return str(instance)


@dataclass(frozen=True)
class Started:
    """A server that is ready. `log` is the file of what it printed."""

    server: Server
    instance: str
    pid: int
    log: Path

    def effective(self) -> dict[str, str]:
        result = run(self.server.effective_command(self.instance, self.pid))
        assert result.returncode == 0, result.stderr
        return dict(self.server.parse_effective(result.stdout))


@contextmanager
def started(server: Server, instance: str, launch: ProcessStart | None = None) -> Iterator[Started]:
    """Starts the server in its instance and waits until it is ready, as a run does; it is killed at the end."""
    launch = launch or ProcessStart()
    log = Path(instance).parent / "printed.log"
    environment = {"PATH": os.environ["PATH"], **server.environment(instance, launch)}
    command = server.start_command(instance, launch)
    with log.open("wb") as out, subprocess.Popen(command.argv, env=environment, stdout=out) as process:
        try:
            _until_ready(server, instance, process, log)
            yield Started(server, instance, process.pid, log)
        finally:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()


def fetch(url: str) -> bytes:
    """The page, from a server whose certificate nobody knows."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with urllib.request.urlopen(url, timeout=60, context=context if url.startswith("https") else None) as answer:
        body: bytes = answer.read()
        return body


def _until_ready(server: Server, instance: str, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + PATIENCE_S
    while missing := _missing(server, instance):
        try:
            process.wait(0.1)
        except subprocess.TimeoutExpired:
            if time.monotonic() < end:
                continue
        pytest.fail(f"{missing}\n{log.read_text(errors='replace')}")


def _missing(server: Server, instance: str) -> str:
    try:
        socket.create_connection((server.listen or "127.0.0.1", server.port), timeout=5).close()
    except OSError as error:
        return str(error)
    command = server.ready_command(instance)
    if command is None:
        return ""
    done = run(command)
    return server.unready(CommandResult(done.returncode, done.stdout, done.stderr))
