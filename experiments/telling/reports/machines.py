"""The machines and versions behind a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from experiments.judging.evidence.roles import member_facts
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
    """Every SUT as its newest run saw it (else as it is known now), the hosts of further members, every driver host."""
    seen: dict[tuple[str, int | None], Mapping[str, str]] = {
        ("SUT", run.sut_id): run.sut_profile.facts for run in compared if run.sut_profile
    }
    for run in compared:
        ids = run.drivers.member_ids if run.drivers else {}
        seen |= {(role, ids[role]): facts for role, facts in member_facts(run).items()}
    found: dict[tuple[str, str], Machine] = {}
    for variant in variants:
        drivers = (("driver", host) for host in variant.drivers.in_order)
        for role, host in (("SUT", variant.sut), *variant.drivers.members.items(), *drivers):
            facts = seen.get((role, host.pk)) or (host.profile.facts if host.profile else {})
            found.setdefault((role, host.name), Machine(role, host.name, machine_facts(facts)))
    return tuple(sorted(found.values(), key=lambda machine: machine.role == "driver"))


def versions_of(compared: Sequence[Run]) -> tuple[tuple[str, str], ...]:
    """Server, load tool, JVM and kernel as the compared runs had them; several values when they differ.

    Of a system also the servers of its further members, by role.
    """
    rows = RunEvent.objects.filter(run__in=[run.pk for run in compared], kind="facts_collected")
    members = sorted({role for run in compared for role in (run.drivers.member_ids if run.drivers else ())})
    tools: dict[str, list[str]] = {role: [] for role in ("sut", "driver", *members)}
    for payload in rows.order_by("run_id", "seq").values_list("payload", flat=True):
        if version := payload.get("tool_version"):
            tools[payload["role"] if payload["role"] in tools else "driver"].append(version)
    found = [("server", tools["sut"]), *((role, tools[role]) for role in members), ("load tool", tools["driver"])]
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
