"""Facts about hosts. A new one is a file here, a line in `FACTS`, and cases."""

from __future__ import annotations

from agents.facts import access, java, kernel, lscpu, memory, network, os_release, power, topology
from agents.facts.base import Fact
from agents.facts.host import HostFacts, collect_facts, facts_command, parse_facts
from agents.session import Session

FACTS: dict[str, Fact] = {
    "access": Fact(access.SCRIPT, access.parse),
    "lscpu": Fact(lscpu.SCRIPT, lscpu.parse),
    "topology": Fact(topology.SCRIPT, topology.parse),
    "power": Fact(power.SCRIPT, power.parse),
    "memory": Fact(memory.SCRIPT, memory.parse),
    "kernel": Fact(kernel.SCRIPT, kernel.parse),
    "os_release": Fact(os_release.SCRIPT, os_release.parse),
    "network": Fact(network.SCRIPT, network.parse),
    "java": Fact(java.SCRIPT, java.parse),
}

__all__ = ["FACTS", "HostFacts", "collect", "facts_command", "parse_facts"]


async def collect(session: Session) -> HostFacts:
    """All facts of the host in one round trip. Raises ConnectError, CommandError."""
    return await collect_facts(session, FACTS)
