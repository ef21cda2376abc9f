"""How the kernel runs CPUs and memory: frequency governor, frequency limits, turbo, SMT, transparent huge pages."""

from __future__ import annotations

import re
from dataclasses import dataclass

from agents.base.command import Command, script
from agents.base.errors import ParseError
from agents.facts.base import Fact, Section, decode, known

SCRIPT = """\
cpus=/sys/devices/system/cpu
say() { [ -r "$2" ] && read -r value <"$2" && echo "$1=$value"; }
for governor in $cpus/cpu[0-9]*/cpufreq/scaling_governor; do say governor "$governor"; done | sort -u
say driver $cpus/cpu0/cpufreq/scaling_driver
say khz_max $cpus/cpu0/cpufreq/cpuinfo_max_freq
say no_turbo $cpus/intel_pstate/no_turbo
say boost $cpus/cpufreq/boost
say smt $cpus/smt/control
say isolated $cpus/isolated
say thp_enabled /sys/kernel/mm/transparent_hugepage/enabled
say thp_defrag /sys/kernel/mm/transparent_hugepage/defrag
true"""

_LINE = re.compile(r"([a-z_]{1,30})=(.{0,200})", re.ASCII)
_CHOSEN = re.compile(r"\[([^\]]{1,60})\]")
_KHZ = re.compile(r"[0-9]{1,12}", re.ASCII)


@dataclass(frozen=True)
class Power:
    """`governors` are all that are in use: more than one is a finding in itself. Virtual machines show none."""

    governors: tuple[str, ...] = ()
    frequency_driver: str | None = None
    mhz_max: float | None = None
    turbo: bool | None = None
    smt: str | None = None
    isolated_cpus: str | None = None
    thp_enabled: str | None = None
    thp_defrag: str | None = None

    def stable(self) -> dict[str, str]:
        return known(
            power__governor=",".join(self.governors),
            power__frequency_driver=self.frequency_driver,
            power__mhz_max=self.mhz_max,
            power__turbo=None if self.turbo is None else ("on" if self.turbo else "off"),
            power__smt=self.smt,
            power__isolated_cpus=self.isolated_cpus,
            thp__enabled=self.thp_enabled,
            thp__defrag=self.thp_defrag,
        )

    def volatile(self) -> dict[str, str]:
        return {}


def command() -> Command:
    return script(SCRIPT)


def parse(output: bytes) -> Power:
    """What the host shows. Raises ParseError when no line is one of ours."""
    governors: set[str] = set()
    found: dict[str, str] = {}
    for line in decode(output).splitlines():
        if match := _LINE.fullmatch(line.strip()):
            found[match[1]] = match[2]
            if match[1] == "governor":
                governors.add(match[2])
    if not found:
        raise ParseError("no setting of the CPUs in this text", line=1)
    khz = found.get("khz_max", "")
    return Power(
        governors=tuple(sorted(governors)),
        frequency_driver=found.get("driver"),
        mhz_max=int(khz) / 1000 if _KHZ.fullmatch(khz) else None,
        turbo=_turbo(found),
        smt=found.get("smt"),
        isolated_cpus=found.get("isolated"),
        thp_enabled=_chosen(found.get("thp_enabled")),
        thp_defrag=_chosen(found.get("thp_defrag")),
    )


def _turbo(found: dict[str, str]) -> bool | None:
    if found.get("no_turbo") in ("0", "1"):
        return found["no_turbo"] == "0"
    if found.get("boost") in ("0", "1"):
        return found["boost"] == "1"
    return None


def _chosen(text: str | None) -> str | None:
    """The word in brackets of "always [madvise] never"."""
    match = _CHOSEN.search(text or "")
    return match[1] if match else None


FACT = Fact(
    "power",
    command(),
    parse,
    (Section("power.", "CPU", says_prefix=True), Section("thp.", "Memory", says_prefix=True)),
)
