"""The kernel of a host, from `uname -a`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from agents.base.command import Command, script
from agents.base.errors import ParseError
from agents.facts.base import OTHER, Fact, Section, decode, known

SCRIPT = "uname -a"

_UNAME = re.compile(r"(\S{1,60}) (\S{1,255}) (([0-9]{1,6})\.([0-9]{1,6})\S{0,200}) (.{1,1000})", re.ASCII)
_MACHINE = re.compile(r"\b(x86_64|aarch64|i[3-6]86|armv[0-9]\w*|ppc64(?:le)?|s390x|riscv64|loongarch64)\b")


@dataclass(frozen=True)
class Kernel:
    """`version` is the build of the release (its number, options and date)."""

    name: str
    node: str
    release: str
    major: int
    minor: int
    version: str
    machine: str | None

    def stable(self) -> dict[str, str]:
        return known(
            kernel__name=self.name,
            kernel__release=self.release,
            kernel__version=self.version,
            kernel__machine=self.machine,
        )

    def volatile(self) -> dict[str, str]:
        return {"host.name": self.node}


def command() -> Command:
    return script(SCRIPT)


def parse(output: bytes) -> Kernel:
    """The kernel. Raises ParseError when the text is not that of `uname -a`."""
    text = decode(output).strip()
    match = _UNAME.fullmatch(text)
    if not match:
        raise ParseError(f"this is not the output of uname -a: {text[:80]}", line=1)
    machine = _MACHINE.search(match[6])
    version = match[6][: machine.start()].strip() if machine else match[6].strip()
    return Kernel(match[1], match[2], match[3], int(match[4]), int(match[5]), version, machine[1] if machine else None)


FACT = Fact(
    "kernel",
    command(),
    parse,
    (
        Section("kernel.", "Kernel and OS", first=("kernel.release",), says_prefix=True),
        Section("host.", OTHER),
    ),
)
