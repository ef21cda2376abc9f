"""Several `key=value` in one field of a page: `branch=main,os=linux`, and how one with commas in it stands there."""

from __future__ import annotations

import re
from collections.abc import Sequence

from django.http import QueryDict

FIELDS = ("label", "param")
_PART = re.compile(r'\s*"((?:[^"]|"")*)"\s*(?:,|\Z)|[^,]*(?:,|\Z)')


def items_of(text: str) -> list[str]:
    """The items, with commas between them; what follows a comma without `=` still belongs to the item before it.

    In quotation marks an item is taken as it is, whatever it holds: `"opts=-Xlog:gc*,safepoint=info"`. A quotation mark
    in it is written twice.
    """
    found: list[str] = []
    gap: str | None = None
    """What has come since the last item that may go on; None where none may."""
    for match in _PART.finditer(text):
        part = match[0].removesuffix(",")
        if match[1] is not None:
            found.append(match[1].replace('""', '"'))
            gap = None
        elif not part.strip():
            gap = None if gap is None else f"{gap},{part}"
        elif gap is not None and "=" not in part:
            found[-1] += f"{gap},{part}"
            gap = ""
        else:
            found.append(part)
            gap = ""
    return [item.strip() for item in found]


def text_of(items: Sequence[str]) -> str:
    """The field that holds these items, as `items_of` reads them."""
    return ",".join(item if _stands_alone(item) else '"{}"'.format(item.replace('"', '""')) for item in items)


def join_pairs(given: QueryDict) -> None:
    """What an address has several times, as those of the API do, becomes the one field of the page."""
    for name in FIELDS:
        if len(items := given.getlist(name)) > 1:
            given[name] = text_of(items)


def _stands_alone(item: str) -> bool:
    return "=" in item and not item.startswith('"') and items_of(item) == [item]
