"""The operating system of a host, from /etc/os-release."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from agents.base.command import Command, script
from agents.base.errors import ParseError
from agents.facts.base import Fact, Section, decode, known

SCRIPT = "cat /etc/os-release || cat /usr/lib/os-release"

_LINE = re.compile(r"([A-Z][A-Z0-9_]{0,60})=(.{0,1000})", re.ASCII)


@dataclass(frozen=True)
class OsRelease:
    """`fields` are all variables of the file as they are named there."""

    fields: Mapping[str, str]

    def stable(self) -> dict[str, str]:
        get = self.fields.get
        return known(os__id=get("ID"), os__version=get("VERSION_ID"), os__name=get("PRETTY_NAME") or get("NAME"))

    def volatile(self) -> dict[str, str]:
        return {}


def command() -> Command:
    return script(SCRIPT)


def parse(output: bytes) -> OsRelease:
    """The variables. Raises ParseError when there is neither ID nor NAME."""
    fields = {}
    for line in decode(output).splitlines():
        if match := _LINE.fullmatch(line.strip()):
            fields[match[1]] = _unquoted(match[2])
    if "ID" not in fields and "NAME" not in fields:
        raise ParseError("this is not os-release: neither ID nor NAME in it", line=1)
    return OsRelease(fields)


def _unquoted(value: str) -> str:
    try:
        return "".join(shlex.split(value)[:1])
    except ValueError:
        return value


FACT = Fact(
    "os_release",
    command(),
    parse,
    (Section("os.", "Kernel and OS", first=("os.name",), says_prefix=True),),
)
