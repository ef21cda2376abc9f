"""A machine as somebody describes it who has no login for BenchHub there: what a few commands printed, in one text."""

from __future__ import annotations

import json
import re

from agents.base.errors import ParseError
from agents.facts import kernel, lscpu, memory, os_release
from agents.facts.base import FactValue
from agents.facts.host import HostFacts

COMMANDS = "lscpu; uname -a; cat /etc/os-release /proc/meminfo"
"""What is to be run on the machine; any part of it is enough."""

MAX_CHARS = 200_000

_UNAME = re.compile(r"^(?:Linux|SunOS|FreeBSD|Darwin) .+$", re.MULTILINE)
_LSCPU = re.compile(r"^\s*(?:Architecture|CPU\(s\)):", re.MULTILINE)
_MEMORY = re.compile(r"^MemTotal:", re.MULTILINE)
_OS = re.compile(r"^(?:ID|NAME)=", re.MULTILINE)


def read_machine(text: str) -> HostFacts:
    """The facts in the output of `COMMANDS` (lscpu, uname, /proc/meminfo, os-release), or of some, in any order.

    Raises ParseError when there are none.
    """
    values: dict[str, FactValue] = {}
    processors, rest = _split_json(text)
    if processors or _LSCPU.search(rest):
        values["lscpu"] = lscpu.parse((processors or rest).encode())
    if _MEMORY.search(rest):
        values["memory"] = memory.parse(rest.encode())
    if found := _UNAME.search(rest):
        values["kernel"] = kernel.parse(found[0].encode())
    if _OS.search(rest):
        values["os_release"] = os_release.parse(rest.encode())
    if not values:
        raise ParseError(f"this describes no machine; give what this prints on it: {COMMANDS}", line=1)
    return HostFacts(values)


def _split_json(text: str) -> tuple[str, str]:
    """The JSON of `lscpu -J` at the beginning, "" when there is none, and what follows it."""
    begun = text.lstrip()
    if not begun.startswith("{"):
        return "", text
    try:
        _, end = json.JSONDecoder().raw_decode(begun)
    except (ValueError, RecursionError) as error:
        raise ParseError(f"the JSON of lscpu cannot be read: {error}", line=getattr(error, "lineno", 1)) from error
    return begun[:end], begun[end:]
