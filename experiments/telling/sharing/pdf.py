"""A sheet as PDF. The only module that imports `paper`: fpdf2 and what it needs load as long as all pages together.

So they are loaded with the first PDF, and not with this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import ModuleType

from experiments.telling.sharing.sheet import Sheet


@cache
def _paper() -> ModuleType:
    from experiments.telling.sharing import paper  # on demand, see above

    return paper


def sheet_pdf(sheet: Sheet, *, url: str, pictures: Mapping[str, bytes]) -> bytes:
    """The whole sheet. `pictures` are the PNGs of its plots by name; `url` stands at the foot of every page."""
    return bytes(_paper().sheet_pdf(sheet, url=url, pictures=pictures))
