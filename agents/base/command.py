"""Commands for a remote POSIX shell, and what came back. The only place that quotes."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, replace

from agents.base.errors import CommandError, ProgramError

TIMEOUT_S = 60.0
NTH_CONNECTION = "benchhub:nth-connection"
"""An argument in whose place a link puts how many times it has connected: so the host can tell a command that comes
late, over a connection that was given up."""

ENDED_BY_OTHERS = (None, 129, 130, 137, 143)
"""Exit statuses of what did not end by itself: nobody knows, or SIGHUP, SIGINT, SIGKILL or SIGTERM ended it."""

STOPPED_HINT = """
It did not end by itself: a cut, a restart of the host, somebody, or the kernel when memory ran out ended it (dmesg on
the host says more). Launch the run again.
""".replace("\n", " ").strip()

_OWN_HINT = """
This was a command of BenchHub's own, not of the recipe: look at the host's disks (df -h), its kernel log (dmesg) and
the rights of the login, then launch the run again.
""".replace("\n", " ").strip()

_HOST_WORDS = (
    (
        r"Read-only file system",
        "A file system of the host is mounted read-only, perhaps after an error of its disk: look at dmesg there.",
    ),
    (r"quota", "The login has used up its quota of the disk: look at quota -s there."),
    (
        r"No space left|no room|I/O error|Input/output error|disk full",
        "The disk is full or broken: look at df -h, df -i and dmesg on the host.",
    ),
    (r"Cannot allocate memory|[Oo]ut of memory", "The host has no memory left: look at free -m and dmesg there."),
    (
        r"[Cc]annot fork|can't fork|Resource temporarily unavailable|Too many open files",
        "The login may start no more processes or open no more files: look at ulimit -a, and at what it runs there.",
    ),
    (
        r"sudo: |a password is required|Permission denied|Operation not permitted",
        "The login lacks a right on the host: check the host on its page, which says what is missing.",
    ),
    (r"not found|No such file or directory", "The host lacks it: check the host on its page, which says what to do."),
)
"""What a host says when it cannot -> where to look; the first that fits counts."""


@dataclass(frozen=True)
class Command:
    """One command for a host: an argument vector, never a string that a user could break out of.

    `privileged` asks for root: the session puts `sudo -n` in front when it did not log in as root.
    `stdin` is sent and closed. `timeout_s` bounds the whole command: it ends what hangs, and a host that is slow or
    stands still for half a minute must not feel it.
    `by_author`: a person wrote its text, so what it says when it fails is the specification's; else it is the host's.
    """

    argv: tuple[str, ...]
    stdin: bytes = b""
    privileged: bool = False
    timeout_s: float = TIMEOUT_S
    by_author: bool = False

    def shell(self) -> str:
        """The command as POSIX shell text, each argument quoted."""
        return shlex.join(self.argv)

    def as_root(self) -> Command:
        return replace(self, privileged=True)


def script(
    text: str, *args: str, stdin: bytes = b"", privileged: bool = False, timeout_s: float = TIMEOUT_S
) -> Command:
    """A POSIX sh script with positional arguments `$1`...; values go in as arguments, never into the text."""
    return Command(("sh", "-c", text, "sh", *args), stdin=stdin, privileged=privileged, timeout_s=timeout_s)


@dataclass(frozen=True)
class CommandResult:
    """What a command left behind. `exit_status` None = Unknown (link cut, killed session); Unknown is never success."""

    exit_status: int | None
    stdout: bytes = b""
    stderr: bytes = b""
    duration_s: float = 0.0
    truncated: bool = False

    @property
    def ok(self) -> bool:
        return self.exit_status == 0

    @property
    def text(self) -> str:
        """Standard output as text; bytes that are not UTF-8 are replaced, so one bad byte loses nothing else."""
        return self.stdout.decode("utf-8", "replace")

    def check(self, what: str, *, by_author: bool = False) -> CommandResult:
        """This result, or CommandError naming `what` when the exit status is not 0; see `Command.by_author`."""
        if self.ok:
            return self
        known = self.exit_status is not None
        status = f"exit status {self.exit_status}" if known else "no exit status (the connection ended)"
        last = (self.stderr or self.stdout).decode("utf-8", "replace").strip().splitlines()[-3:]
        detail = f": {' / '.join(last)}" if last else ""
        raise failure(f"{what} failed with {status}{detail}", self.exit_status, by_author=by_author)


def failure(message: str, exit_status: int | None, *, by_author: bool) -> CommandError:
    """The error of a command that ended like this, with whose it is; `message` has the last words of the command."""
    if exit_status in ENDED_BY_OTHERS:
        return CommandError(message, hint=STOPPED_HINT)
    if by_author:
        return ProgramError(message)
    return CommandError(message, hint=next((h for words, h in _HOST_WORDS if re.search(words, message)), _OWN_HINT))
