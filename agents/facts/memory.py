"""The memory of a host, from /proc/meminfo."""

from __future__ import annotations

import re
from dataclasses import dataclass

from agents.base.command import Command, script
from agents.base.errors import ParseError
from agents.facts.base import Fact, Section, decode, known

SCRIPT = "cat /proc/meminfo"

_LINE = re.compile(r"([A-Za-z0-9_()]{1,60}): +([0-9]{1,18})( kB)?", re.ASCII)


@dataclass(frozen=True)
class Memory:
    """Sizes in bytes (the kernel's kB are 1024 bytes); `hugepages_total` is a count."""

    total_bytes: int
    free_bytes: int | None = None
    available_bytes: int | None = None
    cached_bytes: int | None = None
    swap_total_bytes: int | None = None
    hugepages_total: int | None = None
    hugepage_size_bytes: int | None = None

    def stable(self) -> dict[str, str]:
        return known(
            memory__total_bytes=self.total_bytes,
            memory__swap_total_bytes=self.swap_total_bytes,
            memory__hugepages_total=self.hugepages_total,
            memory__hugepage_size_bytes=self.hugepage_size_bytes,
        )

    def volatile(self) -> dict[str, str]:
        return known(
            memory__free_bytes=self.free_bytes,
            memory__available_bytes=self.available_bytes,
            memory__cached_bytes=self.cached_bytes,
        )


def command() -> Command:
    return script(SCRIPT)


def parse(output: bytes) -> Memory:
    """The memory. Raises ParseError when there is no MemTotal."""
    found = {
        match[1]: int(match[2]) * (1024 if match[3] else 1)
        for line in decode(output).splitlines()
        if (match := _LINE.fullmatch(line.strip()))
    }
    if "MemTotal" not in found:
        raise ParseError("this is not /proc/meminfo: no MemTotal in it", line=1)
    return Memory(
        found["MemTotal"],
        found.get("MemFree"),
        found.get("MemAvailable"),
        found.get("Cached"),
        found.get("SwapTotal"),
        found.get("HugePages_Total"),
        found.get("Hugepagesize"),
    )


FACT = Fact(
    "memory",
    command(),
    parse,
    (Section("memory.", "Memory", first=("memory.total_bytes",)),),
)
