"""What BenchHub needs on a host, in one table: the test of a connection, the start of a run and the guide share it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from agents.base.command import Command, script
from agents.base.errors import HostError, ParseError, PlanError
from agents.base.session import Session
from agents.facts import os_release
from agents.running.disk_room import for_instances, parse_room, room_command, shortage

Part = Literal["all", "driver"]
Family = Literal["debian", "rhel", "alpine"]

INSTALL: dict[Family, str] = {"debian": "apt-get install", "rhel": "dnf install", "alpine": "apk add"}
_FAMILIES: dict[str, Family] = {
    **dict.fromkeys(("debian", "ubuntu"), "debian"),
    **dict.fromkeys(("rhel", "fedora", "centos", "rocky", "almalinux", "amzn", "ol"), "rhel"),
    "alpine": "alpine",
}


@dataclass(frozen=True)
class Need:
    """A program that must do what `probe`, a line of shell in an empty directory, asks of it.

    `purpose` goes on from "BenchHub". `packages` are those of Debian, RHEL and Alpine that bring it. Without one that
    is `optional` runs go on, and lack what `purpose` says. `part`: only hosts that drive load need it.
    """

    name: str
    purpose: str
    probe: str
    packages: tuple[str, str, str]
    optional: bool = False
    part: Part = "all"

    def package(self, family: Family) -> str:
        return dict(zip(INSTALL, self.packages, strict=True))[family]


_COREUTILS, _UTIL_LINUX = ("coreutils",) * 3, ("util-linux",) * 3

NEEDS: tuple[Need, ...] = (
    Need("timeout", "ends a command that hangs", "timeout -k 1 60 true", _COREUTILS),
    Need("setsid", "starts what goes on without a connection", "setsid true", _UTIL_LINUX),
    Need("flock", "lets one change be made at a time", "exec 9>lock && flock -w 1 9", _UTIL_LINUX),
    Need("mv", "puts files in place whole", ": >a && mv -fT a b && mkdir c && mv -T c d", _COREUTILS),
    Need("mkfifo", "reads what a job prints", "mkfifo p", _COREUTILS),
    Need("sync", "has on the disk what it relies on", ": >s && sync s && sync .", _COREUTILS),
    Need("head", "reads files in pieces", '[ "$(printf abc | head -c 2)" = ab ]', _COREUTILS),
    Need("tail", "reads files in pieces", '[ "$(printf abc | tail -c +2)" = bc ]', _COREUTILS),
    Need("wc", "proves files whole", '[ "$(printf abc | wc -c)" -eq 3 ]', _COREUTILS),
    Need("sha256sum", "proves files whole", ": | sha256sum", _COREUTILS),
    Need("stat", "compares files with what they were", ": >t && stat -c '%s %a %u %g' -- t", _COREUTILS),
    Need("df", "sees whether there is room", "df -Pk -- .", _COREUTILS),
    Need("date", "compares clocks", "date +%s", _COREUTILS),
    Need("id", "knows who it is", "id -u", _COREUTILS),
    Need("base64", "writes down how changes are undone", '[ "$(printf YQ== | base64 -d)" = a ]', _COREUTILS),
    Need("tr", "reads what the kernel says", "printf a | tr a b", _COREUTILS),
    Need(
        "grep",
        "finds the processes of a job",
        "grep -lsF -- Name /proc/self/status",
        ("grep",) * 3,
    ),
    Need("sed", "writes down how changes are undone", "echo a | sed -n 1p", ("sed",) * 3),
    Need(
        "curl or wget",
        "asks the server whether it is ready",
        "command -v curl || command -v wget",
        ("curl",) * 3,
        part="driver",
    ),
    Need("lscpu", "knows the processors", "lscpu", ("util-linux", "util-linux", "lscpu"), optional=True),
    Need(
        "prlimit",
        "sets limits that a recipe asks for",
        "prlimit --pid $$",
        ("util-linux", "util-linux", "prlimit"),
        optional=True,
    ),
    Need("taskset", "keeps to the CPUs that are asked for", "taskset -cp $$", _UTIL_LINUX, optional=True),
)

# Each line says what is not there. The directory is where runs have theirs, and nothing of it stays.
MAKE_ROOM = "Make room there, then try again."

_LOOK = """
umask 077
while read -r line; do echo "os $line"; done 2>/dev/null </etc/os-release
for file in stat uptime sys/kernel/random/boot_id; do
  case $file in stat) file=$$/stat ;; esac
  read -r line </proc/$file || echo "no /proc"
