"""Which of some paths a login may not look at, in POSIX shell: a closed directory hides what is in it."""

from __future__ import annotations

CLOSED = """
# Says the first part of a path that this login may not go through or read, and nothing when all of it is open.
closed() {
  whole=$1 part=
  while :; do
    rest=${whole#"$part"/}
    [ "$part" != "$whole" ] || { [ -r "$part" ] || printf '%s\\n' "$part"; return 0; }
    if [ -n "$part" ] && [ -d "$part" ] && [ ! -x "$part" ]; then printf '%s\\n' "$part"; return 0; fi
    part=$part/${rest%%/*}
    [ -e "$part" ] || return 0
  done
}
"""


def open_up(directory: str) -> str:
    """The command that lets every login read what is in a directory, and change none of it."""
    return f"sudo chmod -R a+rX {directory}"
