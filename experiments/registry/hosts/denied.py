"""Where no host may be: at the installation itself, its services, and what only the own machine or cloud should reach.

An operator allows networks with BENCHHUB_HOST_NETWORKS (demonstrations and the lab have hosts on the loopback), but
for the ports of the own database and broker, and denies others with BENCHHUB_DENIED_NETWORKS.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterator

from django.conf import settings

from experiments.registry.hosts.own_networks import own_addresses, own_networks
from experiments.registry.hosts.spellings import IPAddress, meant, spelled

_KEPT = tuple(
    ipaddress.ip_network(text)
    for text in (
        "0.0.0.0/8",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "224.0.0.0/4",
        "240.0.0.0/4",
        "::/128",
        "::1/128",
        "64:ff9b:1::/48",  # of translators and tunnels, whose addresses lead anywhere
        "2001::/32",
        "fe80::/10",
        "ff00::/8",
        "100.100.100.200/32",  # metadata of clouds that have it elsewhere than at 169.254.169.254
        "168.63.129.16/32",
        "fd00:ec2::254/128",
        "fd20:ce::254/128",
    )
)
_HERE = ("localhost", "ip6-localhost", "ip6-loopback", "localhost.localdomain")
_ALLOW = "An operator can allow such networks with BENCHHUB_HOST_NETWORKS."


def denial(address: str, port: int, *, look_up: bool = False) -> str:
    """Why no host may be there, or "". Names are looked up only on request, as that may take seconds.

    It says nothing of whether anything answers there.
    """
    name = address.lower().rstrip(".")
    addresses = set(_addresses(name, look_up=look_up))
    for network in settings.BENCHHUB_DENIED_NETWORKS:
        if any(one in network for one in addresses):
            return f"{address} is in the network {network}, which this installation denies."
    for service, service_port in settings.BENCHHUB_OWN_SERVICES:
        theirs = set(_addresses(service, look_up=look_up))
        if name != service and not addresses & theirs:
            continue
        # Where the own machine is allowed, hosts live beside the services: only the port is the service's own.
        if port == service_port or not _all_allowed(addresses or theirs):
            return f"{address} is where BenchHub's own database or broker runs; no host may be there."
    if _all_allowed(addresses):
        return ""
    if any(one in network for one in addresses for network in _KEPT):
        return f"{address} is of this machine, of its link or of its cloud, where no host may be. {_ALLOW}"
    if addresses & own_addresses():
        return f"{address} is the machine on which BenchHub runs; no host may be there. {_ALLOW}"
    if any(one in network for one in addresses for network in own_networks(_service_addresses())):
        return f"{address} is in the network of BenchHub's own database or broker; no host may be there. {_ALLOW}"
    return ""


def _all_allowed(addresses: set[IPAddress]) -> bool:
    allowed = settings.BENCHHUB_HOST_NETWORKS
    return bool(addresses) and all(any(one in network for network in allowed) for one in addresses)


def _service_addresses() -> set[IPAddress]:
    """Those of the database and the broker that are written as addresses, or that the system knows by name."""
    return {one for service, _ in settings.BENCHHUB_OWN_SERVICES for one in _addresses(service, look_up=True)}


def _addresses(name: str, *, look_up: bool) -> Iterator[IPAddress]:
    written = spelled(name)
    if written is not None:
        yield written
        return
    if name in _HERE or name.endswith(".localhost"):
        yield ipaddress.IPv4Address("127.0.0.1")
        return
    if not look_up or not name:
        return
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return  # a name that nobody knows leads nowhere: connecting says so
    for *_, place in found:
        yield meant(ipaddress.ip_address(str(place[0]).partition("%")[0]))
