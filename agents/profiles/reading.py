"""Reading a profile of any form: unpacked within a limit, known by its content."""

from __future__ import annotations

import zlib

from agents.base.errors import ParseError
from agents.profiles import PROFILE_FORMATS
from agents.profiles.base.folding import MAX_BYTES, not_larger
from agents.profiles.base.profile import Profile
from agents.profiles.base.profile_format import HEAD_BYTES, ProfileFormat
from agents.profiles.recordings import MAGIC

GZIP = b"\x1f\x8b"
_WITH_GZIP_HEADER = 31


def read_profile(data: bytes, kind: str | None = None) -> Profile:
    """The profile of a file, compressed or not; its form is known by its content when `kind` does not say it.

    Raises ParseError: unknown kind, no profile, several forms that it could be, or too large.
    """
    text = unpacked(data)
    if kind is None:
        return form_of(text).read(text)
    if kind not in PROFILE_FORMATS:
        known = ", ".join(sorted(PROFILE_FORMATS))
        raise ParseError(f"there is no form of profile called '{kind[:60]}'", hint=f"Known forms: {known}.")
    return PROFILE_FORMATS[kind].read(text)


def form_of(text: bytes) -> ProfileFormat:
    """The form of an unpacked file. ParseError: none, or several."""
    head = text[:HEAD_BYTES]
    if head.startswith(MAGIC):
        raise ParseError(
            "the file is a recording of JDK Flight Recorder, which is not read itself",
            hint="Convert it: `java -jar jfr-converter.jar --threads -o otlp FILE.jfr FILE.otlp`, and give that file.",
        )
    found = [form for form in PROFILE_FORMATS.values() if form.looks_like(head)]
    if len(found) == 1:
        return found[0]
    known = ", ".join(sorted(PROFILE_FORMATS))
    what = " and ".join(form.title for form in found)
    raise ParseError(
        f"the file could be of {what}" if found else "the file is no profile that is known",
        hint=f"Say its form: {known}.",
    )


def unpacked(data: bytes) -> bytes:
    """The bytes of a file, decompressed where gzip packed them. ParseError: broken, or more than is read."""
    if not data.startswith(GZIP):
        not_larger(len(data))
        return data
    unpacker = zlib.decompressobj(_WITH_GZIP_HEADER)
    try:
        found = unpacker.decompress(data, MAX_BYTES + 1)
    except zlib.error as error:
        raise ParseError(f"the file is no whole gzip: {error}", hint="Was it cut off?") from error
    not_larger(len(found))
    if not unpacker.eof:
        raise ParseError("the compressed file ends too early", hint="Was it cut off?")
    return found
