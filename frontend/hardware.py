"""A hardware profile as people read it: grouped, sizes in binary units, the few facts that lists show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from frontend.templatetags.units import bytes_

GROUPS = (
    ("CPU", ("cpu.", "hypervisor.", "power.")),
    ("Memory", ("memory.", "thp.")),
    ("Kernel and OS", ("kernel.", "os.")),
    ("Network", ("nic.",)),
    ("Java", ("java.",)),
)
FIRST = (
    "cpu.model",
    "cpu.vendor",
    "cpu.architecture",
    "cpu.count",
    "cpu.online",
    "cpu.offline",
    "cpu.sockets",
    "cpu.cores_per_socket",
    "cpu.threads_per_core",
    "memory.total_bytes",
    "kernel.release",
    "os.name",
)
"""What people look for first; the rest follows by name."""

ACRONYMS = {"os": "OS", "thp": "THP", "smt": "SMT", "numa": "NUMA", "id": "ID"}

LONG = ("cpu.flags", "cpu.vulnerability.", "cpu.core_of.")
"""Facts that would hide the others; they are shown folded."""


@dataclass(frozen=True)
class FactGroup:
    """Facts under one heading; `more` is what stays folded."""

    title: str
    facts: list[tuple[str, str]]
    more: list[tuple[str, str]]


@dataclass(frozen=True)
class Headline:
    """What a list says about a machine; "" where the profile does not say it."""

    architecture: str
    cpu: str
    cpus: str
    memory: str
    kernel: str
    system: str


def headline(facts: Mapping[str, str]) -> Headline:
    online, count = facts.get("cpu.online", ""), facts.get("cpu.count", "")
    memory = facts.get("memory.total_bytes", "")
    return Headline(
        architecture=facts.get("cpu.architecture") or facts.get("kernel.machine", ""),
        cpu=facts.get("cpu.model", ""),
        cpus=f"{count} CPUs, {online} online" if count and online else count,
        memory=bytes_(float(memory)) if memory.isdecimal() else memory,
        kernel=facts.get("kernel.release", ""),
        system=facts.get("os.name", ""),
    )


def groups(facts: Mapping[str, str]) -> list[FactGroup]:
    """All facts, in the order of `GROUPS`; what fits none comes last."""
    rest = dict(facts)
    found = []
    for title, prefixes in GROUPS:
        mine = {key: rest.pop(key) for key in list(rest) if key.startswith(prefixes)}
        found.append(_group(title, mine))
    found.append(_group("Other", rest))
    return [group for group in found if group.facts or group.more]


def _group(title: str, facts: Mapping[str, str]) -> FactGroup:
    facts = {key: facts[key] for key in (*(key for key in FIRST if key in facts), *sorted(set(facts) - set(FIRST)))}
    shown = [(_label(key), _text(key, value)) for key, value in facts.items() if not key.startswith(LONG)]
    more = [(_label(key), value) for key, value in facts.items() if key.startswith(LONG)]
    return FactGroup(title, shown, more)


def _label(key: str) -> str:
    section, _, rest = key.partition(".")
    if section == "java":
        return rest.removeprefix("installed.").replace("path.", "on PATH: ", 1)
    words = rest.removesuffix("_bytes").replace("_", " ").replace(".", " ")
    text = f"{section} {words}" if section in ("thp", "power", "hypervisor", "os", "kernel") else words
    if section == "nic":
        return rest
    text = " ".join(ACRONYMS.get(word, word) for word in text.split())
    return text[:1].upper() + text[1:]


def _text(key: str, value: str) -> str:
    return bytes_(float(value)) if key.endswith("_bytes") and value.isdecimal() else value or "—"
