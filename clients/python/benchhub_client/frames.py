"""Parquet as a data frame of the library that is installed."""

from __future__ import annotations

import importlib
import importlib.util
import io
from collections.abc import Callable, Mapping
from typing import Any

from .connection import Trouble

LIBRARIES = ("polars", "pandas", "pyarrow")


def frame_of(parquet: bytes, library: str | None = None) -> Any:
    """The table as a frame of polars or pandas, or a table of pyarrow: the named library, else the first there is."""
    if library is None:
        library = next((name for name in LIBRARIES if importlib.util.find_spec(name)), None)
    if library not in LIBRARIES:
        raise Trouble('Data frames need polars, pandas or pyarrow: pip install "benchhub-client[polars]"')
    try:
        return _READERS[library](parquet)
    except ImportError as error:
        raise Trouble(f'{error}: pip install "benchhub-client[{library}]"') from error


def _polars(parquet: bytes) -> Any:
    return importlib.import_module("polars").read_parquet(parquet)


def _pandas(parquet: bytes) -> Any:
    return importlib.import_module("pandas").read_parquet(io.BytesIO(parquet))


def _pyarrow(parquet: bytes) -> Any:
    return importlib.import_module("pyarrow.parquet").read_table(io.BytesIO(parquet))


_READERS: Mapping[str, Callable[[bytes], Any]] = {"polars": _polars, "pandas": _pandas, "pyarrow": _pyarrow}
