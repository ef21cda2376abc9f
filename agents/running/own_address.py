"""Where the server under test listens: the address that the load uses, where it is one of the host's own."""

from __future__ import annotations

import ipaddress

from agents.base.command import Command, script
from agents.base.session import Session

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

# getent answers for a name; the kernel's own tables tell the addresses without any tool (/proc/net, proc(5)).
_ADDRESSES = """
[ -z "$1" ] || getent ahosts "$1" 2>/dev/null | sed 's/^/name /'
[ ! -r /proc/net/fib_trie ] || awk '/\\|--/ { at = $2 } /host LOCAL/ { print "own " at }' /proc/net/fib_trie | sort -u
[ ! -r /proc/net/if_inet6 ] || sed 's/^/own6 /' /proc/net/if_inet6
"""


async def own_address(session: Session, address: str) -> str:
    """The address (a number) by which `address` is the host itself; "" when it is not: behind NAT, or an unknown name.

    A server that listens there alone is reached by the load and not by the rest of the network.
    """
    given = _number(address.strip("[]"))
    result = await session.run(addresses_command("" if given else address))
    if not result.ok:
        return ""
    names, own = parse_addresses(result.text)
    return next((str(one) for one in ([given] if given else names) if one.is_loopback or one in own), "")


def addresses_command(name: str) -> Command:
    """Prints what `name` resolves to on the host, where one is given, and the addresses of the host."""
    return script(_ADDRESSES, name)


def parse_addresses(text: str) -> tuple[list[IPAddress], set[IPAddress]]:
    """The addresses that the name stands for, in the resolver's order, and those of the host."""
    names: list[IPAddress] = []
    own: set[IPAddress] = set()
    for line in text.splitlines():
        kind, _, rest = line.partition(" ")
        word = rest.split(" ")[0]
        if kind == "own6":
            word = ":".join(word[at : at + 4] for at in range(0, len(word), 4))
        number = _number(word)
        if number is None:
            continue
        if kind == "name":
            names.append(number)
        else:
            own.add(number)
    return list(dict.fromkeys(names)), own


def _number(text: str) -> IPAddress | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None
