"""A real Tomcat for tests: unpacked from its archive, and started as the launcher would start it."""

from __future__ import annotations

import hashlib
import os
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from agents.base.command import Command
from tests import needs

ARCHIVE = Path(
    os.environ.get("BENCHHUB_TOMCAT_ARCHIVE")
    or Path.home() / ".m2/repository/org/apache/tomcat/tomcat/11.0.9/tomcat-11.0.9.tar.gz"
)


def unpack_tomcat(directory: Path) -> Path:
    """The unpacked installation. Skips the test, with the reason, where there is no archive or no Java."""
    needs.require(ARCHIVE.is_file(), f"the Tomcat archive {ARCHIVE.name}", needs.TOMCAT)
    needs.require_program("java")
    subprocess.run(["tar", "-xzf", str(ARCHIVE), "-C", str(directory)], check=True)
    return next(directory.glob("apache-tomcat-*"))


def tree_hash(directory: Path) -> str:
    """SHA-256 over names, modes and contents of everything below a directory."""
    digest = hashlib.sha256()
    for path in sorted(directory.rglob("*")):
        digest.update(f"{path.relative_to(directory)} {path.lstat().st_mode:o}\n".encode())
        if path.is_file():
            digest.update(path.read_bytes())
    return digest.hexdigest()


def own_address() -> str | None:
    """An address of this machine outside 127.0.0.0/8, None where there is none. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return None
        address = str(probe.getsockname()[0])
    return None if address.startswith("127.") else address


@contextmanager
def running(command: Command, environment: Mapping[str, str], until: bytes) -> Iterator[tuple[int, list[bytes]]]:
    """Starts a server and waits for a line of its output with `until`. Gives its pid and the lines so far."""
    clean = {"PATH": os.environ["PATH"], **environment}
    with subprocess.Popen(command.argv, env=clean, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        lines: list[bytes] = []
        try:
            for line in process.stdout:
                lines.append(line)
                if until in line:
                    break
            else:
                pytest.fail(b"".join(lines[-20:]).decode("utf-8", "replace"))
            yield process.pid, lines
        finally:
            process.kill()
