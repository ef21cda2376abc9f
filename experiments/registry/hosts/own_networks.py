"""The addresses and networks of the machine (or container) on which this process runs, as the kernel lists them."""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Iterable
from pathlib import Path

from experiments.registry.hosts.spellings import IPAddress

_NET = Path("/proc/net")
_LOCAL = re.compile(r"\|-- ([0-9.]+)\n\s+/32 host LOCAL")


def own_addresses() -> frozenset[IPAddress]:
    """All addresses of the own interfaces; of the own name where there is no /proc."""
    found = {ipaddress.ip_address(text) for text in _LOCAL.findall(_read("fib_trie"))}
    lines = [line.split() for line in _read("if_inet6").splitlines()]
    found |= {ipaddress.IPv6Address(int(line[0], 16)) for line in lines if line}
    if not found:
        try:
            found = {ipaddress.ip_address(str(one[4][0])) for one in socket.getaddrinfo(socket.gethostname(), None)}
        except (OSError, ValueError):
            return frozenset()
    return frozenset(found)


def own_networks(beside: Iterable[IPAddress]) -> list[ipaddress.IPv4Network]:
    """The networks that are directly connected and hold one of these addresses: where the own services live.

    The network of an ordinary office or laboratory, with hosts to be measured in it, is none of them.
    """
    networks = []
    for line in _read("route").splitlines()[1:]:
        fields = line.split()
        if len(fields) > 7 and fields[2] == "00000000" and fields[7] != "00000000":
            address, mask = (int.from_bytes(bytes.fromhex(fields[at])[::-1]) for at in (1, 7))
            networks.append(ipaddress.IPv4Network((address, mask.bit_count())))
    wanted = list(beside)
    return [network for network in networks if any(one in network for one in wanted)]


def _read(name: str) -> str:
    try:
        return (_NET / name).read_text()
    except OSError:
        return ""
