"""What every sshd that BenchHub starts has in common: where its program is, its keys, and who may log in."""

from __future__ import annotations

import subprocess
from pathlib import Path

from lab.shell import LabError

SSHD_PLACES = ("/usr/sbin/sshd", "/usr/local/sbin/sshd", "/usr/bin/sshd")

KEY_LOGIN_ONLY = """\
AuthenticationMethods publickey
PubkeyAuthentication yes
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
UsePAM no
UseDNS no
StrictModes no
PrintMotd no
"""
"""Lines of an sshd_config: whoever has the key may log in, and nobody else."""


def make_key(path: Path, comment: str) -> None:
    """A key pair at `path` and `path`.pub, unless there is one."""
    if path.exists():
        return
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", str(path)], check=True, timeout=30
    )


def sshd_program() -> str:
    """The path of this machine's sshd. LabError when there is none."""
    for place in SSHD_PLACES:
        if Path(place).exists():
            return place
    raise LabError("There is no sshd on this machine; install the package openssh-server.")
