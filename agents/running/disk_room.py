"""Is there room on a host's disks? One question before a run changes anything: what it gives is compared with needs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from agents.base.command import Command, script
from agents.base.errors import ParseError

NEEDED_BYTES, NEEDED_FILES = 32 << 20, 2000
"""What a run writes in the login's home for an instance of the server, with some to spare: it and its logs, outputs."""

# A directory that is still to be made counts as the nearest one above it that is there. `stat -f` is not in POSIX:
# where it is missing the inodes stay unknown.
_SPACE = """
for dir; do
  while [ ! -d "$dir" ] && [ "$dir" != / ]; do up=${dir%/*}; dir=${up:-/}; done
  df -Pk -- "$dir" | tail -n 1
  stat -f -c '%c %d' -- "$dir" 2>/dev/null || echo - -
done
"""
# The name of a file system may hold spaces and digits, and so may the directory where it is mounted.
_DF = re.compile(r".*\s\d+\s+\d+\s+(-?\d+)\s+(?:\d+%|-)\s+(/.*)", re.ASCII)
_INODES = re.compile(r"(\d+|-) (\d+|-)", re.ASCII)


@dataclass(frozen=True)
class Room:
    """What the login may still write below `directory`, on the file system mounted at `mount`.

    `free_inodes` is None where the file system does not count them.
    """

    directory: str
    mount: str
    free_bytes: int
    free_inodes: int | None


@dataclass(frozen=True)
class Need:
    """What will be written below `directory`, at most."""

    directory: str
    size_bytes: int
    inodes: int = 0


def for_instances(home: str, count: int) -> Need:
    """What a run with so many instances of the server writes below the login's home directory."""
    return Need(home, count * NEEDED_BYTES, count * NEEDED_FILES)


def room_command(directories: Sequence[str]) -> Command:
    """Prints two lines for each directory, in one round trip. ValueError: one that is not absolute."""
    for directory in directories:
        if not directory.startswith("/"):
            raise ValueError(f"'{directory}' is not an absolute path")
    return script(_SPACE, *directories)


def parse_room(output: bytes, directories: Sequence[str]) -> tuple[Room, ...]:
    """The room below each of the `directories` that `room_command` was asked for. Raises ParseError."""
    lines = output.decode("utf-8", "replace").splitlines()
    if len(lines) != 2 * len(directories):
        raise ParseError("The free space of a host could not be read.", hint="Does `df -Pk` work there?")
    rooms = []
    for at, directory in enumerate(directories):
        space, inodes = _DF.fullmatch(lines[2 * at]), _INODES.fullmatch(lines[2 * at + 1])
        if not space or not inodes:
            raise ParseError("This is not what df and stat print.", line=2 * at + (2 if space else 1))
        total, free = inodes.groups()
        counted = total not in ("-", "0")  # btrfs and others make inodes as they go and say 0 of 0
        kib = max(0, int(space[1]))  # below zero where only root may still write
        rooms.append(Room(directory, space[2], kib << 10, int(free) if counted else None))
    return tuple(rooms)


def shortage(host: str, found: Sequence[Room], needed: Sequence[Need]) -> str | None:
    """What is missing, in words for a person; None when there is room for everything.

    Needs on one file system add up. KeyError for a directory that was not asked for.
    """
    rooms = {room.directory: room for room in found}
    for mount in dict.fromkeys(rooms[need.directory].mount for need in needed):
        here = [need for need in needed if rooms[need.directory].mount == mount]
        room = rooms[here[0].directory]
        where = " and ".join(dict.fromkeys(need.directory for need in here))
        size_bytes, inodes = sum(need.size_bytes for need in here), sum(need.inodes for need in here)
        if room.free_bytes < size_bytes:
            has, needs = f"{room.free_bytes >> 20} MB free", f"{-(-size_bytes >> 20)} MB: free some space"
        elif room.free_inodes is not None and room.free_inodes < inodes:
            has, needs = f"room for {room.free_inodes} more files", f"room for {inodes}: remove some files"
        else:
            continue
        return f"{host} has {has} under {where} (disk {mount}), a run needs {needs}; nothing was changed."
    return None
