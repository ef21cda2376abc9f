"""A real sshd of the current user on 127.0.0.1, for tests: own keys, own HOME, key login only."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pwd
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from agents.remote.address import Address, new_key_pair
from tests import needs

START_TIMEOUT_S = 100.0

CONFIG = """
ListenAddress {address}
Port {port}
{host_key}
AuthorizedKeysFile {folder}/authorized_keys
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
AllowUsers {user}
PermitRootLogin prohibit-password
PrintMotd no
SetEnv HOME={home} TMPDIR={home} BENCHHUB_MACHINE_DIR={place}
Subsystem sftp internal-sftp
{extra}
"""


@dataclass(frozen=True)
class SshdHost:
    """A host that tests can log in to. `home` is HOME there, on this machine's disk; `pid` is the listening sshd."""

    address: str
    port: int
    user: str
    host_key: str
    private_key: str
    home: Path
    pid: int

    def await_host_key(self, line: str) -> None:
        """Return when it shows this host key, after it was told to read its files anew: until then it shows the old."""
        keyscan = ["ssh-keyscan", "-T", "5", "-p", str(self.port), "-t", line.split()[0], self.address]
        end_s = time.monotonic() + START_TIMEOUT_S
        while line not in subprocess.run(keyscan, capture_output=True, text=True, check=False).stdout:
            assert time.monotonic() < end_s, "sshd did not come back with the new key"
            time.sleep(0.02)

    def login(self, name: str = "sut") -> Address:
        return Address(name, self.address, self.port, self.user, self.host_key)


@contextlib.contextmanager
def running_sshd(
    folder: Path, *, extra: str = "", place: Path | None = None, host_key: bool = True
) -> Iterator[SshdHost]:
    """Start an sshd with its files in `folder`; at the end stop it and its connections. `extra` is configuration.

    Without `host_key` that names its host keys. Hosts with one `place` are logins of one machine; else each is a
    machine of its own.
    """
    needs.require_program("sshd")
    sshd = needs.place("sshd")
    assert sshd is not None
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    home = folder / "home"
    home.mkdir()
    host_private, host_line = new_key_pair("test host")
    private_key, public_line = new_key_pair("test login")
    (folder / "host_key").touch(mode=0o600)
    (folder / "host_key").write_text(host_private)
    (folder / "authorized_keys").write_text(public_line + "\n")
    user = pwd.getpwuid(os.geteuid()).pw_name
    address = "127.0.0.1"
    for _ in range(5):  # another process may take the free port first
        port = _free_port(address)
        config = folder / "sshd_config"
        config.write_text(
            CONFIG.format(
                address=address,
                port=port,
                folder=folder,
                user=user,
                home=home,
                extra=extra,
                place=place or home,
                host_key=f"HostKey {folder}/host_key" if host_key else "",
            )
        )
        log = folder / "sshd.log"
        process = subprocess.Popen([sshd, "-D", "-f", str(config), "-E", str(log)], start_new_session=True)
        if _answers(address, port, process):
            break
        _stop(process)
    else:
        raise RuntimeError(f"sshd did not start: {log.read_text()}")
    try:
        yield SshdHost(address, port, user, " ".join(host_line.split()[:2]), private_key, home, process.pid)
    finally:
        cut_connections(process.pid)
        _stop(process)


def children(pid: int) -> list[int]:
    """The child processes of `pid`: for an sshd, one for each connection."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def connections(pid: int) -> list[int]:
    """What holds the connections of an sshd: a process each, and for logins other than root a second one below it."""
    holding = children(pid)
    for parent in holding:
        with contextlib.suppress(FileNotFoundError):
            holding += [child for child in children(parent) if process_bytes(child, "comm").startswith(b"sshd")]
    return holding


def cut_connections(pid: int) -> None:
    """Each connection of this sshd is gone, without a word to anybody."""
    for process in connections(pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


async def eventually(condition: Callable[[], bool], *, within_s: float = 120.0) -> None:
    """Return as soon as `condition` holds; it fails the test after `within_s`."""
    end_s = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < end_s, "this did not happen in time"
        await asyncio.sleep(0.02)


def process_bytes(pid: int | None, name: str) -> bytes:
    """A file of /proc/PID."""
    return Path(f"/proc/{pid}/{name}").read_bytes()


def exists(pid: int) -> bool:
    """Whether the process is there and is not only waiting to be reaped."""
    try:
        return process_bytes(pid, "stat").rpartition(b") ")[2][:1] != b"Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def _free_port(address: str) -> int:
    with socket.socket() as probe:
        probe.bind((address, 0))
        return int(probe.getsockname()[1])


def _answers(address: str, port: int, process: subprocess.Popen[bytes]) -> bool:
    end_s = time.monotonic() + START_TIMEOUT_S
    while process.poll() is None and time.monotonic() < end_s:
        with contextlib.suppress(OSError), socket.create_connection((address, port), timeout=1) as probe:
            return probe.recv(4) == b"SSH-"
        time.sleep(0.02)
    return False


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(timeout=60)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@pytest.fixture(scope="session")
def sshd_host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshdHost]:
    with running_sshd(tmp_path_factory.mktemp("sshd")) as host:
        yield host
