"""Recordings of JDK Flight Recorder in pieces: their chunks are recordings of their own, and can be converted alone.

jfr-converter keeps what it knows of all chunks that it was given, so that its memory grows with the whole recording.
Source: the header of a chunk, OpenJDK 17, jdk.jfr.internal.consumer.ChunkHeader: its size, 64 bits, is at byte 8.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from agents.base.errors import ParseError

MAGIC = b"FLR\0"
HEADER_BYTES = 68
_COPY_BYTES = 1 << 20
PIECE_BYTES = 48_000_000
"""A piece has chunks up to that, or a single larger one: the JDK begins a new one at 12 MB, with its stacks behind."""


def pieces_of(recording: Path, into: Path) -> Iterator[Path]:
    """The recording as one or more, none of them much larger than `PIECE_BYTES`; all but a whole one are written to
    `into`, one after the other. ParseError: it is no whole recording."""
    if recording.stat().st_size <= PIECE_BYTES:
        yield recording
        return
    with recording.open("rb") as source:
        piece = _next_piece(source)
        while piece:
            with into.open("wb") as target:
                for size in piece:
                    _copy(source, target, size)
            yield into
            piece = _next_piece(source)


def _next_piece(source: BinaryIO) -> list[int]:
    """The sizes of the next chunks that make a piece; the file stays where it is."""
    begin, found = source.tell(), list[int]()
    while size := _chunk_bytes(source):
        if found and sum(found) + size > PIECE_BYTES:
            break
        found.append(size)
        source.seek(begin + sum(found))
    source.seek(begin)
    return found


def _chunk_bytes(source: BinaryIO) -> int:
    """The size of the chunk that begins here; 0 at the end."""
    header = source.read(HEADER_BYTES)
    if not header:
        return 0
    size = int.from_bytes(header[8:16], "big")
    if header[:4] != MAGIC or size < HEADER_BYTES:
        raise ParseError("the recording is damaged: one of its chunks has no size", hint="Was it written to its end?")
    return size


def _copy(source: BinaryIO, target: BinaryIO, size: int) -> None:
    """Copy so many bytes. ParseError: there are fewer."""
    while size:
        part = source.read(min(size, _COPY_BYTES))
        if not part:
            raise ParseError("the recording ends in the middle of a chunk", hint="Was it written to its end?")
        target.write(part)
        size -= len(part)
