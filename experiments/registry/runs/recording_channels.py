"""How the channels of another monitor's recording are named beside a run's own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from agents.recordings import RECORDINGS
from agents.recordings.base import Recording

_CHANNEL_CHARS = 120
_CPU = re.compile(r"cpu\.(\d+)\.(\w+)")


def channel_name(kind: str, name: str) -> str:
    """How a channel of a recording is named beside the run's own: nmon.cpu.busy_ratio."""
    return f"{kind}.{name}"[:_CHANNEL_CHARS]


def kernel_names(recording: Recording, own: Iterable[str]) -> Mapping[str, str] | None:
    """The kernel's names of channels of CPUs: nmon counts those that are online, so its second may be CPU 3.

    `own` are the channels that BenchHub sampled itself on this host. None when they do not tell which CPUs these are.
    """
    if not RECORDINGS[recording.tool].numbers_online:
        return {}
    found = [(name, match) for name in recording.channels if (match := _CPU.fullmatch(name))]
    online = sorted({int(match[1]) for channel in own if (match := _CPU.fullmatch(channel))})
    if len({match[1] for _, match in found}) != len(online):
        return None
    return {name: f"cpu.{online[int(match[1])]}.{match[2]}" for name, match in found if int(match[1]) < len(online)}
