"""A hardware profile as people read it: grouped, sizes in binary units, the few facts that lists show."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from agents.facts import FACTS
from agents.facts.base import OTHER, Section
from frontend.shared.templatetags.units import bytes_

SECTIONS: tuple[Section, ...] = tuple(section for fact in FACTS.values() for section in fact.sections)
GROUPS: tuple[tuple[str, tuple[str, ...]], ...] = tuple(
    (heading, tuple(section.prefix for section in SECTIONS if section.heading == heading))
    for heading in dict.fromkeys(section.heading for section in SECTIONS)
    if heading != OTHER
)
FIRST = tuple(key for section in SECTIONS for key in section.first)
"""What people look for first; the rest follows by name."""
LONG = tuple(beginning for section in SECTIONS for beginning in section.folded)
"""Facts that would hide the others; they are shown folded."""

ACRONYMS = {"os": "OS", "thp": "THP", "smt": "SMT", "numa": "NUMA", "id": "ID"}

UNSAID = "—"


@dataclass(frozen=True)
class FactGroup:
    """Facts under one heading; `more` is what stays folded."""

    title: str
    facts: list[tuple[str, str]]
    more: list[tuple[str, str]]


@dataclass(frozen=True)
class PairedFact:
    """A fact of two machines, `UNSAID` where a profile does not say it."""

    label: str
    left: str
    right: str

    @property
    def differs(self) -> bool:
        """What one profile does not say is not known to differ."""
        return self.left != self.right and UNSAID not in (self.left, self.right)


@dataclass(frozen=True)
class PairedGroup:
    title: str
    facts: list[PairedFact]

    @property
    def differing(self) -> int:
        return sum(fact.differs for fact in self.facts)


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
    found.append(_group(OTHER, rest))
    return [group for group in found if group.facts or group.more]


def side_by_side(left: Mapping[str, str], right: Mapping[str, str]) -> list[PairedGroup]:
    """The facts of two machines in the order of `GROUPS`. Of the CPUs' flags each side shows those it alone has."""
    rest = dict.fromkeys([*left, *right])
    for key in [key for key in rest if key.startswith("cpu.core_of.")]:
        del rest[key]
    found = []
    for title, prefixes in (*GROUPS, (OTHER, ("",))):
        mine = [key for key in rest if key.startswith(prefixes)]
        for key in mine:
            del rest[key]
        if mine:
            found.append(PairedGroup(title, [_pair(key, left, right) for key in _ordered(mine)]))
    return found


def _pair(key: str, left: Mapping[str, str], right: Mapping[str, str]) -> PairedFact:
    one, other = left.get(key), right.get(key)
    if key == "cpu.flags" and one is not None and other is not None:
        flags = set(one.split()), set(other.split())
        own = (" ".join(sorted(mine - theirs)) or "none" for mine, theirs in (flags, flags[::-1]))
        return PairedFact("Flags that it alone has", *own)
    return PairedFact(_label(key), *(UNSAID if value is None else _text(key, value) for value in (one, other)))


def _ordered(keys: Iterable[str]) -> list[str]:
    """Those that people look for first, then the others by name, and the long ones last."""
    places = {key: at for at, key in enumerate(FIRST)}
    return sorted(keys, key=lambda key: (key.startswith(LONG), places.get(key, len(places)), key))


def _group(title: str, facts: Mapping[str, str]) -> FactGroup:
    facts = {key: facts[key] for key in (*(key for key in FIRST if key in facts), *sorted(set(facts) - set(FIRST)))}
    shown = [(_label(key), _text(key, value)) for key, value in facts.items() if not key.startswith(LONG)]
    more = [(_label(key), value) for key, value in facts.items() if key.startswith(LONG)]
    return FactGroup(title, shown, more)


def _label(key: str) -> str:
    section = next((one for one in SECTIONS if key.startswith(one.prefix)), None)
    name, _, rest = key.partition(".")
    if section is not None and section.label is not None:
        return section.label(rest)
    words = rest.removesuffix("_bytes").replace("_", " ").replace(".", " ")
    text = f"{name} {words}" if section is not None and section.says_prefix else words
    text = " ".join(ACRONYMS.get(word, word) for word in text.split())
    return text[:1].upper() + text[1:]


def _text(key: str, value: str) -> str:
    return bytes_(float(value)) if key.endswith("_bytes") and value.isdecimal() else value or UNSAID
