"""The machines and versions behind a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from experiments.models import Run, RunEvent, Variant

_FACTS = (
    ("CPU", "cpu.model"),
    ("architecture", "cpu.architecture"),
    ("CPUs", "cpu.count"),
    ("CPUs online", "cpu.online"),
    ("governor", "power.governor"),
    ("kernel", "kernel.release"),
    ("system", "os.name"),
)
_CONFIGURED = (("JVM", "jvm.version"), ("kernel of the SUT", "sut.kernel.release"))


@dataclass(frozen=True)
class Machine:
    """A host in its role, and what it is: (label, value)."""

    role: str
    name: str
    facts: tuple[tuple[str, str], ...]


def machines_of(variants: Sequence[Variant], compared: Sequence[Run]) -> tuple[Machine, ...]:
    """Every SUT as its newest run saw it (else as it is known now), and every driver host."""
    seen = {run.sut_id: run.sut_profile.facts for run in compared if run.sut_profile}
    found: dict[tuple[str, str], Machine] = {}
    for variant in variants:
        for role, host in (("SUT", variant.sut), *(("driver", host) for host in variant.drivers.in_order)):
            facts = seen.get(host.pk) if role == "SUT" else None
            facts = facts or (host.profile.facts if host.profile else {})
            found.setdefault((role, host.name), Machine(role, host.name, machine_facts(facts)))
    return tuple(sorted(found.values(), key=lambda machine: machine.role == "driver"))


def versions_of(compared: Sequence[Run]) -> tuple[tuple[str, str], ...]:
    """Server, load tool, JVM and kernel as the compared runs had them; several values when they differ."""
    rows = RunEvent.objects.filter(run__in=[run.pk for run in compared], kind="facts_collected")
    tools: dict[str, list[str]] = {"sut": [], "driver": []}
    for payload in rows.order_by("run_id", "seq").values_list("payload", flat=True):
        if version := payload.get("tool_version"):
            tools["sut" if payload["role"] == "sut" else "driver"].append(version)
    found = [("server", tools["sut"]), ("load tool", tools["driver"])]
    values = [run.config.values for run in compared if run.config]
    found += [(label, [one[path] for one in values if path in one]) for label, path in _CONFIGURED]
    return tuple((label, ", ".join(dict.fromkeys(versions))) for label, versions in found if versions)


def machine_facts(facts: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """What is worth knowing of a hardware profile: (label, value)."""
    found = [(label, facts[key]) for label, key in _FACTS if facts.get(key)]
    memory = facts.get("memory.total_bytes", "")
    if memory.isdecimal():
        found.insert(min(4, len(found)), ("memory", f"{int(memory) / 2**30:.1f} GiB"))
    return tuple(found)
