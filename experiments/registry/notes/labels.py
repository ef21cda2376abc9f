"""Labels and tags: what they may look like, wherever they come in."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from experiments.registry.errors import RequestError

MAX_LABELS = 50
_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.\-/]{0,62}")
_TAG = re.compile(r"[^\s,:#]{1,60}")


def check_labels(labels: Mapping[str, str]) -> dict[str, str]:
    """The labels when they fit, else RequestError (field `labels`)."""
    if len(labels) > MAX_LABELS:
        raise RequestError(f"There are at most {MAX_LABELS} labels.", field="labels")
    for key, value in labels.items():
        if not _KEY.fullmatch(key):
            raise RequestError(
                f"The label {key[:63]!r} must begin with a letter or digit and hold only letters, digits and _ . - /",
                field="labels",
            )
        if len(value) > 200 or not value.isprintable():
            raise RequestError(f"The value of label {key} must be at most 200 printable characters.", field="labels")
    return dict(labels)


def check_tags(tags: Iterable[str]) -> list[str]:
    """The tags without doubles when they fit, else RequestError (field `tags`)."""
    found = list(dict.fromkeys(tags))
    if len(found) > MAX_LABELS:
        raise RequestError(f"There are at most {MAX_LABELS} tags.", field="tags")
    for tag in found:
        if not _TAG.fullmatch(tag) or not tag.isprintable():
            raise RequestError(f"The tag {tag[:60]!r} must be one word of at most 60 characters.", field="tags")
    return found
