"""Two hosts on this machine: OpenSSH servers of the present user on high ports, each with its own key, home and state.

They are for trying BenchHub out. Keys only, loopback addresses only; no root needed.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from benchhub.supervisor import ChildSpec
from lab.openssh import KEY_LOGIN_ONLY, make_key, sshd_program
from lab.shell import LabError

MARK = "BENCHHUB_DEMO_HOST"
"""In the environment of everything that runs on a demo host, so that switching the host off leaves nothing behind."""

FIRST_SUT_PORT = 20222
PLACES = (("sut", "127.0.0.2", FIRST_SUT_PORT), ("driver", "127.0.0.3", 20322))
"""The hosts: name, address and the port that is tried first."""

MAX_PORT_TRIES = 200

_LOGIN = """#!/bin/sh
export HOME='{home}' TMPDIR='{home}/tmp' BENCHHUB_MACHINE_DIR='{home}' {mark}='{mark_value}'
mkdir -p "$TMPDIR"
cd "$HOME" || exit 1
if [ -n "$SSH_ORIGINAL_COMMAND" ]; then exec /bin/sh -c "$SSH_ORIGINAL_COMMAND"; fi
exec /bin/sh -l
"""

_CONFIG = """\
Port {port}
ListenAddress {address}
HostKey {directory}/host_key
AuthorizedKeysFile {directory}/authorized_keys
MaxSessions 32
MaxStartups 32
PidFile none
ForceCommand {directory}/login.sh
SetEnv HOME={home}
"""
"""HOME is set here already: bash reads `~/.bashrc` before each command that comes over sshd, and what people keep in
theirs (pyenv, nvm) takes longer than the commands of a run."""


@dataclass(frozen=True)
class DemoHost:
    """One host: where its files are and where it answers."""

    name: str
    directory: Path
    address: str
    port: int

    @property
    def home(self) -> Path:
        return self.directory / "home"

    @property
    def host_key(self) -> str:
        """The public host key, as it is pinned."""
        return " ".join((self.directory / "host_key.pub").read_text().split()[:2])

    def child(self) -> ChildSpec:
        """The sshd as a child of the supervisor, in the foreground."""
        config = str(self.directory / "sshd_config")
        return ChildSpec(f"host-{self.name}", (sshd_program(), "-D", "-e", "-f", config), stop_turn=3, patience_s=5)


def prepare_hosts(directory: Path) -> tuple[DemoHost, DemoHost, str]:
    """The SUT and the driver host, made when they are not there yet, and the private key that opens both."""
    directory.mkdir(parents=True, exist_ok=True)
    if any(character in str(directory) for character in " '\"\\$`\n"):
        raise LabError(f"{directory} has characters that a shell would read; set BENCHHUB_DATA_DIR to a plain path.")
    client_key = directory / "client_key"
    make_key(client_key, "benchhub demo")
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # sshd of root insists on it
    sut, driver = (_prepare(directory, *place, client_key) for place in PLACES)
    return sut, driver, client_key.read_text()


def hosts_in(directory: Path) -> tuple[DemoHost, ...]:
    """The hosts that `prepare_hosts` made there, as they were left."""
    return tuple(
        DemoHost(name, directory / name, address, int((directory / name / "port").read_text()))
        for name, address, _ in PLACES
        if (directory / name / "port").exists()
    )


def switch_off(host: DemoHost, *, patience_s: float = 5.0) -> None:
    """End everything that runs on the host, as when its power is cut: what outlives SSH must not outlive the demo."""
    deadline = time.monotonic() + patience_s
    number = signal.SIGTERM
    while (left := _processes_of(host)) and time.monotonic() < deadline:
        for pid in left:
            _signal(pid, number)
        time.sleep(0.2)
        number = signal.SIGKILL if time.monotonic() > deadline - patience_s / 2 else signal.SIGTERM
    for pid in _processes_of(host):
        _signal(pid, signal.SIGKILL)


def free_port(address: str, first: int) -> int:
    """The first port from `first` on that nobody listens on. LabError when there is none."""
    for port in range(first, first + MAX_PORT_TRIES):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((address, port))
            except OSError:
                continue
            return port
    raise LabError(f"No free port from {first} on at {address}.")


def kept_port(file: Path, address: str, first: int) -> int:
    """The port that the file keeps while it is free, else the first free one from `first` on, kept from now on."""
    port = int(file.read_text()) if file.exists() else first
    port = port if free_port(address, port) == port else free_port(address, first)
    file.write_text(str(port))
    return port


def _prepare(directory: Path, name: str, address: str, first_port: int, client_key: Path) -> DemoHost:
    place = directory / name
    (place / "home").mkdir(parents=True, exist_ok=True)
    make_key(place / "host_key", f"demo {name}")
    shutil.copy(client_key.with_suffix(".pub"), place / "authorized_keys")
    host = DemoHost(name, place, address, kept_port(place / "port", address, first_port))
    login = place / "login.sh"
    login.write_text(_LOGIN.format(home=host.home, mark=MARK, mark_value=_mark(host)))
    login.chmod(0o700)
    (place / "sshd_config").write_text(
        _CONFIG.format(port=host.port, address=address, directory=place, home=host.home) + KEY_LOGIN_ONLY
    )
    return host


def _mark(host: DemoHost) -> str:
    return str(host.directory)


def _processes_of(host: DemoHost) -> list[int]:
    wanted = f"{MARK}={_mark(host)}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:
            continue  # ended meanwhile, or somebody else's
    return found


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return
    except PermissionError as error:
        print(f"process {pid} of the demo cannot be ended: {error}", file=sys.stderr)
