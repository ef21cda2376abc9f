"""Process 1 of a lab host: makes the host's own view of the machine, starts its sshd, reaps what is left behind.

It runs inside new pid, mount, uts and ipc namespaces, with nothing but Python's own library, and sleeps nearly always.
"""

from __future__ import annotations

import ctypes
import json
import os
import pwd
import resource
import select
import shutil
import signal
import socket
import subprocess
import sys
import uuid
from dataclasses import dataclass
from pathlib import Path

from lab.fake_kernel import FakeKernel

PLAIN_USER = "bench"
OVERLAYS = ("usr", "etc", "opt")
BIN_FOLDERS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
OPEN_FILES = 1 << 20

_READ_ONLY, _NO_SUID, _REMOUNT, _BIND, _RECURSIVE, _PRIVATE = 1, 2, 32, 4096, 16384, 1 << 18

# `date` is what tells the time to BenchHub; the clock itself belongs to the machine.
_DATE = """#!/bin/sh
# The clock of this lab host is /etc/lab-clock seconds ahead of the machine's, for those who ask `date`.
offset=$(cat /etc/lab-clock 2>/dev/null)
[ "${offset:-0}" != 0 ] || exec /usr/bin/date "$@"
now=$(/usr/bin/date +%s.%N)
exec /usr/bin/date -d "@$((${now%.*} + offset)).${now#*.}" "$@"
"""


@dataclass(frozen=True)
class Plan:
    """What the controller tells a host's init, in the file `plan` of `folder`; beside it are the disk and `init`."""

    name: str
    hosts_file: str
    cpus: int
    sshd: tuple[str, ...]


def main() -> None:
    folder = Path(sys.argv[1])
    plan = Plan(**json.loads((folder / "plan").read_text()))
    fields = Path("/proc/self/stat").read_text().split()  # still the machine's /proc: the number that it knows us by
    (folder / "init.part").write_text(f"{fields[0]} {fields[21]}\n")
    (folder / "init.part").rename(folder / "init")
    socket.sethostname(plan.name)
    kernel = _make_root(folder / "disk", plan)
    _write_files(plan)
    _open_files()
    wake, woken = socket.socketpair()
    woken.setblocking(False)
    signal.set_wakeup_fd(woken.fileno())
    signal.signal(signal.SIGCHLD, lambda *_: None)
    notices = kernel.watch()
    subprocess.run(plan.sshd, check=True)
    while True:
        ready, _, _ = select.select([wake.fileno(), notices], [], [])
        if wake.fileno() in ready:
            wake.recv(4096)
            _reap()
        if notices in ready:
            kernel.react()


def _make_root(disk: Path, plan: Plan) -> FakeKernel:
    _mount(None, Path("/"), flags=_RECURSIVE | _PRIVATE)
    root = disk / "fs"
    root.mkdir(exist_ok=True)
    _mount(root, root, flags=_BIND)
    for name, mode in (("root", 0o700), ("tmp", 0o1777), ("var", 0o755)):
        if name == "tmp":
            shutil.rmtree(root / name, ignore_errors=True)
        (root / name).mkdir(exist_ok=True)
        (root / name).chmod(mode)
    for name in ("home", "srv", "mnt", "proc", "sys", "dev", "run", *OVERLAYS):
        (root / name).mkdir(exist_ok=True)
    for name in BIN_FOLDERS:
        if (real := Path("/", name)).is_symlink():
            if not (root / name).is_symlink():
                (root / name).symlink_to(real.readlink())
        elif real.is_dir():
            (root / name).mkdir(exist_ok=True)
            _mount(real, root / name, flags=_BIND | _RECURSIVE)
    for name in OVERLAYS:
        upper, work = disk / "over" / name, disk / "work" / name
        upper.mkdir(parents=True, exist_ok=True)
        work.mkdir(parents=True, exist_ok=True)
        _mount("overlay", root / name, "overlay", data=f"lowerdir=/{name},upperdir={upper},workdir={work}")
    _make_var(root / "var")
    _mount("tmpfs", root / "run", "tmpfs", data="mode=755,size=256m")  # 512 CPUs are 20,000 files
    for name in ("sshd", "lock", "lab"):
        (root / "run" / name).mkdir()
    _make_dev(root / "dev")
    _mount("proc", root / "proc", "proc")
    _mount("sysfs", root / "sys", "sysfs")
    _mount(None, root / "sys", flags=_REMOUNT | _BIND | _READ_ONLY)
    kernel = FakeKernel(root / "run/lab", plan.cpus)
    kernel.build()
    boot_id = root / "run/lab/boot_id"
    boot_id.write_text(f"{uuid.uuid4()}\n")
    covers = {source: root / target.relative_to("/") for source, target in kernel.mounts().items()}
    sysctl = root / "run/lab/sysctl/kernel/random"
    sysctl.mkdir()
    for source, target in covers.items():
        _mount(source, target, flags=_BIND)
    random = root / "proc/sys/kernel/random"
    _mount(Path("/proc/sys/kernel/random"), random, flags=_BIND)
    _mount(None, random, flags=_REMOUNT | _BIND | _READ_ONLY)
    _mount(boot_id, random / "boot_id", flags=_BIND)
    if (trigger := root / "proc/sysrq-trigger").exists():  # it would stop the machine
        _mount(root / "dev/null", trigger, flags=_BIND)
    os.chdir(root)
    (root / "mnt/.old").mkdir(exist_ok=True)
    subprocess.run(("pivot_root", ".", "mnt/.old"), check=True)
    os.chdir("/")
    subprocess.run(("umount", "-l", "/mnt/.old"), check=True)
    Path("/mnt/.old").rmdir()
    kernel.moved(Path("/run/lab"))
    return kernel


