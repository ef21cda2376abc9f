"""What changed in the configuration at a change point, short enough for a list and a mail."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from experiments.judging.comparing.comparison import configuration_diff
from experiments.models import Run
from experiments.registry.documents.configuration import Difference

MOST_NAMED = 5
_VALUE_CHARS = 60


def causes_json(run_before: int | None, run_after: int | None) -> dict[str, Any]:
    """What differs between two runs by their ids, as the alert stores it; empty when one of them is gone."""
    found = Run.objects.select_related("config").in_bulk([pk for pk in (run_before, run_after) if pk is not None])
    runs = [found[pk] for pk in (run_before, run_after) if pk in found]
    if len(runs) < 2:
        return {}
    difference = configuration_diff(runs)
    return {"asked": _short(difference.asked), "drift": _short(difference.drift)}


def causes_text(causes: dict[str, Any]) -> str:
    """One sentence of what `causes_json` made."""
    if not causes:
        return "What changed is not known: one of the runs is gone."
    parts = []
    for group, words in (("asked", "asked by the recipe"), ("drift", "changed although nobody asked")):
        found = causes[group]
        if found["count"]:
            more = found["count"] - len(found["named"])
            parts.append(f"{words}: {', '.join(found['named'])}{f' and {more} more' if more else ''}")
    text = "; ".join(parts) or "nothing differs in the configuration that was captured"
    return f"{text[0].upper()}{text[1:]}."


def _short(differences: Sequence[Difference]) -> dict[str, Any]:
    named = []
    for one in differences[:MOST_NAMED]:
        before, after = ("not there" if value is None else value[:_VALUE_CHARS] for value in one.values)
        named.append(f"{one.path} {before} → {after}")
    return {"count": len(differences), "named": named}
