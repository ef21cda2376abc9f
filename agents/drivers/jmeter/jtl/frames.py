"""polars, loaded with the first result file: loading it takes longer than most commands need for all they do."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl
else:

    class _LoadedOnUse:
        def __getattr__(self, name: str) -> Any:
            return getattr(importlib.import_module("polars"), name)

    pl = _LoadedOnUse()

__all__ = ["pl"]
