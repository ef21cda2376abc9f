"""Facts about hosts. A new one is a file here, a line in `FACTS`, cases, and a row in the guide."""

from __future__ import annotations

from agents.base.session import Session
from agents.facts import access, cpu_quota, java, kernel, lscpu, memory, network, os_release, power, topology
from agents.facts.base import Fact
from agents.facts.host import HostFacts, collect_facts, facts_command, parse_facts

FACTS: dict[str, Fact] = {
    fact.name: fact
    for fact in (
        access.FACT,
        lscpu.FACT,
        cpu_quota.FACT,
        topology.FACT,
        power.FACT,
        memory.FACT,
        kernel.FACT,
        os_release.FACT,
        network.FACT,
        java.FACT,
    )
}

__all__ = ["FACTS", "HostFacts", "collect", "facts_command", "parse_facts"]


async def collect(session: Session) -> HostFacts:
    """All facts of the host in one round trip. Raises ConnectError, CommandError."""
    return await collect_facts(session, FACTS)
