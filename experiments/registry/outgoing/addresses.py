"""Which addresses a webhook may reach: the public Internet over HTTPS, and what the installation allows beside it.

An address is checked after its name was resolved, and that very address is connected to: a name that resolves to
something else a moment later changes nothing.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from django.conf import settings

from experiments.registry.errors import RequestError
from experiments.registry.hosts.spellings import spelled

MAX_URL = 1000
IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
_TRANSLATED = tuple(
    ipaddress.ip_network(text)
    for text in ("64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32", "::/96", "::ffff:0:0:0/96")
)
"""IPv6 addresses that carry an IPv4 address for a translator or tunnel: they lead anywhere."""
_NOT_PUBLIC = tuple(ipaddress.ip_network(text) for text in ("fec0::/10", "5f00::/16", "3fff::/20"))
"""Of a site, of segment routing, of documents: `is_global` of Python takes them for public ones."""


@dataclass(frozen=True)
class Target:
    """Where a request goes. `path` has the query with it."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def host_header(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        standard = {"https": 443, "http": 80}[self.scheme]
        return host if self.port == standard else f"{host}:{self.port}"


def target_of(url: str) -> Target:
    """The URL in parts. RequestError says what is wrong with it; its name is not looked up."""
    if len(url) > MAX_URL or not url.isascii() or not url.isprintable() or " " in url:
        raise RequestError(f"A URL has at most {MAX_URL} printable ASCII characters.", field="url")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise RequestError(f"This is no URL: {error}.", field="url") from error
    schemes = ("https", "http") if settings.BENCHHUB_WEBHOOK_HTTP else ("https",)
    if parts.scheme not in schemes or not parts.hostname:
        raise RequestError("Give a URL that begins with https:// and a host.", field="url")
    if parts.username is not None or parts.password is not None or parts.fragment:
        raise RequestError("Give a URL without a user, a password and a fragment.", field="url")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    default = 443 if parts.scheme == "https" else 80
    return Target(parts.scheme, parts.hostname, default if port is None else port, path)


def check_url(url: str) -> None:
    """What can be said of a URL before it is used. RequestError when it is none, or an address that is refused."""
    host = target_of(url).host
    address = spelled(host)
    if address is None:
        return  # a name: what it leads to is looked at each time
    try:
        ipaddress.ip_address(host)
    except ValueError:
        raise RequestError(f"{host} is {address}: write the address in its ordinary form.", field="url") from None
    if why := refused([host]):
        raise RequestError(why, field="url")


def refused(addresses: Sequence[str]) -> str:
    """Why these resolved addresses may not be connected to; empty when all of them may."""
    for text in addresses:
        if not _allowed(ipaddress.ip_address(text.partition("%")[0])):
            return (
                f"The name leads to {text}, which is not public. An operator can allow such networks with "
                "BENCHHUB_WEBHOOK_NETWORKS."
            )
    return "" if addresses else "The name leads to no address."


def _allowed(address: IpAddress) -> bool:
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    if any(address in network for network in settings.BENCHHUB_WEBHOOK_NETWORKS):
        return True
    if any(address in network for network in (*_TRANSLATED, *_NOT_PUBLIC)):
        return False
    return address.is_global and not address.is_multicast
