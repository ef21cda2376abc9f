"""Files of other monitors, as channels with BenchHub's names and units. A new one is a file here and a line below."""

from __future__ import annotations

from collections.abc import Callable

from agents.base.errors import ParseError
from agents.recordings.base import Recording
from agents.recordings.mpstat import read_mpstat
from agents.recordings.nmon import read_nmon
from agents.recordings.top import read_top

RECORDINGS: dict[str, Callable[[str], Recording]] = {
    "mpstat": read_mpstat,
    "nmon": read_nmon,
    "top": read_top,
}


def read_recording(kind: str, text: str) -> Recording:
    """The recording in `text`. Raises ParseError: unknown kind, or not a file of that kind."""
    reader = RECORDINGS.get(kind)
    if reader is None:
        known = ", ".join(sorted(RECORDINGS))
        raise ParseError(f"there is no reader for recordings of '{kind[:60]}'", hint=f"Known kinds: {known}.")
    return reader(text)
