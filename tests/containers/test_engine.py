"""The engine of bin/test-containers: it goes with whoever started it, and nothing of it stays on the machine."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchhub.processes import wait_until
from tests.containers.compose import ROOT
from tests.needs import require_program, require_root

pytestmark = [pytest.mark.containers, pytest.mark.slow]

WHOLE_S = 120
BRIDGED = "docker network create --driver bridge second && docker run -d -p 127.0.0.1:8099:8099 --network second"
STARTED = f"""
set -e
export DOCKER_HOST=unix://$1/docker.sock
sh docker/take-programs /programs sleep >/dev/null
tar -c /programs 2>/dev/null | docker import - sleep >/dev/null
docker run -d sleep /programs/bin/sleep 1000 && {BRIDGED} sleep /programs/bin/sleep 1000
"""


class Machine:
    """A network of its own with nothing in it: an engine there is not in the way of one that runs already."""

    def __init__(self) -> None:
        self.holder = subprocess.Popen(["unshare", "--net", "sleep", "600"])
        own = Path(f"/proc/{os.getpid()}/ns/net").readlink()
        assert wait_until(lambda: Path(f"/proc/{self.holder.pid}/ns/net").readlink() != own, seconds=10)
        self.run("ip", "link", "set", "lo", "up")

    def inside(self, *argv: str) -> list[str]:
        return ["nsenter", f"--net=/proc/{self.holder.pid}/ns/net", *argv]

    def run(self, *argv: str) -> str:
        done = subprocess.run(
            self.inside(*argv), cwd=ROOT, capture_output=True, text=True, check=False, timeout=WHOLE_S
        )
        assert done.returncode == 0, (argv, done.stdout[-2000:], done.stderr[-2000:])
        return done.stdout

    def seen(self, place: Path) -> dict[str, object]:
        """All that an engine in the directory may leave here."""
        tables = {table: self.run("iptables", "-t", table, "-S") for table in ("filter", "nat")}
        outside = [path for path in ("/etc/docker", "/run/docker", "/run/containerd") if Path(path).exists()]
        return {
            **tables,
            "links": self.run("ip", "-o", "link").count("\n"),
            "forwards": self.run("cat", "/proc/sys/net/ipv4/ip_forward"),
            "processes": processes_of(place),
            "mounts": [line for line in Path("/proc/self/mounts").read_text().splitlines() if str(place) in line],
            "groups": [str(path) for path in Path("/sys/fs/cgroup").glob("**/benchhub-engine-*")],
            "outside": outside,
            "directory": place.exists(),
        }


def processes_of(place: Path) -> list[str]:
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = file.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if str(place) in words or "/programs/bin/sleep" in words or "/programs/lib/sleep" in words:
            found.append(words)
    return found


@pytest.fixture
def machine() -> Iterator[Machine]:
    require_root("it makes networks and starts an engine")
    require_program("dockerd", "containerd", "iptables", "docker", "unshare")
    machine = Machine()
    try:
        yield machine
    finally:
        machine.holder.kill()
        machine.holder.wait()


@pytest.mark.parametrize("end", ["stop", "its owner is killed", "its first process is killed, then stop"])
def test_nothing_of_an_engine_stays_however_it_ends(
    machine: Machine, tmp_path_factory: pytest.TempPathFactory, end: str
) -> None:
    place = tmp_path_factory.mktemp("e") / "e"  # names of sockets are short
    before = machine.seen(place)
    owner = subprocess.Popen(["sleep", "600"])
    try:
        machine.run("docker/engine", "start", str(place), str(owner.pid))
        machine.run("sh", "-c", STARTED, "sh", str(place))
        assert len(processes_of(place)) > 4
        assert machine.run("iptables", "-S") != before["filter"]

        if end == "its owner is killed":
            owner.kill()
            owner.wait()
        if end.startswith("its first process"):
            os.kill(int((place / "pid").read_text()), signal.SIGKILL)
        if end.endswith("stop"):
            machine.run("docker/engine", "stop", str(place))
        assert wait_until(lambda: not place.exists(), seconds=60)
    finally:
        owner.kill()
        owner.wait()
    until_gone(place)
    assert machine.seen(place) == before


def until_gone(place: Path) -> None:
    """The one that waits for the owner ends a moment after it."""
    assert wait_until(lambda: processes_of(place) == [], seconds=30), processes_of(place)