done 2>/dev/null
cd 2>/dev/null && home=$(pwd -P) || { echo "no home ${HOME-}"; exit 0; }
echo "home $home"
look=$home/.benchhub-look.$$
mkdir "$look" 2>/dev/null && cd "$look" || { echo "no write"; exit 0; }
PROBES
cd "$home" && rm -rf -- "$look"
"""


@dataclass(frozen=True)
class Look:
    """What a host lacks, each thing as "needed" or "optional"; `family` of its distribution, None = Unknown."""

    lacks: tuple[Need, ...] = ()
    without: tuple[Need, ...] = ()
    family: Family | None = None
    wrong: str = ""
    mend: str = ""

    def complaint(self, host: str) -> tuple[str, str] | None:
        """What is wrong and what mends it, for a person; None when a run can take place."""
        if self.wrong:
            return f"{host} {self.wrong}", self.mend
        if not self.lacks:
            return None
        listed = ", ".join(f"{need.name} (BenchHub {need.purpose} with it)" for need in self.lacks)
        return f"{host} lacks what a run needs: {listed}.", self._install(self.lacks)

    def remark(self) -> str:
        """What runs will do without, in a sentence; "" when that is nothing."""
        if not self.without:
            return ""
        listed = ", ".join(f"{need.name} (BenchHub {need.purpose} with it)" for need in self.without)
        return f"Not there, and not needed by every run: {listed}. {self._install(self.without)}"

    def _install(self, needs: Sequence[Need]) -> str:
        def line(family: Family) -> str:
            return f"{INSTALL[family]} {' '.join(dict.fromkeys(need.package(family) for need in needs))}"

        if self.family is not None:
            return f"Install it there as root: {line(self.family)}"
        return "Install it there as root: " + ", or ".join(line(family) for family in INSTALL)


def look_command(part: Part) -> Command:
    """Tries all needs of a host that plays this part; in one round trip, and without a trace."""
    probes = [
        f"( {need.probe} ) >/dev/null 2>&1 </dev/null || echo 'no {number}'"
        for number, need in enumerate(NEEDS)
        if need.part in ("all", part)
    ]
    return script(_LOOK.replace("PROBES", "\n".join(probes)))


def parse_look(output: bytes, user: str) -> tuple[Look, str]:
    """What the host said, and the login's home directory. Raises ParseError when it makes no sense."""
    lines = output.decode("utf-8", "replace").splitlines()
    family = _family("\n".join(line[3:] for line in lines if line.startswith("os ")))
    home = next((line[5:] for line in lines if line.startswith("home /")), "")
    if "no /proc" in lines:
        return Look(family=family, wrong="shows no /proc, by which processes are known.", mend="Mount it there."), home
    if absent := [line for line in lines if line.startswith("no home")]:
        where = absent[0][8:] or "a home directory"
        wrong = f"has no directory {where} for {user}." if absent[0][8:] else f"gives {user} no home directory."
        return Look(family=family, wrong=wrong, mend=f"Make it: mkhomedir_helper {user}, or mkdir and chown."), home
    if "no write" in lines:
        wrong = f"does not let {user} write to its home directory {home}, where runs keep their files."
        return Look(family=family, wrong=wrong, mend=f"Give it to the login: chown {user} {home}"), home
    if not home:
        raise ParseError("A host's answer to what it has makes no sense.")
    missing = [
        NEEDS[int(line[3:])] for line in lines if re.fullmatch(r"no \d{1,3}", line) and int(line[3:]) < len(NEEDS)
    ]
    lacks = tuple(need for need in missing if not need.optional)
    return Look(lacks, tuple(need for need in missing if need.optional), family), home


async def look(session: Session, part: Part, user: str) -> Look:
    """What the host lacks for a run: programs, /proc, a home directory to write to, and room in it."""
    found, home = await _ask(session, part, user)
    # First of all: on a full disk programs that are there cannot be tried.
    if home and (missing := await missing_room(session, home, 1)) is not None:
        return replace(found, wrong=missing.removeprefix(f"{session.host} "), mend=MAKE_ROOM)
    return found


async def insist_on_needs(session: Session, part: Part, user: str) -> str:
    """The login's home directory on a host that has what a run needs.

    PlanError, in words that name the package, when it lacks a program or a place. HostError when its disk is full.
    """
    found, home = await _ask(session, part, user)
    if complaint := found.complaint(session.host):
        if home and (missing := await missing_room(session, home, 1)) is not None:
            raise HostError(missing, hint=MAKE_ROOM)  # programs that are there cannot be tried on a full disk
        raise PlanError(complaint[0], hint=complaint[1])
    return home


async def missing_room(session: Session, home: str, instances: int) -> str | None:
    """What the disk of the home lacks for a run with so many instances of the server, in words; None = nothing."""
    found = (await session.run(room_command((home,)))).check("Reading the free space")
    return shortage(session.host, parse_room(found.stdout, (home,)), (for_instances(home, instances),))


async def _ask(session: Session, part: Part, user: str) -> tuple[Look, str]:
    result = await session.run(look_command(part))
    return parse_look(result.check(f"Looking at what {session.host} has").stdout, user)


def _family(text: str) -> Family | None:
    try:
        fields = os_release.parse(text.encode()).fields
    except ParseError:
        return None
    names = [fields.get("ID", ""), *fields.get("ID_LIKE", "").split()]
    return next((_FAMILIES[name] for name in names if name in _FAMILIES), None)
