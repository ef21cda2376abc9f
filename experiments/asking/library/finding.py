"""What of the library has certain words: in its title, question and answer, or in anything that it is made of."""

from __future__ import annotations

from functools import cache

from experiments.asking.library.catalogue import ExperimentTemplate, Recorded, TuningTemplate, parts_of, text_of


def mentions(item: ExperimentTemplate | Recorded, asked: str) -> bool:
    """Whether the item or one of its parts has every word of `asked`, capitals aside; all have no word."""
    if isinstance(item, ExperimentTemplate):
        text = _text(item.folder, item.name, tuple((f"{kind}s", part.name) for kind, part in parts_of(item)))
    else:
        text = _text("recorded", item.name)
    if isinstance(item, TuningTemplate):
        text += "\ntuning search"
    return all(word in text for word in asked.lower().split())


@cache
def _text(kind: str, name: str, parts: tuple[tuple[str, str], ...] = ()) -> str:
    return "\n".join(text_of(*one) for one in ((kind, name), *parts)).lower()
