"""Recorders: tools of the host that a run starts beside its load, because teams know the files that they write."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BeforeValidator

from agents.base.command import Command, script
from agents.base.errors import PlanError
from agents.base.session import Session

RecorderName = Literal["mpstat", "nmon"]

MOST_SAMPLES = 1800
"""Of a load: from half an hour on the samples are further apart than a second, and the files stay below the limit."""
MARGIN_S = 600
"""A recorder ends with the load. One that nobody ends does so itself, this long after the load should have ended."""
MAX_FILE_BYTES = 16_000_000

# nmon puts itself into the background, so its output is followed until it is closed. What reads it outlives it, so that
# nothing that it wrote is lost.
_NMON = """nmon -F /dev/stdout -s "$1" -c "$2" | (trap '' TERM; exec cat)"""
_MISSING = 'for tool; do command -v "$tool" >/dev/null || echo "$tool"; done'


@dataclass(frozen=True)
class Recorder:
    """A tool that writes a sample of the whole host at each interval. `file` names what is kept of it, for a role.

    `package` is what to install, `cost` what it costs on the host, in words.
    """

    name: RecorderName
    package: str
    file: str
    cost: str

    def command(self, load_s: int) -> Command:
        """The tool for a load of that many seconds. What it records comes out of its standard output."""
        interval_s = max(1, math.ceil(load_s / MOST_SAMPLES))
        count = math.ceil((load_s + MARGIN_S) / interval_s)
        if self.name == "nmon":
            return script(_NMON, str(interval_s), str(count))
        return Command(("mpstat", "-P", "ALL", str(interval_s), str(count)))

    def file_of(self, role: str) -> str:
        return self.file.format(role=role)


RECORDERS: Mapping[RecorderName, Recorder] = {
    "mpstat": Recorder("mpstat", "sysstat", "{role}-mpstat.txt", "0.01 % of one core on a host with 2 CPUs"),
    "nmon": Recorder("nmon", "nmon", "{role}.nmon", "0.03 % of one core on a host with 2 CPUs"),
}
ENVIRONMENT = {"TZ": "UTC", "LC_ALL": "C", "S_TIME_FORMAT": "ISO"}
"""None of the files names its time zone, so all of them are written in UTC, and with dates that cannot be misread."""


def _names(given: object) -> object:
    """A text is a list with commas, so that one name needs no brackets; a name is taken once."""
    if isinstance(given, str):
        given = [name.strip() for name in given.split(",") if name.strip()]
    return tuple(dict.fromkeys(given)) if isinstance(given, list) and all(isinstance(n, str) for n in given) else given


RecorderNames = Annotated[tuple[RecorderName, ...], BeforeValidator(_names)]


async def insist_on_recorders(session: Session, names: tuple[RecorderName, ...]) -> None:
    """PlanError when the host lacks one of them: who asks for a recording wants it, and nothing was changed yet."""
    if not names:
        return
    result = await session.run(script(_MISSING, *names))
    missing = result.check(f"Looking for {' and '.join(names)} on {session.host}").text.split()
    if missing:
        tools = " and ".join(missing)
        packages = " ".join(RECORDERS[name].package for name in names if name in missing)
        raise PlanError(
            f"{session.host} cannot record with {tools}: not installed there.",
            hint=f"Install it (apt-get install {packages}), or take {tools} out of the workload's recorders.",
        )
