"""A lab: some hosts on this machine, the networks between them, and what can go wrong with either."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from lab import claims, processes
from lab.claims import Claim
from lab.host import LabHost
from lab.links import KINDS, SWITCH, Kind, Links, namespaces
from lab.openssh import make_key, sshd_program
from lab.processes import HostProcess, ProcessId
from lab.shell import LabError, run

__all__ = ["DISK_BYTES", "Lab", "LabError", "LabHost", "why_not"]

TOOLS = ("ip", "tc", "nft", "unshare", "nsenter", "setpriv", "pivot_root", "ssh-keygen", "mount")
DISK_BYTES = 512 << 20
MAX_HOSTS = 100
_NAME = re.compile(r"[a-z][a-z0-9-]{0,14}")


def why_not() -> str | None:
    """Why this machine or this user cannot have a lab, in a sentence; None when it can."""
    if os.geteuid() != 0:
        return "The lab makes network, process and mount namespaces, and only root may do that."
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    if missing := [tool for tool in TOOLS if shutil.which(tool, path=path) is None]:
        packages = "iproute2, nftables, openssh-client, util-linux"
        return f"These programs are missing: {', '.join(missing)}. The Debian packages {packages} have them."
    try:
        sshd_program()
    except LabError as error:
        return str(error)
    try:
        namespaces_of_a_host = ("--net", "--mount", "--pid", "--uts", "--ipc", "--fork")
        run(("unshare", *namespaces_of_a_host, "mount", "-t", "tmpfs", "none", "/mnt"))
        run(("unshare", "--net", "nft", "add table netdev benchhub_probe"))
    except LabError as error:
        return f"This machine does not let root make what the lab is made of (a container?): {error}"
    return None


class Lab:
    """Hosts in `directory`. Made anew or found as it is: every method may be called by another process later on.

    `of_this_process`: when this process ends without `down`, the next lab of the machine clears up after it.
    """

    def __init__(
        self,
        directory: Path,
        hosts: Sequence[str] = ("sut", "driver"),
        *,
        cpus: int = 8,
        disk_bytes: int = DISK_BYTES,
        of_this_process: bool = False,
    ) -> None:
        if not 1 <= len(hosts) <= MAX_HOSTS or len(set(hosts)) != len(hosts):
            raise LabError(f"A lab has 1 to {MAX_HOSTS} hosts with different names.")
        if wrong := [name for name in hosts if not _NAME.fullmatch(name) or name == SWITCH]:
            raise LabError(f"A lab host cannot be named {wrong[0]!r}: small letters, digits and -, 15 at most.")
        self.directory = directory.absolute()
        self.names = tuple(hosts)
        self._cpus = cpus
        self._disk_bytes = disk_bytes
        self._owner = processes.this_process() if of_this_process else None

    @classmethod
    def found(cls, directory: Path) -> Lab:
        """The lab that was made in `directory`. LabError when there never was one."""
        try:
            names = (directory / "names").read_text().split()
        except FileNotFoundError:
            raise LabError(f"There is no lab in {directory}; `manage.py lab up` makes one.") from None
        return cls(directory, names)

    # Up and down.

    def up(self) -> None:
        """Everything on and every link whole; quick when it is so already. LabError says why not."""
        if (reason := why_not()) is not None:
            raise LabError(reason)
        self.directory.mkdir(mode=0o755, parents=True, exist_ok=True)
        claim = claims.take(self.directory, self._owner, _clear)
        (self.directory / "names").write_text(" ".join(self.names))
        if not Links(claim, self.names).build():
            self.heal()
        make_key(self.directory / "client_key", "benchhub lab")
        self._boot(host for host in self.hosts() if host.init is None)

    def down(self, *, purge: bool = False) -> None:
        """End all of it, the hosts' disks too; keys stay until `purge`, so that hosts can be pinned for good."""
        if (claim := claims.find(self.directory)) is not None:
            _clear(claim)
            claims.release(claim)
        if purge and self.directory.exists():
            shutil.rmtree(self.directory)

    @property
    def is_claimed(self) -> bool:
        """Whether its networks are there; its hosts may be off all the same."""
        return claims.find(self.directory) is not None

    def hosts(self) -> tuple[LabHost, ...]:
        return tuple(map(self.host, self.names))

    def host(self, name: str) -> LabHost:
        """LabError when there is no such host or the lab is down."""
        links = self._links()
        return LabHost(
            name, links.address(name), links.address(name, "data"), self.directory / name, links.namespace(name)
        )

    def exec(self, host: str, *argv: str, check: bool = True) -> subprocess.CompletedProcess[bytes]:
        return self.host(host).exec(*argv, check=check)

    def processes(self, host: str) -> tuple[HostProcess, ...]:
        return self.host(host).processes()

    # Power.

    def crash(self, host: str) -> None:
        """Power off: no process, no goodbye to anybody."""
        self.cut(host)
        self.host(host).kill()

    def boot(self, host: str) -> None:
        """Power on again: same disk and keys, new boot_id, links whole."""
        self._links().mend(host)
        self._boot([self.host(host)])

    def reboot(self, host: str) -> None:
        """Off and on at once; connections are reset."""
        self.host(host).kill()
        self.boot(host)

    # Links.

    def cut(self, host: str, *, half_open: bool = False, kinds: Sequence[Kind] = KINDS) -> None:
        """Let nothing through to and from the host. `half_open`: it hears everything, and nobody hears it."""
        for kind in kinds:
            if half_open:
                self._links().drop(host, kind, to_host="")
            else:
                self._links().drop(host, kind)

    def cut_data(self) -> None:
        """Hosts do not hear each other; the controller hears all of them."""
        for name in self.names:
            self.cut(name, kinds=("data",))

    def loss(self, percent: float, *, kind: Kind = "data") -> None:
        """Lose this share of all packets of one network, on every host's link, each way."""
        for name in self.names:
            self._links().lose(name, kind, percent)

    def rate(self, bits_per_s: int, *, kind: Kind = "data") -> None:
        for name in self.names:
            self._links().limit(name, kind, bits_per_s)

    def heal(self, host: str | None = None) -> None:
        """Mend the links of one host, or of all."""
        for name in (host,) if host else self.names:
            self._links().mend(name)

    def faults(self) -> tuple[str, ...]:
        """What is broken at present, in words."""
        return tuple(fault for name in self.names for fault in self._links().faults(name))

    # Inside a host.

    def fill_disk(self, host: str, path: str = "/root/.filler", *, leave_bytes: int = 0) -> None:
        self.host(host).fill_disk(path, leave_bytes=leave_bytes)

    def clock(self, host: str, offset_s: int) -> None:
        self.host(host).set_clock(offset_s)

    def _links(self) -> Links:
        if (claim := claims.find(self.directory)) is None:
            raise LabError(f"The lab in {self.directory} is down.")
        return Links(claim, self.names)

    def _boot(self, off: Iterable[LabHost]) -> None:
        booting = tuple(off)
        for host in booting:
            host.make(self._disk_bytes)
            host.start_init(hosts_file=self._hosts_file(host.name), cpus=self._cpus)
        for host in booting:
            host.wait_until_up()

    def _hosts_file(self, name: str) -> str:
        links = self._links()
        lines = ["127.0.0.1 localhost", f"{links.controller} controller"]
        return "\n".join([*lines, *(f"{links.address(other, 'data')} {other}" for other in self.names)]) + "\n"


def _clear(claim: Claim) -> None:
    """Ends a lab by what it left: the processes in its namespaces, its networks, and its disks."""
    there = sorted(name for name in namespaces() if name.startswith(claim.prefix))
    for name in there:
        inode = os.stat(f"/run/netns/{name}").st_ino
        for process in processes.in_namespace("net", inode):
            ProcessId(process.pid, processes.start_ticks(process.pid) or -1).kill()
    Links(claim, ()).remove()
    for line in Path("/proc/self/mounts").read_text().splitlines():
        place = line.split()[1]
        if place.startswith(f"{claim.directory}/") and line.startswith("benchhub-lab "):
            run(("umount", "-l", place))
