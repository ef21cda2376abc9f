"""Events on their way to the centre, in a file: what is in it outlives the death of the worker at any line."""

from __future__ import annotations

import json
import logging
import time
from contextlib import suppress
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

from agents.site.wire import AGE

logger = logging.getLogger(__name__)

SMALL_BYTES = 65_536
_HEADER = ("run", "fence", "first")


def aged(line: bytes, age_s: float) -> bytes:
    """The event of the line, as it is told so many seconds after it happened."""
    return b'%s, "%s": %.3f}' % (line[:-1], AGE.encode(), max(0.0, age_s))


class Spool:
    """One run under one fence: a line that says so and the number of the first event, then a line for each event.

    Each event has its time before it, by the machine's clock: the monotonic one may not be the same when it is read.
    A disk that takes nothing, as a full one, ends no run: the spool stands still until all is delivered, then begins
    anew. What it has by then stays whole but for a torn last line.
    """

    def __init__(self, folder: Path, run_id: int, fence: int, first: int) -> None:
        self.path = folder / f"{run_id}-{fence}.jsonl"
        self._run_id, self._fence = run_id, fence
        self._file: FileIO | None = None
        self._has_told = False
        self._begin(first)

    def add(self, line: bytes) -> bool:
        """Write one event down. It is the kernel's then: only a loss of power could still take it.

        False when it cannot be, nor what comes after it: only this process has it.
        """
        self._write(b"%.3f %s" % (time.time(), line))
        return self._file is not None

    def delivered(self, next_seq: int) -> None:
        """All that was added is at the centre, up to the event before `next_seq`."""
        if self._file is None or self._file.tell() > SMALL_BYTES:
            self._begin(next_seq)

    def close(self, *, keep: bool) -> None:
        """`keep`: what is in it was not delivered, and is to be when the centre answers again."""
        self._stop()
        try:
            if not keep:
                self.path.unlink(missing_ok=True)
        except OSError as error:
            logger.warning("run %s: %s cannot be removed: %s", self._run_id, self.path, error)

    def _begin(self, first: int) -> None:
        self._stop()
        header = dict(zip(_HEADER, (self._run_id, self._fence, first), strict=True))
        try:
            self._file = FileIO(self.path, "w")  # without a buffer, which would keep what the disk has refused
        except OSError as error:
            self._tell(error)
        self._write(json.dumps(header).encode())

    def _write(self, line: bytes) -> None:
        if self._file is None:
            return
        left = memoryview(line + b"\n")
        try:
            while left:
                left = left[self._file.write(left) :]
        except OSError as error:
            self._stop()
            self._tell(error)

    def _stop(self) -> None:
        with suppress(OSError):
            if self._file is not None:
                self._file.close()
        self._file = None

    def _tell(self, error: OSError) -> None:
        if not self._has_told:
            logger.warning(
                "run %s: readings cannot be written down: %s; each waits for the centre until --state has room",
                self._run_id,
                error,
            )
        self._has_told = True


@dataclass(frozen=True)
class LeftOver:
    """Events that a worker wrote down and did not deliver, with their ages; `first` is the number of the first one."""

    run_id: int
    fence: int
    first: int
    lines: tuple[bytes, ...]


def left_over(path: Path) -> LeftOver | None:
    """What is in such a file; None when its writer died before the first line was whole.

    A line that was torn by the death of its writer has not happened. Nor has one that is none, as a loss of power
    leaves them, and what follows it.
    """
    head, *written = path.read_bytes().split(b"\n")
    try:
        header = json.loads(head)
        run_id, fence, first = (int(header[name]) for name in _HEADER)
    except (ValueError, TypeError, LookupError):
        return None
    lines: list[bytes] = []
    for line in written[:-1]:
        try:
            lines.append(_aged(line))
        except ValueError:
            logger.warning(
                "run %s: of %s events that were left only %s can be read", run_id, len(written) - 1, len(lines)
            )
            break
    return LeftOver(run_id, fence, first, tuple(lines))


def _aged(written: bytes) -> bytes:
    if written.startswith(b"{"):  # by a worker of before
        return written
    unix_s, _, line = written.partition(b" ")
    return aged(line, time.time() - float(unix_s))
