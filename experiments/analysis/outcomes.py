"""What a verdict is called wherever people read it: its outcome, or the reason that there is none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from experiments.analysis.limits import MIN_FOR_VERDICT

Undecided = Literal["running", "too_few", "fails", "baseline", "candidate", "zero"]
"""Why there is no verdict: its runs are under way, too few were asked for, every run of the candidate failed, too few
runs of the baseline or of the candidate count, a figure is 0."""

WORDS: Mapping[str, str] = {
    "better": "better",
    "better_size_uncertain": "better, size uncertain",
    "worse": "worse",
    "worse_size_uncertain": "worse, size uncertain",
    "no_practical_difference": "no difference",
    "inconclusive": "inconclusive",
    "not_held": "does not hold",
    "invalid": "no verdict",
    "running": "still running",
    "too_few": "too few repetitions",
    "fails": "fails",
    "baseline": "no baseline",
    "candidate": "does not count",
    "zero": "a figure of 0",
}
"""Outcome as it is shown -> its words. `invalid` is of verdicts that say in their sentence why there is none."""


def why_undecided(
    *,
    counted: tuple[int, int],
    finished: tuple[int, int],
    live: int,
    failed: int,
    zeros: int,
) -> Undecided:
    """Why there are too few figures for a verdict. Pairs are of baseline and candidate.

    `counted`: runs with a figure that counts; `finished`: runs that ended; `live`: runs of both that have not;
    `failed`: runs of the candidate that failed; `zeros`: runs of both whose figure is 0 or below, which has no ratio.
    Source: docs/verdicts.md.
    """
    if live:
        return "running"
    if finished[1] and failed == finished[1]:
        return "fails"
    if zeros and min(counted) < MIN_FOR_VERDICT:
        return "zero"
    for place, side in enumerate(("baseline", "candidate")):
        if counted[place] < MIN_FOR_VERDICT <= finished[place] or (finished[place] and not counted[place]):
            return "baseline" if side == "baseline" else "candidate"
    return "too_few"
