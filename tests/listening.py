"""Where processes listen, from the kernel's own tables (what `ss -ltnp` shows)."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Iterator
from pathlib import Path


def listening(processes: set[int]) -> set[tuple[str, int]]:
    """Address and port of every TCP socket on which one of the processes listens."""
    inodes = {inode for pid in processes for inode in _sockets(pid)}
    return {(address, port) for address, port, inode in _table() if inode in inodes}


def marked(mark: str) -> set[int]:
    """The processes that have this text in their environment."""
    found = set()
    for place in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark.encode() in place.read_bytes():
                found.add(int(place.parent.name))
        except OSError:
            continue  # it ended, or is none of ours
    return found


def _sockets(pid: int) -> Iterator[str]:
    try:
        for place in Path(f"/proc/{pid}/fd").iterdir():
            target = os.readlink(place)
            if target.startswith("socket:["):
                yield target[8:-1]
    except OSError:
        return


def _table() -> Iterator[tuple[str, int, str]]:
    for name in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]:
            _, local, _, state, *rest = line.split()
            if state != "0A":
                continue
            address, _, port = local.partition(":")
            words = [bytes.fromhex(address[at : at + 8])[::-1] for at in range(0, len(address), 8)]
            found = ipaddress.ip_address(b"".join(words))
            plain = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None  # how Java writes IPv4
            yield str(plain or found), int(port, 16), rest[5]
