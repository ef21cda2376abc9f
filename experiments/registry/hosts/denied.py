"""Where no host may be: at the installation's own database and broker, or in a network that its operator denies."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterator

from django.conf import settings

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address


def denial(address: str, port: int, *, look_up: bool = False) -> str:
    """Why no host may be there, or "". Names are looked up only on request, as that may take seconds."""
    name = address.lower().rstrip(".")
    addresses = set(_addresses(name, look_up=look_up))
    for network in settings.BENCHHUB_DENIED_NETWORKS:
        if any(one in network for one in addresses):
            return f"{address} is in the network {network}, which this installation denies."
    for service, service_port in settings.BENCHHUB_OWN_SERVICES:
        theirs = set(_addresses(service, look_up=look_up))
        if name != service and not addresses & theirs:
            continue
        # On the loopback live the hosts of a demonstration beside the services: only the port is the service's own.
        local = any(one.is_loopback for one in addresses | theirs) or name == "localhost"
        if not local or port == service_port:
            return f"{address} is where BenchHub's own database or broker runs; no host may be there."
    return ""


def _addresses(name: str, *, look_up: bool) -> Iterator[IPAddress]:
    try:
        yield _plain(name.strip("[]"))
        return
    except ValueError:
        pass
    if not look_up:
        return
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return  # a name that nobody knows leads nowhere: connecting says so
    for *_, place in found:
        yield _plain(str(place[0]).partition("%")[0])


def _plain(text: str) -> IPAddress:
    """An IPv4 address that is written as an IPv6 one is the IPv4 address."""
    address = ipaddress.ip_address(text)
    return getattr(address, "ipv4_mapped", None) or address
