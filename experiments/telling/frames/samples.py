"""The samples of a run as a table, a row for each point: nothing is thinned out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import IO, Any

from agents.drivers.jmeter.jtl.frames import pl  # polars, loaded with the first use
from experiments.judging.comparing.history import samples_of
from experiments.models import Run
from experiments.telling.frames.parquet import parquet_of

COLUMNS = ("role", "channel", "unit", "at_s", "value")
_SERIES_AT_ONCE = 20


def samples_file(run: Run, channels: Sequence[str] = ()) -> IO[bytes]:
    """Parquet with `COLUMNS`, by role, channel and time; `at_s` 0 is where measuring began. An import has no rows."""
    return parquet_of(_parts(run, channels), COLUMNS)


def _parts(run: Run, channels: Sequence[str]) -> Iterator[Any]:
    types = {"role": pl.String, "channel": pl.String, "unit": pl.String, "at_s": pl.Float64, "value": pl.Float64}
    yield pl.DataFrame(schema=types)
    for series in samples_of(run, channels).iterator(chunk_size=_SERIES_AT_ONCE):
        names = {name: pl.lit(getattr(series, name), pl.String) for name in ("role", "channel", "unit")}
        points = pl.DataFrame({"at_s": series.at_s, "value": series.values}, schema_overrides=types)
        yield points.select(**names, at_s="at_s", value="value")
