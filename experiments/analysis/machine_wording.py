"""What a comparison by kernel, OS or memory says, and what it cannot say."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from experiments.analysis.contrast import Contrast
from experiments.analysis.number_text import percent_with_interval


def change_text(found: Contrast) -> str:
    """+3.2 % [−1.0, 7.5]."""
    ci95_pct = None if found.ci95 is None else ((found.ci95[0] - 1) * 100, (found.ci95[1] - 1) * 100)
    return percent_with_interval((found.ratio - 1) * 100, ci95_pct)


def split_sentences(
    factors: Sequence[str],
    *,
    hosts: Sequence[Sequence[str]],
    spans: Sequence[tuple[int, int] | None],
    compared: bool,
) -> list[str]:
    """What else is in the difference between the levels: other factors, other machines, another time.

    `hosts` and `spans` (first and last run in time, None where nobody knows) are those of each level.
    """
    if not compared:
        return [f"{_names(factors)}: no two runs are alike in everything else, so nothing can be compared."]
    found = []
    if len(factors) > 1:
        found.append(
            f"{_names(factors)} differ together in these runs: a difference belongs to all of them, not to one."
        )
    shared = set.intersection(*(set(names) for names in hosts))
    if shared:
        found.append(f"{' and '.join(sorted(shared))} was measured at every level, so the hardware stays the same.")
        if _one_after_the_other(spans):
            found.append("The levels were measured one after the other: what else changed meanwhile counts in as well.")
    elif any(hosts):
        found.append(
            "Each level is a machine of its own, so whatever else differs between the machines counts in as well. "
            "The same host under both tells more."
        )
    else:
        found.append("The figures were imported: whatever else differed between the machines counts in as well.")
    return found


def effect_sentences(setup: str, baseline: str, levels: Sequence[str], more: Sequence[Contrast | None]) -> list[str]:
    """Whether a set-up brings the same at every level; none when too little was measured to say so."""
    known = [(level, found) for level, found in zip(levels, more, strict=True) if found is not None and found.ci95]
    if not known:
        return []
    first = next(level for level, found in zip(levels, more, strict=True) if found is None)
    differing = [f"{change_text(found)} with {level}" for level, found in known if found.differs]
    if differing:
        return [
            f"{setup} against {baseline} does not bring the same as with {first}: {'; '.join(differing)} beside it."
        ]
    return [f"{setup} against {baseline}: no level differs from {first} in what it brings, within the intervals."]


def _one_after_the_other(spans: Sequence[tuple[int, int] | None]) -> bool:
    """Whether all runs of a level were measured before all of another one, for every pair of levels."""
    known = sorted(span for span in spans if span is not None)
    return len(known) == len(spans) and all(a[1] < b[0] for a, b in pairwise(known))


def _names(factors: Sequence[str]) -> str:
    text = " and ".join([", ".join(factors[:-1]), factors[-1]]) if len(factors) > 1 else factors[0]
    return text[:1].upper() + text[1:]
