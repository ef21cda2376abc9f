"""What an address means, however it is written: `2852039166`, `0x7f.1` and `::ffff:127.0.0.1` are addresses of IPv4."""

from __future__ import annotations

import ipaddress
import socket

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

_CARRIERS = tuple(ipaddress.IPv6Network(text) for text in ("64:ff9b::/96", "::/96", "::ffff:0:0:0/96"))
"""Networks of IPv6 whose last 32 bits are an IPv4 address for a translator (RFC 6052, RFC 4291, RFC 2765)."""


def spelled(text: str) -> IPAddress | None:
    """The address that connecting to this text leads to; None when it is a name."""
    address = written(text)
    return None if address is None else meant(address)


def written(text: str) -> IPAddress | None:
    """The address that this text is, an IPv4 one that is written as an IPv6 one as itself; None when it is a name.

    Numbers may be decimal, octal or hexadecimal and fewer than four, as the C library reads them (man inet_aton).
    """
    plain = text.strip().strip("[]").rstrip(".").partition("%")[0]
    try:
        address = ipaddress.ip_address(plain)
        return getattr(address, "ipv4_mapped", None) or address
    except ValueError:
        pass
    if not plain or not plain[0].isdigit() or any(character.isspace() for character in plain):
        return None
    try:
        return ipaddress.IPv4Address(socket.inet_aton(plain))
    except OSError:
        return None


def meant(address: IPAddress) -> IPAddress:
    """The IPv4 address that an IPv6 one stands for, where it does; else the address itself."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    inner = address.ipv4_mapped or address.sixtofour
    if inner is None and int(address) > 1 and any(address in network for network in _CARRIERS):
        inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return inner or address
