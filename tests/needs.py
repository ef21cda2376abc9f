"""What a test may need of the machine. Without it the test is skipped, and the reason says what would make it run.

Every reason is "needs WHAT: HOW TO GET IT"; `summary` counts them at the end of a session.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterable

import pytest

AS_ROOT = "run it as root or with sudo"
NOT_ALLOWED = "this machine or container does not allow it"
RIGHTS = NOT_ALLOWED if os.geteuid() == 0 else AS_ROOT
OTHER_DISK = "set TMPDIR to a directory on one"
TOMCAT = "bin/test fetches it; BENCHHUB_TOMCAT_ARCHIVE names another place"

PACKAGES = {
    "ab": "apache2-utils",
    "bsd-csh": "csh",
    "busybox": "busybox-static",
    "cc": "gcc libc6-dev",
    "dropbear": "dropbear-bin",
    "fc-match": "fontconfig",
    "go": "golang-go",
    "h2load": "nghttp2-client",
    "ip": "iproute2",
    "java": "default-jre-headless",
    "javac": "default-jdk-headless",
    "losetup": "mount",
    "mkfs.ext4": "e2fsprogs",
    "mpstat": "sysstat",
    "node": "nodejs",
    "pgbench": "postgresql",
    "redis-benchmark": "redis-tools",
    "setfacl": "acl",
    "setfattr": "attr",
    "sshd": "openssh-server",
    "systemd-analyze": "systemd",
    "unshare": "util-linux",
}
"""The Debian packages of programs that are named otherwise."""
ELSEWHERE = ("jmeter", "k6", "locust", "oha", "vegeta", "wrk2")
"""Load tools that Debian 12 has no package of."""


def marked(there: bool, what: str, how: str) -> pytest.MarkDecorator:
    """Skips what it decorates unless it is `there`."""
    return pytest.mark.skipif(not there, reason=_reason(what, how))


def require(there: object, what: str, how: str) -> None:
    """Skips the test that runs unless it is `there`."""
    if not there:
        pytest.skip(_reason(what, how))


def root(why: str) -> pytest.MarkDecorator:
    return marked(os.geteuid() == 0, f"root ({why})", AS_ROOT)


def require_root(why: str) -> None:
    require(os.geteuid() == 0, f"root ({why})", AS_ROOT)


def program(name: str) -> pytest.MarkDecorator:
    return marked(place(name) is not None, name, _installed_by(name))


def require_program(*names: str) -> None:
    for name in names:
        require(place(name) is not None, name, _installed_by(name))


def place(name: str) -> str | None:
    """Where the program is, also one that only root's PATH names."""
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/local/sbin:/usr/sbin:/sbin")


def own_namespaces(*kinds: str) -> tuple[str, ...]:
    """What a command begins with to have its own namespaces ("mount", "net") and to be root in them.

    Without root the kernel's user namespaces allow that, where the machine does; skips the test where it does not.
    """
    require_program("unshare")
    begins = ("unshare", *(() if os.geteuid() == 0 else ("--map-root-user",)), *(f"--{kind}" for kind in kinds))
    require(_works(begins), f"namespaces ({', '.join(kinds)})", RIGHTS)
    return begins


def summary(reasons: Iterable[str]) -> list[str]:
    """A line for each reason of a skip, the most frequent ones first: how many tests, and what would make them run."""
    counted = Counter(reason.removeprefix("Skipped: ") for reason in reasons)
    return [f"{number:6}  {reason}" for reason, number in sorted(counted.items(), key=lambda one: (-one[1], one[0]))]


@functools.cache
def _works(begins: tuple[str, ...]) -> bool:
    mounts = "mount -t tmpfs none /mnt" if "--mount" in begins else "true"
    return subprocess.run([*begins, "sh", "-c", mounts], capture_output=True, check=False).returncode == 0


def _installed_by(name: str) -> str:
    if name in ELSEWHERE:
        return "put it on the PATH (docs/drivers.md says where it is from)"
    return f"apt-get install {PACKAGES.get(name, name)}"


def _reason(what: str, how: str) -> str:
    return f"needs {what}: {how}"
