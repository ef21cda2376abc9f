"""All facts of a host, read in one round trip."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from agents.base.command import Command, script
from agents.base.errors import CommandError, ParseError
from agents.base.session import Session
from agents.facts.access import Access
from agents.facts.base import Fact, FactValue, decode
from agents.facts.java import Jdks
from agents.facts.kernel import Kernel
from agents.facts.lscpu import Lscpu
from agents.facts.memory import Memory
from agents.facts.network import Nics
from agents.facts.os_release import OsRelease
from agents.facts.power import Power
from agents.facts.topology import Topology

Value = TypeVar("Value")

MAX_OUTPUT_BYTES = 4 << 20


@dataclass(frozen=True)
class HostFacts:
    """What was found on a host. A fact that the host does not show is absent; `unread` says what could not be read."""

    values: Mapping[str, FactValue] = field(default_factory=dict)
    unread: Mapping[str, str] = field(default_factory=dict)

    @property
    def access(self) -> Access | None:
        return self._of(Access)

    @property
    def cpu(self) -> Lscpu | None:
        return self._of(Lscpu)

    @property
    def topology(self) -> Topology | None:
        return self._of(Topology)

    @property
    def power(self) -> Power | None:
        return self._of(Power)

    @property
    def memory(self) -> Memory | None:
        return self._of(Memory)

    @property
    def kernel(self) -> Kernel | None:
        return self._of(Kernel)

    @property
    def os_release(self) -> OsRelease | None:
        return self._of(OsRelease)

    @property
    def network(self) -> Nics | None:
        return self._of(Nics)

    @property
    def java(self) -> Jdks | None:
        return self._of(Jdks)

    def profile(self) -> dict[str, str]:
        """The stable part as flat `section.path` -> text: the same machine in the same state gives the same profile."""
        return {key: text for value in self.values.values() for key, text in sorted(value.stable().items())}

    def digest(self) -> str:
        """SHA-256 of the profile, in hex."""
        canonical = json.dumps(self.profile(), sort_keys=True, ensure_ascii=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()

    def to_json(self) -> dict[str, str]:
        """Everything, flat and sorted: the profile, what is volatile, and `unread.<fact>` where reading failed."""
        out = self.profile()
        for value in self.values.values():
            out.update(value.volatile())
        out.update({f"unread.{kind}": problem for kind, problem in self.unread.items()})
        return dict(sorted(out.items()))

    def _of(self, kind: type[Value]) -> Value | None:
        return next((value for value in self.values.values() if isinstance(value, kind)), None)


def facts_command(facts: Mapping[str, Fact], mark: str) -> Command:
    """One script that prints every fact after a line `mark kind`; no output can forge a mark that is random."""
    parts = [
        f"echo '{mark} {kind}'\n{fact.command.shell()} 2>/dev/null </dev/null\necho" for kind, fact in facts.items()
    ]
    return script("\n".join([*parts, f"echo '{mark} end'"]), timeout_s=60.0)


def parse_facts(facts: Mapping[str, Fact], mark: str, output: bytes) -> HostFacts:
    """The facts in the output of `facts_command`. Raises CommandError when its end is missing."""
    head, *sections = (b"\n" + output).split(b"\n" + mark.encode() + b" ")
    named = dict(section.partition(b"\n")[::2] for section in sections)
    if b"end" not in named:
        raise CommandError(
            "the host did not print all of its facts",
            hint=f"Its shell must be POSIX sh. It began with: {decode(head).strip()[:200] or 'nothing'}",
        )
    values: dict[str, FactValue] = {}
    unread: dict[str, str] = {}
    for kind, fact in facts.items():
        section = named.get(kind.encode(), b"")
        if not section.strip():
            continue
        try:
            values[kind] = fact.parse(section)
        except ParseError as error:
            unread[kind] = error.message
    return HostFacts(values, unread)


async def collect_facts(session: Session, facts: Mapping[str, Fact]) -> HostFacts:
    """Read these facts of the session's host; raises CommandError when the command fails."""
    mark = f"==fact-{secrets.token_hex(8)}"
    result = await session.run(facts_command(facts, mark), max_output_bytes=MAX_OUTPUT_BYTES)
    return parse_facts(facts, mark, result.check(f"reading the facts of {session.host}").stdout)
