"""The network interfaces of a host, from /sys/class/net."""

from __future__ import annotations

import re
from dataclasses import dataclass

from agents.base.command import Command, script
from agents.facts.base import Fact, Section, decode

# speed cannot be read while a link is down, and is -1 for many virtual ones: both mean unknown. So does numa_node -1.
SCRIPT = """\
for nic in /sys/class/net/*; do
  [ -e "$nic" ] || continue
  speed= mtu= state= driver= numa= real=no
  read -r speed <"$nic/speed"
  read -r mtu <"$nic/mtu"
  read -r state <"$nic/operstate"
  [ -r "$nic/device/numa_node" ] && read -r numa <"$nic/device/numa_node"
  if [ -e "$nic/device" ] || [ -e "$nic/bonding" ]; then real=yes; fi
  [ -e "$nic/device/driver" ] && driver=$(readlink -f "$nic/device/driver")
  echo "${nic##*/} real=$real state=${state:--} mtu=${mtu:--} speed=${speed:--} driver=${driver##*/} numa=${numa:--}"
done
true"""

_LINE = re.compile(
    r"(\S{1,60}) real=(yes|no) state=(\S{1,30}) mtu=([0-9]{1,9}|-) speed=(-?[0-9]{1,9}|-) driver=(\S{0,60})"
    r"(?: numa=(-?[0-9]{1,4}|-))?",
    re.ASCII,
)


@dataclass(frozen=True)
class Nic:
    """An interface. `real`: backed by a device or a bond, and so part of the machine's profile."""

    name: str
    real: bool
    state: str
    mtu_bytes: int | None
    speed_mbit_per_s: int | None
    driver: str | None
    numa_node: int | None = None

    def text(self) -> str:
        speed = "speed unknown" if self.speed_mbit_per_s is None else f"{self.speed_mbit_per_s} Mbit/s"
        return ", ".join(filter(None, (speed, self.driver, f"mtu {self.mtu_bytes}" if self.mtu_bytes else "")))


@dataclass(frozen=True)
class Nics:
    nics: tuple[Nic, ...]

    def stable(self) -> dict[str, str]:
        out = {f"nic.{nic.name}": nic.text() for nic in self.nics if nic.real}
        out |= {f"nic.{nic.name}.numa_node": str(nic.numa_node) for nic in self.nics if nic.numa_node is not None}
        return out

    def volatile(self) -> dict[str, str]:
        out = {f"nic.{nic.name}": nic.text() for nic in self.nics if not nic.real}
        out.update({f"nic.{nic.name}.state": nic.state for nic in self.nics})
        return out


def command() -> Command:
    return script(SCRIPT)


def parse(output: bytes) -> Nics:
    """The interfaces except lo; lines that are not of the script are passed over."""
    nics = []
    for line in decode(output).splitlines():
        match = _LINE.fullmatch(line.strip())
        if not match or match[1] == "lo":
            continue
        speed = None if match[5] == "-" else int(match[5])
        nics.append(
            Nic(
                name=match[1],
                real=match[2] == "yes",
                state=match[3],
                mtu_bytes=None if match[4] == "-" else int(match[4]),
                speed_mbit_per_s=speed if speed and speed > 0 else None,
                driver=match[6] or None,
                numa_node=int(match[7]) if match[7] and match[7].isdigit() else None,
            )
        )
    return Nics(tuple(nics))


FACT = Fact(
    "network",
    command(),
    parse,
    (Section("nic.", "Network", label=str),),
)
