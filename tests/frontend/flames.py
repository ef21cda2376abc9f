"""Reads the tree of a flame graph as the page's script does."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray


def flame_of(content: bytes) -> tuple[dict[str, Any], NDArray[np.int32], NDArray[np.float64]]:
    """The head, the index of each node's name, and what each side weighs in each node itself."""
    length = int.from_bytes(content[:8], "little")
    head = json.loads(content[8 : 8 + length])
    start, nodes = 8 + length, head["nodes"]
    name = np.frombuffer(content, "<i4", nodes, start + 4 * nodes)
    own = np.frombuffer(content, "<f8", nodes * head["count"], start + 8 * nodes).reshape(head["count"], nodes)
    entries = head["slices"]["edges"][-1] if "slices" in head else 0
    assert start + (8 + 8 * head["count"]) * nodes + 12 * entries == len(content)
    return head, name, own
