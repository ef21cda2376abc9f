"""Commands for a remote POSIX shell, and what came back. The only place that quotes."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace

from agents.base.errors import CommandError

TIMEOUT_S = 60.0
NTH_CONNECTION = "benchhub:nth-connection"
"""An argument in whose place a link puts how many times it has connected: so the host can tell a command that comes
late, over a connection that was given up."""


@dataclass(frozen=True)
class Command:
    """One command for a host: an argument vector, never a string that a user could break out of.

    `privileged` asks for root: the session puts `sudo -n` in front when it did not log in as root.
    `stdin` is sent and closed. `timeout_s` bounds the whole command: it ends what hangs, and a host that is slow or
    stands still for half a minute must not feel it.
    """

    argv: tuple[str, ...]
    stdin: bytes = b""
    privileged: bool = False
    timeout_s: float = TIMEOUT_S

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

    def check(self, what: str) -> CommandResult:
        """This result, or CommandError naming `what` when the exit status is not 0."""
        if self.ok:
            return self
        known = self.exit_status is not None
        status = f"exit status {self.exit_status}" if known else "no exit status (the connection ended)"
        last = (self.stderr or self.stdout).decode("utf-8", "replace").strip().splitlines()[-3:]
        detail = f": {' / '.join(last)}" if last else ""
        raise CommandError(f"{what} failed with {status}{detail}")
