"""Recorders: tools of the host that a run starts beside its load, because teams know the files that they write."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BeforeValidator

from agents.base.command import script
from agents.base.errors import PlanError
from agents.base.session import Session
from agents.recordings import RECORDINGS
from agents.recordings.base import Recorder

RECORDERS: Mapping[str, Recorder] = {kind.name: kind.recorder for kind in RECORDINGS.values() if kind.recorder}

if TYPE_CHECKING:
    RecorderName = str
else:
    RecorderName = Literal[tuple(RECORDERS)]
"""One of the above: pydantic refuses other names, and says so in the schema."""

MAX_FILE_BYTES = 16_000_000

_MISSING = 'for tool; do command -v "$tool" >/dev/null || echo "$tool"; done'


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
