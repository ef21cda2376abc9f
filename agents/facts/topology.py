"""Which core, socket and NUMA node each CPU belongs to, from `lscpu -e`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from agents.base.command import Command, script
from agents.base.errors import ParseError
from agents.facts.base import Fact, Section, decode

SCRIPT = "LC_ALL=C lscpu -a -e=CPU,NODE,SOCKET,CORE,ONLINE"

_INTEGER = re.compile(r"[0-9]{1,9}", re.ASCII)


@dataclass(frozen=True)
class Cpu:
    """One CPU. An offline CPU has no place that the kernel would tell."""

    cpu: int
    online: bool
    node: int | None
    socket: int | None
    core: int | None


@dataclass(frozen=True)
class Topology:
    cpus: tuple[Cpu, ...]

    def stable(self) -> dict[str, str]:
        placed = [c for c in self.cpus if c.core is not None]
        return {f"cpu.core_of.{c.cpu}": f"{_or_dash(c.node)}/{_or_dash(c.socket)}/{c.core}" for c in placed}

    def volatile(self) -> dict[str, str]:
        return {}


def command() -> Command:
    return script(SCRIPT)


def parse(output: bytes) -> Topology:
    """The table of CPUs, whatever further columns it has. Raises ParseError when it has no CPU column."""
    titles, *rows = decode(output).splitlines() or [""]
    columns = {title: i for i, title in enumerate(titles.split())}
    if "CPU" not in columns:
        raise ParseError("this is not the table of lscpu -e: no column CPU", line=1)
    cpus = []
    for number, row in enumerate(rows, start=2):
        cells = row.split()
        if not cells:
            continue
        named = {title: cells[i] for title, i in columns.items() if i < len(cells)}
        cpu = _integer(named.get("CPU"))
        if cpu is None:
            raise ParseError(f"line {number}: '{row.strip()[:80]}' is no row of lscpu -e", line=number)
        node, socket, core = (_integer(named.get(name)) for name in ("NODE", "SOCKET", "CORE"))
        cpus.append(Cpu(cpu, named.get("ONLINE", "yes") in ("yes", "Y"), node, socket, core))
    return Topology(tuple(cpus))


def _integer(text: str | None) -> int | None:
    return int(text) if text and _INTEGER.fullmatch(text) else None


def _or_dash(number: int | None) -> str:
    return "-" if number is None else str(number)


FACT = Fact(
    "topology",
    command(),
    parse,
    (Section("cpu.core_of.", "CPU", folded=("cpu.core_of.",)),),
)
