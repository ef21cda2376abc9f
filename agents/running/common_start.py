"""One start for several load tools: each waits on its own host for the same moment, and notes when it really began.

The moment is agreed in seconds since each host was started: that clock is never set, so it cannot jump in between.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from agents.base.command import Command, script
from agents.base.session import Session
from agents.events import LoadPart

LEAD_S = 3.0
"""How far ahead the moment is: long enough for every host to have its tool waiting."""
READINGS = 3

_UPTIME = 'read -r up rest </proc/uptime && echo "$up"'

# Hundredths of a second, as the kernel tells them. The tool takes the place of the shell, so the job is the tool.
_WAIT = """
due=$1 file=$2
shift 2
look() { read -r up rest </proc/uptime; up=${up%.*}${up#*.}; }
look
while [ "$up" -lt "$due" ]; do
  left=$((due - up))
  sleep "$((left / 100)).$(printf %02d $((left % 100)))"
  look
done
echo "$up" >"$file"
exec "$@"
"""


@dataclass(frozen=True)
class HostClock:
    """A host's seconds since its start, less the controller's monotonic clock; wrong by at most `error_s`."""

    offset_s: float
    error_s: float


async def uptime_s(session: Session) -> float:
    """Seconds since the host was started."""
    result = await session.run(script(_UPTIME))
    return float(result.check(f"Reading the clock of {session.host}").text)


async def read_clock(session: Session) -> HostClock:
    """The host's clock from the quickest of a few answers: it was read somewhere between question and answer."""
    readings = []
    for _ in range(READINGS):
        asked_s = time.monotonic()
        host_s = await uptime_s(session)
        answered_s = time.monotonic()
        readings.append(HostClock(host_s - (asked_s + answered_s) / 2, (answered_s - asked_s) / 2))
    return min(readings, key=lambda clock: clock.error_s)


def waiting(command: Command, begins_at_uptime_s: float, file: str) -> Command:
    """The command, begun at that moment of the host's clock or at once when it is over; `file` gets when it was."""
    due = str(round(begins_at_uptime_s * 100))
    return Command(script(_WAIT, due, file, *command.argv).argv, timeout_s=command.timeout_s)


async def late_s(session: Session, begins_at_uptime_s: float, file: str) -> float | None:
    """How long after the agreed moment the tool began; None when it left no word of it."""
    text = (await session.run(Command(("cat", "--", file)))).text.strip()
    return round(int(text) / 100 - begins_at_uptime_s, 2) if text.isascii() and text.isdigit() else None


def spread_s(parts: Sequence[LoadPart]) -> float | None:
    """How far apart any two of the tools began at most, the clocks' errors counted in. None when a start is unknown."""
    if not parts or any(part.late_s is None for part in parts):
        return None
    return max((round(_apart_s(*pair), 3) for pair in combinations(parts, 2)), default=0.0)


def _apart_s(one: LoadPart, other: LoadPart) -> float:
    error_s = one.clock_error_s + other.clock_error_s if one.role != other.role else 0.0
    return abs((one.late_s or 0.0) - (other.late_s or 0.0)) + error_s
