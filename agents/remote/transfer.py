"""Whole files to and from a host as single commands: one round trip each, no SFTP subsystem needed."""

from __future__ import annotations

from agents.base.command import Command, script

TIMEOUT_S = 300.0
"""A piece of 4 MB passes a link of 0.1 Mbit/s in that time."""

# A cut link ends `cat` like the end of the data does, so only the length tells a whole file from half of one.
_PUT = """
umask 077
dir=${1%/*}
part="$1.$$.part"
trap 'rm -f -- "$part"' EXIT
cat >"$part" || exit 1
have=$(wc -c <"$part")
[ "$have" -eq "$2" ] || { echo "only $have of $2 bytes arrived" >&2; exit 1; }
chmod -- "$3" "$part" && sync -- "$part" && mv -fT -- "$part" "$1" && sync -- "${dir:-/}"
"""

_GET = """
[ -f "$1" ] || { echo "there is no file $1" >&2; exit 1; }
[ -r "$1" ] || { echo "no permission to read $1" >&2; exit 1; }
tail -c +"$2" -- "$1" | head -c "$3"
"""


def put_command(path: str, data: bytes, *, mode: int = 0o600, timeout_s: float = TIMEOUT_S) -> Command:
    """Writes the whole file `path` (absolute): temporary name beside it, fsync, rename, fsync of the directory."""
    return script(_PUT, _absolute(path), str(len(data)), f"{mode:04o}", stdin=data, timeout_s=timeout_s)


def get_command(path: str, *, offset: int, max_bytes: int, timeout_s: float = TIMEOUT_S) -> Command:
    """Prints at most `max_bytes` of `path` (absolute) from `offset` (from 0); nothing at the end of the file.

    ValueError: a negative offset or size.
    """
    if offset < 0 or max_bytes < 0:
        raise ValueError("offset and max_bytes cannot be negative")
    return script(_GET, _absolute(path), str(offset + 1), str(max_bytes), timeout_s=timeout_s)


def _absolute(path: str) -> str:
    if not path.startswith("/"):
        raise ValueError(f"'{path}' is not an absolute path")
    return path
