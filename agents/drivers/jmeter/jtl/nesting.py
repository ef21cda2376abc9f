"""Which rows of a result file are parts of another request: redirects, embedded resources."""

from __future__ import annotations

import numpy as np
import polars as pl

from agents.drivers.jmeter.jtl.form import ELAPSED, LABEL, THREAD, TIME
from agents.drivers.jmeter.jtl.tally import INSIDE

_FIELDS = (THREAD, TIME, ELAPSED)


class Nesting:
    """A row `P-N` is marked when it lies inside the row of P that the same thread wrote last.

    JMeter writes a request and then its parts, so the row before in the file is the one to look at, also when it stands
    in the piece before.
    """

    def __init__(self) -> None:
        self.parents: set[str] = set()
        self._last: dict[str, tuple[str, int, int]] = {}

    def marked(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The rows with the column `inside`."""
        if THREAD not in frame.columns:
            frame = frame.with_columns(pl.lit("").alias(THREAD))
        inside = np.zeros(frame.height, dtype=bool)
        labels = frame[LABEL].fill_null("")
        parent_of = labels.str.extract(r"^(?s)(.+)-\d{1,6}$", 1)
        for parent in sorted(self.parents):
            own = (labels == parent).to_numpy()
            parts = np.flatnonzero((parent_of == parent).fill_null(value=False).to_numpy())
            if parts.size:
                before = np.maximum.accumulate(np.where(own, np.arange(frame.height), -1))[parts]
                inside[parts] = self._inside(frame, parts, before, parent)
            if own.any():
                thread, start, elapsed = frame.select(_FIELDS).row(int(np.flatnonzero(own)[-1]))
                self._last[parent] = (thread, start, start + elapsed)
        return frame.with_columns(pl.Series(INSIDE, inside))

    def _inside(self, frame: pl.DataFrame, parts: np.ndarray, before: np.ndarray, parent: str) -> np.ndarray:
        table = frame.select(_FIELDS)
        part, whole = table[parts], table[np.maximum(before, 0)]
        result = (
            (part[THREAD] == whole[THREAD]).to_numpy()
            & (part[TIME] >= whole[TIME]).to_numpy()
            & (part[TIME] + part[ELAPSED] <= whole[TIME] + whole[ELAPSED]).to_numpy()
            & (before >= 0)
        )
        if (last := self._last.get(parent)) is not None and (before < 0).any():
            thread, start, end = last
            ends = (part[TIME] + part[ELAPSED]).to_numpy()
            carried = (part[THREAD] == thread).to_numpy() & (part[TIME].to_numpy() >= start) & (ends <= end)
            result |= carried & (before < 0)
        return np.asarray(result)
