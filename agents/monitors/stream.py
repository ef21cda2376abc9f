"""All monitors of a host in one POSIX sh loop, and the reading of what it prints.

A tick prints a line `mark KINDS seconds`, the raw text, and so on, then `mark end seconds`. Starting a program costs
more than what it reads, so the monitors that only `cat` files share one cat: KINDS is then `cpu+memory+...`, and the
line of /proc/uptime that stands before the files of each tells where they begin and when they were read.
"""

from __future__ import annotations

import logging
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agents.base.command import Command, script
from agents.base.errors import ParseError, PlanError
from agents.monitors.base import Channel, Monitor, Reading

MAX_FRAME_BYTES = 8 << 20

logger = logging.getLogger(__name__)

# `read`, `printf` and the loop are builtins: a tick starts one cat and one sleep. printf fails when nobody reads any
# more, also where SIGPIPE is ignored, and that ends the loop.
_LOOP = """\
while :; do
{before}{sections}
  read -r up rest </proc/uptime
  printf '%s end %s\\n' "$2" "$up" || exit 0
  sleep "$1" || exit 1
done"""
_SECTION = """\
  read -r up rest </proc/uptime
  printf '%s {kinds} %s\\n' "$2" "$up" || exit 0
  {snippet} 2>/dev/null
  printf '\\n' || exit 0"""

_HEAD = re.compile(rb" ([a-z][a-z0-9_+]{0,500}) ([0-9]{1,12}(?:\.[0-9]{1,9})?)")
_UPTIME = re.compile(r"^([0-9]{1,12}\.[0-9]{2}) [0-9]{1,15}\.[0-9]{2}\n", re.ASCII | re.MULTILINE)


@dataclass(frozen=True)
class Frame:
    """One tick: the reading of each monitor by its kind. `at_s` is when the tick ended, on the host's clock."""

    at_s: float
    readings: Mapping[str, Reading]


@dataclass(frozen=True)
class SampleBatch:
    """What all monitors say about the time up to `at_s` (seconds since the host booted)."""

    at_s: float
    values: Mapping[Channel, float]


def new_mark() -> str:
    """A line beginning that nothing on the host can print by chance or on purpose."""
    return f"==tick-{secrets.token_hex(8)}"


def stream_command(
    monitors: Sequence[Monitor], mark: str, *, interval_s: float = 1.0, pids: Sequence[int] = ()
) -> Command:
    """The loop for these monitors; it ends by itself when its output is closed.

    Monitors that need a process are left out where `pids` is empty. PlanError for an interval out of 0.1 to 60 s.
    """
    if not 0.1 <= interval_s <= 60:
        raise PlanError(f"monitors read every 0.1 to 60 s, not every {interval_s:g} s")
    snippets = {monitor.kind: snippet for monitor in monitors if (snippet := monitor.snippet(pids))}
    files = {kind: snippet[4:] for kind, snippet in snippets.items() if snippet.startswith("cat ")}
    parts = {kind: snippet for kind, snippet in snippets.items() if kind not in files}
    if files:
        parts["+".join(files)] = "cat " + " ".join(f"/proc/uptime {names}" for names in files.values())
    sections = "\n".join(_SECTION.format(kinds=kinds, snippet=snippet) for kinds, snippet in parts.items())
    before = "".join(f"{text}\n" for monitor in monitors if (text := monitor.before(pids)))
    return script(_LOOP.format(before=before, sections=sections), f"{interval_s:g}", mark)


class FrameReader:
    """Puts frames together from chunks that break anywhere. A frame counts only when its end was seen."""

    def __init__(self, mark: str) -> None:
        self._mark = b"\n" + mark.encode()
        self._buffer = b"\n"
        self._readings: dict[str, Reading] = {}

    def feed(self, chunk: bytes) -> list[Frame]:
        """The frames that this chunk completes. Raises ParseError when a frame grows without end."""
        frames = []
        self._buffer += chunk
        while (start := self._buffer.find(self._mark)) >= 0:
            line_end = self._buffer.find(b"\n", start + 1)
            if line_end < 0:
                break
            head = _HEAD.fullmatch(self._buffer[start + len(self._mark) : line_end].rstrip(b"\r"))
            kind, at_s = (head[1].decode(), float(head[2])) if head else ("", 0.0)
            if kind == "end":
                frames.append(Frame(at_s, self._readings))
                self._readings = {}
                self._buffer = self._buffer[line_end:]
                continue
            following = self._buffer.find(self._mark, line_end)
            if following < 0:
                break
            if kind:
                text = self._buffer[line_end + 1 : following].decode("utf-8", "replace")
                self._readings.update(_readings(kind, at_s, text))
            self._buffer = self._buffer[following:]
        if len(self._buffer) > MAX_FRAME_BYTES:
            self._buffer = b"\n"
            raise ParseError(f"the monitors printed {MAX_FRAME_BYTES} bytes without the end of a reading")
        return frames


def _readings(kinds: str, at_s: float, text: str) -> dict[str, Reading]:
    """The readings under one head; none where a shared cat printed another number of parts than there are kinds."""
    uptimes = list(_UPTIME.finditer(text))
    names = kinds.split("+")
    if len(names) == 1 and not uptimes:
        return {kinds: Reading(at_s, text)}
    if len(uptimes) != len(names):
        return {}
    ends = [uptime.start() for uptime in uptimes[1:]] + [len(text)]
    return {
        name: Reading(float(uptime[1]), text[uptime.end() : end])
        for name, uptime, end in zip(names, uptimes, ends, strict=True)
    }


class Sampler:
    """Turns frames into samples: each against the one before, so that the first gives nothing.

    `given_up` names the monitors that failed on what they were given: the others go on without them.
    """

    def __init__(self, monitors: Sequence[Monitor]) -> None:
        self._monitors = tuple(monitors)
        self._before: Frame | None = None
        self.given_up: list[str] = []

    def feed(self, frames: Sequence[Frame]) -> list[SampleBatch]:
        """A batch for each frame that has one before it; nothing across a reboot, where the clock goes back."""
        batches = []
        for frame in frames:
            before, self._before = self._before, frame
            if before is None or frame.at_s <= before.at_s:
                continue
            values: dict[Channel, float] = {}
            for monitor in self._monitors:
                old, new = before.readings.get(monitor.kind), frame.readings.get(monitor.kind)
                if old and new and new.at_s > old.at_s and monitor.kind not in self.given_up:
                    try:
                        values.update(monitor.samples(old, new))
                    except Exception:
                        logger.exception("the monitor %s", monitor.kind)
                        self.given_up.append(monitor.kind)
            batches.append(SampleBatch(frame.at_s, values))
        return batches
