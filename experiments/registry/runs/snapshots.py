"""Content addresses of flat configurations."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping


def content_digest(values: Mapping[str, str]) -> str:
    """SHA-256 over the sorted path -> value pairs: the same content has the same address."""
    text = json.dumps(dict(values), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
