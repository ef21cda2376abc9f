"""Who we are on a host and what we may do: user, sudo, limits, boot identity, clock."""

from __future__ import annotations

import re
from dataclasses import dataclass

from agents.base.command import Command, script
from agents.base.errors import ParseError
from agents.facts.base import OTHER, Fact, Section, decode, known

SCRIPT = """\
echo "clock=$(date +%s.%N)"
echo "user=$(id -un)"
echo "uid=$(id -u)"
if sudo -n true >/dev/null 2>&1; then echo sudo=yes; else echo sudo=no; fi
echo "nofile_soft=$(ulimit -Sn)"
echo "nofile_hard=$(ulimit -Hn)"
echo "boot_id=$(cat /proc/sys/kernel/random/boot_id)"
true"""

_LINE = re.compile(r"([a-z_]{1,30})=(.{0,200})", re.ASCII)
_CLOCK = re.compile(r"[0-9]{9,12}\.[0-9]{9}", re.ASCII)
_INTEGER = re.compile(r"[0-9]{1,18}", re.ASCII)


@dataclass(frozen=True)
class Access:
    """`clock_s` is the host's time (Unix) when this was read, None where its date knows no fractions of a second.

    `nofile_soft` and `nofile_hard` are counts of open files, None also for "unlimited".
    """

    user: str
    uid: int | None = None
    sudo: bool = False
    clock_s: float | None = None
    boot_id: str | None = None
    nofile_soft: int | None = None
    nofile_hard: int | None = None

    def stable(self) -> dict[str, str]:
        return {}

    def volatile(self) -> dict[str, str]:
        return known(
            access__user=self.user,
            access__uid=self.uid,
            access__sudo="yes" if self.sudo else "no",
            access__clock_s=None if self.clock_s is None else f"{self.clock_s:.6f}",
            access__nofile_soft=self.nofile_soft,
            access__nofile_hard=self.nofile_hard,
            boot__id=self.boot_id,
        )


def command() -> Command:
    return script(SCRIPT)


def parse(output: bytes) -> Access:
    """What we are and may. Raises ParseError when not even the user is known."""
    found = {m[1]: m[2] for line in decode(output).splitlines() if (m := _LINE.fullmatch(line.strip())) and m[2]}
    if "user" not in found:
        raise ParseError("the host does not say which user this is", line=1)
    clock = found.get("clock", "")
    return Access(
        user=found["user"],
        uid=_integer(found.get("uid")),
        sudo=found.get("sudo") == "yes",
        clock_s=float(clock) if _CLOCK.fullmatch(clock) else None,
        boot_id=found.get("boot_id"),
        nofile_soft=_integer(found.get("nofile_soft")),
        nofile_hard=_integer(found.get("nofile_hard")),
    )


def _integer(text: str | None) -> int | None:
    return int(text) if text and _INTEGER.fullmatch(text) else None


FACT = Fact(
    "access",
    command(),
    parse,
    (Section("access.", OTHER), Section("boot.", OTHER)),
)
