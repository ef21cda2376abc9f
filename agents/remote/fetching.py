"""Large files from a host: piece by piece to a file here, in bounded memory, proven whole by their checksum."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import re
import shutil
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from agents.base.command import script
from agents.base.errors import CommandError, HostError, NoRoomError, ProgramError
from agents.base.redaction import Redactor
from agents.base.session import Session

CHUNK_BYTES = 4 << 20
SUM_TIMEOUT_S = 900.0
_SPARE_BYTES = 256 << 20

# Size and checksum of one state: a file that still grows gives another size behind the checksum.
_LOOK = """
[ -f "$1" ] || { echo "there is no file $1" >&2; exit 1; }
before=$(stat -c %s -- "$1") && sum=$(sha256sum <"$1") && after=$(stat -c %s -- "$1") || exit 1
echo "$before $after ${sum%% *}"
"""


@dataclass(frozen=True)
class Fetched:
    """A file that is here now, byte for byte as on the host."""

    path: Path
    size_bytes: int
    sha256: str


async def fetch(
    session: Session,
    path: str,
    into: Path,
    *,
    max_bytes: int,
    on_progress: Callable[[int, int], Awaitable[None]],
) -> Fetched:
    """Copy the file `path` (absolute) of the host to `into`. One piece is asked for when the one before is on the disk.

    What `into` holds already is not fetched again, so a cut costs one piece; when the sum shows that it was of another
    file, all is fetched anew, once. `on_progress` gets the bytes here and in all after each piece; what it raises ends
    the copying. CommandError when there is no such file, ProgramError when it is larger than `max_bytes`, NoRoomError
    when it does not fit on this disk; HostError when it does not stay as it was.
    """
    size, sha256 = await _look(session, path)
    if size > max_bytes:
        raise ProgramError(
            f"{path} on {session.host} has {size / 1e6:,.0f} MB; {max_bytes / 1e6:,.0f} MB are allowed.",
            hint="Raise max_result_mb in the workload, or make a shorter run.",
        )
    _insist_on_room(into, size, "the results take")
    for _ in range(2):
        found = await _copy(session, path, into, size, on_progress)
        if found == sha256:
            return Fetched(into, size, sha256)
        await asyncio.to_thread(into.unlink)
    raise HostError(
        f"{path} on {session.host} does not arrive as it is there: the checksum differs.",
        hint="Does something still write to it, or is a disk damaged?",
    )


@dataclass(frozen=True)
class FetchedEnd:
    """The end of a file that is here now: how large the file was, and how much of it came."""

    size_bytes: int
    kept_bytes: int


async def fetch_end(session: Session, path: str, into: Path, *, max_bytes: int) -> FetchedEnd:
    """Copy the last `max_bytes` of a file (absolute path) as it is now to `into`, in pieces; it may go on growing.

    CommandError when it cannot be read, NoRoomError when it does not fit on this disk.
    """
    looked = await session.run(script('wc -c <"$1"', path))
    size = int(looked.check(f"Looking at {path} on {session.host}").text)
    at = max(0, size - max_bytes)
    _insist_on_room(into, size - at, "a server's file takes")
    with into.open("wb") as file:
        while at < size and (piece := await session.get(path, offset=at, max_bytes=min(CHUNK_BYTES, size - at))):
            await asyncio.to_thread(file.write, piece)
            at += len(piece)
        return FetchedEnd(size, file.tell())


def _insist_on_room(into: Path, size: int, what: str) -> None:
    if (free := shutil.disk_usage(into.parent).free) < size + _SPARE_BYTES:
        raise NoRoomError(
            f"BenchHub has {free / 1e6:,.0f} MB free under {into.parent}; {what} {size / 1e6:,.0f} MB.",
            hint="Free some space there, or set TMPDIR of the worker to a larger disk.",
        )


async def _look(session: Session, path: str) -> tuple[int, str]:
    result = await session.run(script(_LOOK, path, timeout_s=SUM_TIMEOUT_S))
    unwritten = result.stderr.startswith(b"there is no file")  # by the tool, that is: it ended, and said it was well
    text = result.check(f"Looking at {path} on {session.host}", by_author=unwritten).text
    match = re.fullmatch(r"(\d+) (\d+) ([0-9a-f]{64})\s*", text, re.ASCII)
    if not match:
        raise CommandError(f"Looking at {path} on {session.host} gave an answer that makes no sense.")
    if match[1] != match[2]:
        raise HostError(
            f"{path} on {session.host} still grows, although the tool has ended.", hint="What writes to it?"
        )
    return int(match[1]), match[3]


async def _copy(
    session: Session, path: str, into: Path, size: int, on_progress: Callable[[int, int], Awaitable[None]]
) -> str:
    """Fetch what is missing; the checksum of all that is here then."""
    digest = hashlib.sha256()
    with into.open("a+b") as file:
        file.truncate(min(file.seek(0, 2), size))
        file.seek(0)
        while have := file.read(CHUNK_BYTES):
            digest.update(have)
        done = file.tell()
        while done < size:
            piece = await session.get(path, offset=done, max_bytes=min(CHUNK_BYTES, size - done))
            if not piece:
                raise HostError(
                    f"{path} on {session.host} ended at byte {done} of {size}.", hint="Did somebody remove it?"
                )
            await asyncio.to_thread(file.write, piece)
            digest.update(piece)
            done += len(piece)
            await on_progress(done, size)
    return digest.hexdigest()


def compress(path: Path, into: Path, *, max_bytes: int) -> bool:
    """Write `path` to `into` with gzip and without secrets; False, and no file, when it takes more than `max_bytes`."""
    redactor = Redactor()
    with path.open("rb") as source, into.open("wb") as target:
        with gzip.GzipFile(filename="", mode="wb", fileobj=target, compresslevel=1, mtime=0) as packed:
            while piece := source.read(1 << 20):
                packed.write(redactor.feed(piece.decode("latin-1")).encode("latin-1"))  # any byte stays what it is
                if target.tell() > max_bytes:
                    break
            packed.write(redactor.close().encode("latin-1"))
        fits = target.tell() <= max_bytes
    if not fits:
        into.unlink()
    return fits
