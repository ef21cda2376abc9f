"""A lab without root: two sshd of the present user on loopback addresses. Processes, settings and disk are shared."""

from __future__ import annotations

import subprocess
from pathlib import Path

from lab.demo_hosts import PLACES, DemoHost, hosts_in, prepare_hosts, switch_off
from lab.openssh import sshd_program
from lab.processes import ProcessId, start_ticks


def up(directory: Path) -> tuple[DemoHost, ...]:
    """Both hosts, started where they are not running yet."""
    if len(found := running(directory)) == len(PLACES):
        return found
    down(directory)
    hosts = prepare_hosts(directory)[:2]
    for host in hosts:
        command = (sshd_program(), "-D", "-f", str(host.directory / "sshd_config"), "-E", str(host.directory / "log"))
        process = subprocess.Popen(command, start_new_session=True, stdin=subprocess.DEVNULL, cwd="/")
        _pid_file(host).write_text(f"{process.pid} {start_ticks(process.pid) or 0}")
    return hosts


def down(directory: Path) -> None:
    """End both sshd and everything that was started over them."""
    for host in hosts_in(directory):
        if (sshd := _sshd(host)) is not None:
            sshd.kill()
        _pid_file(host).unlink(missing_ok=True)
        switch_off(host)


def running(directory: Path) -> tuple[DemoHost, ...]:
    """The hosts whose sshd runs."""
    return tuple(host for host in hosts_in(directory) if _sshd(host) is not None)


def _sshd(host: DemoHost) -> ProcessId | None:
    try:
        process = ProcessId(*map(int, _pid_file(host).read_text().split()))
    except (FileNotFoundError, ValueError):
        return None
    return process if process.alive else None


def _pid_file(host: DemoHost) -> Path:
    return host.directory / "pid"