def _make_var(var: Path) -> None:
    """The host's own, not the machine's: nobody else's data is there. Which packages there are is the machine's."""
    for name in ("cache", "lib/dpkg", "log", "spool", "tmp", "empty"):
        (var / name).mkdir(parents=True, exist_ok=True)
    (var / "tmp").chmod(0o1777)
    if not (var / "run").is_symlink():
        (var / "run").symlink_to("/run")
    if (packages := Path("/var/lib/dpkg")).is_dir():
        _mount(packages, var / "lib/dpkg", flags=_BIND)
        _mount(None, var / "lib/dpkg", flags=_REMOUNT | _BIND | _READ_ONLY)


def _make_dev(dev: Path) -> None:
    _mount("tmpfs", dev, "tmpfs", flags=_NO_SUID, data="mode=755,size=64k")
    for name in DEVICES:
        (dev / name).touch()
        _mount(Path("/dev", name), dev / name, flags=_BIND)
    for name in ("pts", "shm"):
        (dev / name).mkdir()
    _mount("devpts", dev / "pts", "devpts", data="newinstance,ptmxmode=0666,mode=620")
    _mount("tmpfs", dev / "shm", "tmpfs", data="mode=1777,size=64m")
    for name, target in {"ptmx": "pts/ptmx", "fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1"}.items():
        (dev / name).symlink_to(target)
    (dev / "stderr").symlink_to("fd/2")


def _write_files(plan: Plan) -> None:
    Path("/etc/hosts").write_text(plan.hosts_file)
    Path("/etc/hostname").write_text(f"{plan.name}\n")
    resolver = Path("/etc/resolv.conf")
    resolver.unlink(missing_ok=True)  # it may be a link to somewhere that is not here
    resolver.write_text("")  # no name server: an unknown name is told at once
    date = Path("/usr/local/bin/date")
    date.parent.mkdir(exist_ok=True)
    date.write_text(_DATE)
    date.chmod(0o755)
    _add_plain_user()
    if (sudoers := Path("/etc/sudoers.d")).is_dir():
        (sudoers / PLAIN_USER).write_text(f"{PLAIN_USER} ALL=(ALL) NOPASSWD: ALL\n")
        (sudoers / PLAIN_USER).chmod(0o440)


def _add_plain_user() -> None:
    known = {entry.pw_name: entry for entry in pwd.getpwall()}
    if PLAIN_USER not in known:
        taken = {entry.pw_uid for entry in known.values()}
        uid = next(number for number in range(1000, 60_000) if number not in taken)
        _append("/etc/passwd", f"{PLAIN_USER}:x:{uid}:{uid}::/home/{PLAIN_USER}:/bin/bash")
        _append("/etc/group", f"{PLAIN_USER}:x:{uid}:")
    shadow = Path("/etc/shadow")
    others = [line for line in shadow.read_text().splitlines() if line.partition(":")[0] not in ("root", PLAIN_USER)]
    # No password opens these accounts, and none locks them: sshd refuses locked ones.
    shadow.write_text("\n".join(["root:*:1::::::", f"{PLAIN_USER}:*:1::::::", *others]) + "\n")
    entry = pwd.getpwnam(PLAIN_USER)
    home = Path(entry.pw_dir)
    home.mkdir(parents=True, exist_ok=True)
    os.chown(home, entry.pw_uid, entry.pw_gid)


def _append(path: str, line: str) -> None:
    with Path(path).open("a") as file:
        file.write(f"{line}\n")


def _open_files() -> None:
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (1024, OPEN_FILES))
    except (ValueError, PermissionError):  # the machine's own limit is lower and may not be raised
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (1024, hard))


def _reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass
    except ChildProcessError:
        return


def _mount(source: Path | str | None, target: Path, kind: str = "", *, flags: int = 0, data: str = "") -> None:
    words = [os.fsencode(word) if word else None for word in (source, target, kind)]
    if _libc.mount(*words, ctypes.c_ulong(flags), os.fsencode(data)) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{target} cannot be mounted: {os.strerror(number)}")


_libc = ctypes.CDLL(None, use_errno=True)
