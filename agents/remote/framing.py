"""How a command goes to a host so that every login shell takes it, and how its output is told from all other. Pure.

A login's shell reads start-up files before the command, and they may print, end the session or put another program in
its place. So the command first says a mark on both of its outputs and says it again, with its exit status, at its end:
what is not between the two is not the command's. A mark is random, and new for each command.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

MAX_NOISE_BYTES = 1000
"""How much of what came before a command is kept for a message."""
KILL_AFTER_S = 5
"""How long a command that is out of time may take to end before it is killed."""

# bash, dash, zsh, ksh, fish, csh, tcsh and busybox agree on what single quotes keep as it is, but for these: csh wants
# a newline and ! quoted even there, fish the backslash, and some of them count letters instead of bytes. csh also
# refuses a word of more than 1023 bytes, so the text comes in pieces, which printf puts together again.
_APART = re.compile(r"[^ -~]|[\\'!]")
_PIECE = re.compile(r"(?:\\0[0-7]{3}|[^\\]){1,200}")
_DECODE = """exec /bin/sh -c 'eval "$(printf %b "$@")"' sh"""

_SAY = "printf '%s\\n' {word} && printf '%s\\n' {word} >&2"

# The command and, at its end, what came of it. Not the shell before it: `timeout` is to be the first process of the
# session, which is the one that a host signals for us. It waits for the command also when that ignores TERM: `timeout`
# kills what is left of its group only for as long as its own child is there.
_TELL = """trap : TERM
mark=$1
shift
"$@"
status=$?
printf '\\n%s%s\\n' "$mark" "$status"
printf '\\n%s%s\\n' "$mark" "$status" >&2
exit "$status\""""

# A host without `timeout` is refused before a run; what tells it so must be able to run there.
_LIMITED = """
set -- timeout -k {kill_after_s} {limit_s}
command -v timeout >/dev/null 2>&1 || set --
exec {sudo} "$@" sh -c {tell} sh {end} {words}
"""


# A loop of small commands would outlive its reader: only the one that happens to write gets SIGPIPE. So the command
# runs in a group of its own, which ends when the channel closes its standard input, or when the host ends the session:
# its signals go to this shell and to `cat`, not to that group. Until `setsid` has made it there is only the process.
_UNTIL_STDIN_CLOSES = """
trap : HUP INT PIPE TERM
setsid "$@" </dev/null &
exec >&- 2>&-
cat >/dev/null
kill -s TERM -- "-$!" || kill -s TERM "$!"
"""


def command_text(words: Sequence[str], mark: str, *, limit_s: int, privileged: bool) -> str:
    """What a POSIX shell runs: `words` ended after `limit_s`, between two marks, as root if `privileged`."""
    parts = {"sudo": "sudo -n --" if privileged else "", "tell": shlex.quote(_TELL), "end": _end(mark)}
    limited = _LIMITED.format(kill_after_s=KILL_AFTER_S, limit_s=limit_s, words=shlex.join(words), **parts)
    return _SAY.format(word=_begin(mark)) + limited


def stream_text(words: Sequence[str], mark: str, *, privileged: bool) -> str:
    """What a POSIX shell runs for a command that runs on: a mark stands before its output, none behind it.

    The command ends with its standard input, or with the session.
    """
    sudo = ("sudo", "-n", "--") if privileged else ()
    text = shlex.join((*sudo, "sh", "-c", _UNTIL_STDIN_CLOSES, "sh", *words))
    return f"{_SAY.format(word=_begin(mark))}\nexec {text}"


def for_any_shell(text: str) -> str:
    """What any login's shell takes, so that a POSIX shell runs this text."""
    encoded = _APART.sub(lambda found: "".join(f"\\0{byte:03o}" for byte in _bytes(found[0])), text)
    return " ".join((_DECODE, *(f"'{piece}'" for piece in _PIECE.findall(encoded))))


def from_input(text: str) -> tuple[str, bytes]:
    """What any login's shell takes, and what comes first on standard input: for a text that is too long for a server.

    `dd` reads to the byte, so that the rest of the input is the command's.
    """
    typed = _bytes(text)
    return f"""exec /bin/sh -c 'eval "$(dd bs=1 count={len(typed)} 2>/dev/null)"'""", typed


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _begin(mark: str) -> str:
    return f"{mark}-begins"


def _end(mark: str) -> str:
    return f"{mark}-ends-"


@dataclass(frozen=True)
class Output:
    """What a command wrote; `noise` is the beginning of what came before it. See `Framed`."""

    data: bytes
    truncated: bool
    begun: bool
    exit_status: int | None
    noise: bytes


class Framed:
    """One output of a command, fed as it comes. `feed` gives what is the command's own; the first `noise` is kept.

    `begun` and `ended`: the marks were seen. `exit_status` is what stands behind the second one. What `runs_on` has no
    second one, so nothing is held back for it.
    """

    def __init__(self, mark: str, *, runs_on: bool = False) -> None:
        self._runs_on = runs_on
        self._begin = f"{_begin(mark)}\n".encode()
        self._end = re.compile(rb"\n" + re.escape(_end(mark).encode()) + rb"([0-9]{1,3})\n")
        self._longest_end = len(_end(mark)) + 5
        self._rest = b""
        self.noise = b""
        self.begun = False
        self.exit_status: int | None = None

    @property
    def ended(self) -> bool:
        return self.exit_status is not None

    def feed(self, chunk: bytes) -> bytes:
        """What of this chunk, and of what was held back before, is the command's output; nothing after its end."""
        if self.ended:
            return b""
        self._rest += chunk
        if not self.begun:
            before, found, after = self._rest.partition(self._begin)
            room = MAX_NOISE_BYTES - len(self.noise)
            if not found:
                keep = len(self._begin) - 1
                self.noise += self._rest[:-keep][: max(0, room)]
                self._rest = self._rest[-keep:]
                return b""
            self.noise += before[: max(0, room)]
            self.begun, self._rest = True, after
        if self._runs_on:
            return self.close()
        if end := self._end.search(self._rest):
            self.exit_status = int(end[1])
            own, self._rest = self._rest[: end.start()], b""
            return own
        own, self._rest = self._rest[: -self._longest_end], self._rest[-self._longest_end :]
        return own

    def close(self) -> bytes:
        """No more comes: what was held back because it might have been a mark."""
        own, self._rest = self._rest, b""
        if self.begun:
            return own
        self.noise = (self.noise + own)[:MAX_NOISE_BYTES]
        return b""
