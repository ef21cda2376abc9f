"""Who we are on a host and what we may do, and from /proc, /etc and /sys which machine and which boot of it this is."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from agents.base.command import Command, script
from agents.base.errors import ParseError
from agents.facts.base import OTHER, Fact, Section, decode, known

SCRIPT = """\
echo "clock=$(date +%s.%N)"
echo "user=$(id -un 2>/dev/null || echo "${LOGNAME:-${USER-}}")"
echo "uid=$(id -u)"
if sudo -n true >/dev/null 2>&1; then echo sudo=yes; else echo sudo=no; fi
echo "nofile_soft=$(ulimit -Sn)"
echo "nofile_hard=$(ulimit -Hn)"
echo "boot_id=$(cat /proc/sys/kernel/random/boot_id)"
echo "machine_id=$(cat /etc/machine-id || cat /var/lib/dbus/machine-id)"
uuid=/sys/class/dmi/id/product_uuid
echo "product_uuid=$(cat "$uuid" || sudo -n cat "$uuid")"
true"""

_LINE = re.compile(r"([a-z_]{1,30})=(.{0,200})", re.ASCII)
_CLOCK = re.compile(r"[0-9]{9,12}\.[0-9]{9}", re.ASCII)
_INTEGER = re.compile(r"[0-9]{1,18}", re.ASCII)
_MACHINE_ID = re.compile(r"[0-9a-f]{32}", re.ASCII)
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)
_OF_MANY = frozenset(("03000200-0400-0500-0006-000700080009", "12345678-1234-5678-90ab-cddeefaabbcc"))
"""What boards say whose maker has not given them a number of their own."""


@dataclass(frozen=True)
class Access:
    """`clock_s` is the host's time (Unix) when this was read, None where its date knows no fractions of a second.

    `nofile_soft` and `nofile_hard` are counts of open files, None also for "unlimited". `boot_id` is the kernel's and
    new at each boot: containers share it. `installation` and `hardware` are digests of the machine-id, which copies of
    one image share, and of the number that the firmware has, which only root may read: machines keep theirs secret.
    """

    user: str
    uid: int | None = None
    sudo: bool = False
    clock_s: float | None = None
    boot_id: str | None = None
    nofile_soft: int | None = None
    nofile_hard: int | None = None
    installation: str | None = None
    hardware: str | None = None

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
            boot__installation=self.installation,
            boot__hardware=self.hardware,
        )


def command() -> Command:
    """One script that prints who we are, what sudo allows, our limits, the host's clock and which machine it is."""
    return script(SCRIPT)


def parse(output: bytes) -> Access:
    """What our script says that we are and may. Raises ParseError when not even the user is known."""
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
        installation=_digest(_MACHINE_ID, found.get("machine_id")),
        hardware=_digest(_UUID, found.get("product_uuid")),
    )


def _integer(text: str | None) -> int | None:
    return int(text) if text and _INTEGER.fullmatch(text) else None


def _digest(form: re.Pattern[str], text: str | None) -> str | None:
    """What stands for a number that tells machines apart; None for one that many of them have."""
    number = (text or "").lower()
    if not form.fullmatch(number) or number in _OF_MANY or len(set(number) - {"-"}) == 1:
        return None
    return hashlib.sha256(f"benchhub {number}".encode()).hexdigest()[:32]


FACT = Fact(
    "access",
    command(),
    parse,
    (Section("access.", OTHER), Section("boot.", OTHER)),
)
