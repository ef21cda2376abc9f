"""Several texts in the output of one command: a line `name base64` each, so no content can be taken for a border."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping

from agents.base.errors import ParseError

FRAME = """frame() { printf '%s ' "$1"; base64 | tr -d '\\n'; echo; }
"""
"""POSIX sh: `COMMAND | frame NAME`."""


def parse_frames(output: bytes) -> Mapping[str, bytes]:
    """Name -> content. Raises ParseError on a line that is no frame."""
    frames = {}
    for number, line in enumerate(output.splitlines(), start=1):
        name, _, encoded = line.partition(b" ")
        try:
            frames[name.decode("ascii")] = base64.b64decode(encoded, validate=True)
        except (binascii.Error, ValueError):
            raise ParseError("the output is not a list of framed texts", line=number) from None
    return frames
