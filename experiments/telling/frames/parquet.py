"""A table of any length as one Parquet file: parts are kept on disk, then put together piece by piece."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, Any

from agents.drivers.jmeter.jtl.frames import pl  # polars, loaded with the first use
from experiments.registry.errors import Busy

AT_ONCE = 2
"""A file of 100,000 runs keeps a core busy for seconds, and its parts some 100 MB of memory."""
ROWS_OF_GROUP, CELLS_OF_GROUP = 50_000, 4_000_000
"""A group of rows is in memory as a whole while it is written, and again when it is read."""
_places = threading.BoundedSemaphore(AT_ONCE)


def parquet_of(parts: Iterable[Any], columns: Sequence[str], *, tail: bool = False) -> IO[bytes]:
    """The parts as one open file, whose name is gone already. Busy while `AT_ONCE` others are being made.

    A part is a frame of polars, and may lack columns that others have. `columns` stand first, in this order; with
    `tail` those follow that only the parts know, by their names. Memory: a part or a few, as many as `parts` makes
    ahead, whatever the length of the whole.
    """
    if not _places.acquire(blocking=False):
        raise Busy(f"{AT_ONCE} files of whole data are being made already; ask again in a few seconds.")
    try:
        with tempfile.TemporaryDirectory(prefix="benchhub-frames-") as directory:
            return _made(parts, columns, Path(directory), tail=tail)
    finally:
        _places.release()


def _made(parts: Iterable[Any], columns: Sequence[str], directory: Path, *, tail: bool) -> IO[bytes]:
    kept = []
    known: dict[str, None] = {}
    for number, part in enumerate(parts):
        path = directory / f"{number}.arrow"
        part.write_ipc(path)
        kept.append(path)
        known |= dict.fromkeys(part.columns)
    whole = pl.concat([pl.scan_ipc(path) for path in kept], how="diagonal")
    names = [*columns, *(sorted(set(known) - set(columns)) if tail else ())]
    rows = max(1, min(ROWS_OF_GROUP, CELLS_OF_GROUP // len(names)))
    made = directory / "whole.parquet"
    whole.select(names).sink_parquet(made, compression="zstd", row_group_size=rows)
    return made.open("rb")  # the directory goes, the open file stays until it is sent
