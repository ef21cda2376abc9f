"""Facts about hosts. A new one is a file here, a line in `FACTS`, and cases."""

from __future__ import annotations

from agents.base.session import Session
from agents.facts import access, java, kernel, lscpu, memory, network, os_release, power, topology
from agents.facts.base import Fact
from agents.facts.host import HostFacts, collect_facts, facts_command, parse_facts

FACTS: dict[str, Fact] = {
    "access": Fact(access.command(), access.parse),
    "lscpu": Fact(lscpu.command(), lscpu.parse),
    "topology": Fact(topology.command(), topology.parse),
    "power": Fact(power.command(), power.parse),
    "memory": Fact(memory.command(), memory.parse),
    "kernel": Fact(kernel.command(), kernel.parse),
    "os_release": Fact(os_release.command(), os_release.parse),
    "network": Fact(network.command(), network.parse),
    "java": Fact(java.command(), java.parse),
}

__all__ = ["FACTS", "HostFacts", "collect", "facts_command", "parse_facts"]


async def collect(session: Session) -> HostFacts:
    """All facts of the host in one round trip. Raises ConnectError, CommandError."""
    return await collect_facts(session, FACTS)
