"""Hosts for measurements: one sshd of the present user for each, on loopback addresses and high ports."""

from __future__ import annotations

import contextlib
import getpass
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from agents.remote.address import Address, new_key_pair

START_LIMIT_S = 20.0
FIRST_PORT = 23000

_CONFIG = """\
ListenAddress {address}
Port {port}
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/authorized_keys
PidFile none
StrictModes no
UsePAM no
UseDNS no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
PrintMotd no
MaxStartups 1000
MaxSessions 100
Subsystem sftp internal-sftp
"""


@dataclass(frozen=True)
class Hosts:
    """Running hosts. `folder` holds `login_key` and `known_hosts` for OpenSSH's own client."""

    addresses: tuple[Address, ...]
    private_key: str
    folder: Path


@contextlib.contextmanager
def running_hosts(folder: Path, count: int) -> Iterator[Hosts]:
    """Start `count` hosts with their files in the empty `folder`, and stop them at the end."""
    sshd = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    if sshd is None:
        raise SystemExit("sshd is not installed (package openssh-server).")
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # sshd of root insists on it
    host_private, host_line = new_key_pair("bench host")
    private_key, public_line = new_key_pair("bench login")
    _write(folder / "host_key", host_private)
    _write(folder / "login_key", private_key)
    _write(folder / "authorized_keys", public_line + "\n")
    host_key = " ".join(host_line.split()[:2])
    processes: list[subprocess.Popen[bytes]] = []
    addresses: list[Address] = []
    try:
        for at in range(count):
            address = f"127.0.{1 + at // 250}.{2 + at % 250}"
            port = free_port(address)
            config = folder / f"sshd_config.{at}"
            config.write_text(_CONFIG.format(address=address, port=port, folder=folder))
            processes.append(subprocess.Popen([sshd, "-D", "-f", str(config), "-E", str(folder / "sshd.log")]))
            addresses.append(Address(f"host{at}", address, port, getpass.getuser(), host_key))
        for host in addresses:
            _wait_for(host)
        lines = [f"[{host.address}]:{host.port} {host_key}\n" for host in addresses]
        (folder / "known_hosts").write_text("".join(lines))
        yield Hosts(tuple(addresses), private_key, folder)
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(timeout=10)


def _write(path: Path, text: str) -> None:
    path.touch(mode=0o600)
    path.write_text(text)


def free_port(address: str) -> int:
    """The first port from 23000 on at which nobody listens there."""
    for port in range(FIRST_PORT, FIRST_PORT + 500):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind((address, port))
            return port
    raise SystemExit(f"No free port from {FIRST_PORT} on at {address}.")


def _wait_for(host: Address) -> None:
    end_s = time.monotonic() + START_LIMIT_S
    while time.monotonic() < end_s:
        with contextlib.suppress(OSError), socket.create_connection((host.address, host.port), timeout=2) as probe:
            if probe.recv(4) == b"SSH-":
                return
        time.sleep(0.02)
    raise SystemExit(f"The sshd of {host} did not start; see sshd.log.")
