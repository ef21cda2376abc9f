"""Makes a recorded answer an example: short, and without anything of the machine that it was recorded on."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

MOST_ITEMS, MOST_NUMBERS, MOST_KEYS = 2, 3, 6
LARGE_ITEM_CHARS = 600
MOST_CHARS = 700
_MAPS = frozenset({"values", "facts", "metrics", "evidence"})
"""Objects whose keys are data, so that any of them may be left out."""


@dataclass(frozen=True)
class Replacement:
    """Patterns and what stands for them, in order."""

    pairs: Sequence[tuple[str, str]]

    def in_all(self, value: Any) -> Any:
        text = json.dumps(value, ensure_ascii=False)
        for pattern, instead in self.pairs:
            text = re.sub(pattern, instead, text)
        return json.loads(text)


def shortened(value: Any, key: str = "") -> Any:
    """The value with the first items of its lists, the first keys of its maps, and the beginning of its texts."""
    if isinstance(value, dict):
        kept = list(value)[:MOST_KEYS] if key in _MAPS and len(value) > MOST_KEYS else value
        return {name: shortened(value[name], name) for name in kept}
    if isinstance(value, list):
        return [shortened(one) for one in value[: _most(value)]]
    if isinstance(value, str) and len(value) > MOST_CHARS:
        return _beginning(value)
    return value


def _most(values: list[Any]) -> int:
    if not any(isinstance(one, dict | list) for one in values):
        return MOST_NUMBERS
    return 1 if len(json.dumps(shortened(values[0]))) > LARGE_ITEM_CHARS else MOST_ITEMS


def _beginning(text: str) -> str:
    """Whole lines where there are some, and three dots."""
    begun = text[:MOST_CHARS]
    return (begun.rpartition("\n")[0] or begun) + "\n..."
