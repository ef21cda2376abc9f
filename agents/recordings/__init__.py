"""Files of other monitors, as channels of BenchHub's names and units. A new one is a file here, a name below; cases."""

from __future__ import annotations

from agents.base.errors import ParseError
from agents.recordings.base import Recording, RecordingKind
from agents.recordings.mpstat import MPSTAT
from agents.recordings.nmon import NMON
from agents.recordings.top import TOP

RECORDINGS: dict[str, RecordingKind] = {kind.name: kind for kind in (MPSTAT, NMON, TOP)}


def read_recording(kind: str, text: str) -> Recording:
    """The recording in `text`. Raises ParseError: unknown kind, or not a file of that kind."""
    found = RECORDINGS.get(kind)
    if found is None:
        known = ", ".join(sorted(RECORDINGS))
        raise ParseError(f"there is no reader for recordings of '{kind[:60]}'", hint=f"Known kinds: {known}.")
    return found.read(text)
