"""Data that every store of events takes."""

from __future__ import annotations

import math
from typing import Any


def storable(data: Any) -> Any:
    """JSON that PostgreSQL takes: no NUL in a text (a tool may print one), no number that is none."""
    if isinstance(data, str):
        return data.replace("\0", "\N{REPLACEMENT CHARACTER}")
    if isinstance(data, float):
        return data if math.isfinite(data) else None
    if isinstance(data, dict):
        return {storable(key): storable(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [storable(value) for value in data]
    return data
