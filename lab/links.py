"""The networks of a lab: a switch of its own joins controller and hosts, and is where links are broken.

Faults are rules at the receiving ends (of the switch and of the host), so that whoever sends gets no error: silence, as
behind a dead cable. No rule is ever put into the machine's own network.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Literal

from lab.claims import Claim
from lab.shell import LabError, run

Kind = Literal["management", "data"]
KINDS: tuple[Kind, Kind] = ("management", "data")
SWITCH = "switch"
DEVICE: dict[Kind, str] = {"management": "mgmt0", "data": "data0"}
_PORT: dict[Kind, str] = {"management": "m", "data": "d"}
_FIRST_HOST = {"management": 10, "data": 138}

ALL = "meta protocol { ip, ip6 } drop"
"""ARP goes on: a neighbour that cannot be resolved would be an error, and told at once."""


class Links:
    """Builds, breaks and mends the two networks of a lab. Hosts are known by their place, from 0."""

    def __init__(self, claim: Claim, hosts: Sequence[str]) -> None:
        self._claim = claim
        self._hosts = tuple(hosts)

    def namespace(self, host: str) -> str:
        """The name of the host's network namespace."""
        return f"{self._claim.prefix}{host}"

    def address(self, host: str, kind: Kind = "management") -> str:
        return f"{self._claim.network}.{_FIRST_HOST[kind] + self._place(host)}"

    @property
    def controller(self) -> str:
        return f"{self._claim.network}.1"

    def build(self) -> bool:
        """Make the networks; False when they were there already. LabError in the words of `ip`."""
        there = namespaces()
        names = [self.namespace(name) for name in (SWITCH, *self._hosts)]
        if all(name in there for name in names):
            return False
        self.remove()
        self._ip(None, [f"netns add {name}" for name in names])
        switch = self.namespace(SWITCH)
        self._ip(switch, ["link set lo up", *(f"link add {k} type bridge" for k in KINDS)])
        self._ip(
            None,
            [
                f"link add {self._claim.interface} type veth peer name uplink netns {switch}",
                f"addr add {self.controller}/25 dev {self._claim.interface}",
                f"link set {self._claim.interface} up",
            ],
        )
        ports = ["link set uplink master management up", *(f"link set {kind} up" for kind in KINDS)]
        for host in self._hosts:
            for kind in KINDS:
                port = self._port(host, kind)
                ports += [
                    f"link add {port} type veth peer name {DEVICE[kind]} netns {self.namespace(host)}",
                    f"link set {port} master {kind} up",
                ]
        self._ip(switch, ports)
        for host in self._hosts:
            lines = ["link set lo up"]
            for kind in KINDS:
                lines += [f"addr add {self.address(host, kind)}/25 dev {DEVICE[kind]}", f"link set {DEVICE[kind]} up"]
            self._ip(self.namespace(host), lines)
        return True

    def remove(self) -> None:
        """Takes everything away that has the lab's names; interfaces go with their namespaces."""
        for name in [name for name in namespaces() if name.startswith(self._claim.prefix)]:
            run(("ip", "netns", "del", name))
        with contextlib.suppress(LabError):  # it went with the switch, or never was
            run(("ip", "link", "del", self._claim.interface))

    def drop(self, host: str, kind: Kind, *, to_host: str = ALL, from_host: str = ALL) -> None:
        """Put rules on both ends of the host's link; an empty one lets everything through."""
        switch, port = self.namespace(SWITCH), self._port(host, kind)
        self._rule(switch, port, from_host)
        self._rule(self.namespace(host), DEVICE[kind], to_host)

    def lose(self, host: str, kind: Kind, percent: float) -> None:
        """Drop this share of the packets, each way."""
        rule = f"meta protocol ip numgen random mod 1000 < {round(percent * 10)} drop"
        self.drop(host, kind, to_host=rule, from_host=rule)

    def limit(self, host: str, kind: Kind, rate_bits_per_s: int) -> None:
        """At most this much each way; what does not fit waits up to 200 ms, then it is dropped."""
        shape = ("root", "tbf", "rate", f"{rate_bits_per_s}bit", "burst", "16kb", "latency", "200ms")
        for namespace, device in self._ends(host, kind):
            run(("ip", "netns", "exec", namespace, "tc", "qdisc", "replace", "dev", device, *shape))

    def mend(self, host: str) -> None:
        """No more faults on either link of the host."""
        for kind in KINDS:
            self.drop(host, kind, to_host="", from_host="")
            for namespace, device in self._ends(host, kind):
                if "tbf" in run(("tc", "-n", namespace, "qdisc", "show", "dev", device)):
                    run(("tc", "-n", namespace, "qdisc", "del", "dev", device, "root"))

    def faults(self, host: str) -> tuple[str, ...]:
        """The rules on the host's links, as nft shows them."""
        found = []
        for kind in KINDS:
            for namespace, device in self._ends(host, kind):
                shown = run(("ip", "netns", "exec", namespace, "nft", "list", "ruleset"))
                if f'device "{device}"' in shown:
                    found.append(f"{kind} link, {'from' if device != DEVICE[kind] else 'to'} {host}")
                if "tbf" in (limit := run(("tc", "-n", namespace, "qdisc", "show", "dev", device))):
                    found.append(f"{kind} link: {limit.strip().partition('rate ')[2].split()[0]}")
        return tuple(found)

    def _place(self, host: str) -> int:
        """LabError when there is no such host."""
        if host not in self._hosts:
            raise LabError(f"There is no host {host}; there are {', '.join(self._hosts)}.")
        return self._hosts.index(host)

    def _port(self, host: str, kind: Kind) -> str:
        return f"{_PORT[kind]}{self._place(host)}"

    def _ends(self, host: str, kind: Kind) -> tuple[tuple[str, str], ...]:
        return (self.namespace(SWITCH), self._port(host, kind)), (self.namespace(host), DEVICE[kind])

    def _rule(self, namespace: str, device: str, rule: str) -> None:
        table = f"table netdev lab_{device}"
        text = f"{table}\ndelete {table}\n"  # declared first, so that it can be deleted also when it was not there
        if rule:
            text += (
                f"{table} {{ chain in {{ type filter hook ingress device {device} priority 0; policy accept; "
                f"{rule}; }}; }}\n"
            )
        run(("ip", "netns", "exec", namespace, "nft", "-f", "-"), stdin=text)

    def _ip(self, namespace: str | None, lines: Sequence[str]) -> None:
        run(("ip", *(("-n", namespace) if namespace else ()), "-batch", "-"), stdin="\n".join(lines) + "\n")


def namespaces() -> set[str]:
    """The names of all network namespaces of this machine."""
    return {line.split()[0] for line in run(("ip", "netns", "list")).splitlines() if line}
