"""What a request costs in each function, and how that differs between two variants, from repeated profiled runs.

The figure is CPU microseconds per request: the function's share of the samples, times the CPU time of the server,
divided by the requests. It adds up to the CPU time per request, and stays comparable when throughput differs. The
run is the unit of replication: the samples of one run are no repetitions of it. Definitions and sources:
docs/profiles.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from experiments.analysis.families import AdjustedFamily, benjamini_hochberg, holm
from experiments.analysis.limits import ALPHA, MIN_FOR_INTERVAL, MIN_FOR_VERDICT
from experiments.analysis.verdict import Arms, Interval, change_of_means

MIN_RATIO = 0.005
"""A function below this share of the CPU time in both variants has no row of its own."""

MOST_UNKNOWN_RATIO = 0.2
"""Above this share of frames whose function nobody knows, a difference between the others says little."""

REST = "all other functions"
WHOLE = "all functions"
Correction = Literal["holm", "benjamini_hochberg"]
CostVerdict = Literal["more", "less", "not_separated", "too_few"]
Costs = NDArray[np.float64]
_US_PER_S = 1e6
_CORRECTIONS: Mapping[Correction, Callable[[Sequence[float]], AdjustedFamily]] = {
    "holm": holm,
    "benjamini_hochberg": benjamini_hochberg,
}


@dataclass(frozen=True)
class ProfiledRun:
    """A run with its profile: CPU time of the server and requests answered are those of the profile's window.

    `block` is that of the experiment; None without blocks. Ratios are of the profile's weight, by the function's
    normal name: those of `self_ratio` add up to 1. `samples` is how many were kept; None when that is not known.
    """

    block: int | None
    event: str | None
    engine: str | None
    cpu_s: float
    requests: int
    samples: int | None
    unknown_ratio: float
    self_ratio: Mapping[str, float]
    total_ratio: Mapping[str, float]

    @property
    def cost_us(self) -> float:
        """CPU microseconds per request of the whole server."""
        return self.cpu_s * _US_PER_S / self.requests


@dataclass(frozen=True)
class CostChange:
    """CPU microseconds per request in a function: the means of both variants, and the change between them.

    `ci95_us` is of the change, None below three runs. `adjusted_p` is corrected for all functions that were judged;
    only that decides the `verdict`, from five runs on.
    """

    name: str
    baseline_us: float
    candidate_us: float
    change_us: float
    ci95_us: Interval | None
    p_value: float | None
    adjusted_p: float | None = None
    verdict: CostVerdict = "too_few"


@dataclass(frozen=True)
class FunctionChanges:
    """The functions in the order in which they explain: those that are separated from 0 first, the larger change first.

    `own` is what functions cost themselves: with `rest` they add up to `whole`, the change of CPU per request.
    `total` is with all that a function called, so callers and callees have the same microseconds in theirs. Each is a
    family of its own. `n` runs of each variant were compared, `paired` block by block.
    """

    own: tuple[CostChange, ...]
    rest: CostChange
    whole: CostChange
    total: tuple[CostChange, ...]
    correction: Correction
    paired: bool
    n: int

    @property
    def explained_us(self) -> float:
        """The sum of all rows and the rest, in microseconds per request: it is the change of the whole."""
        return math.fsum(row.change_us for row in (*self.own, self.rest))


def why_incomparable(baseline: Sequence[ProfiledRun], candidate: Sequence[ProfiledRun]) -> str:
    """Why these profiles have no difference, in a sentence that says what to do; "" when they have one."""
    runs = [*baseline, *candidate]
    if not baseline or not candidate:
        return "There is no profiled run of one of the variants. Profile both."
    for what, seen in (("events", {run.event for run in runs}), ("engines", {run.engine for run in runs})):
        if len(seen) > 1:
            named = " and ".join(sorted(one or "one that is not known" for one in seen))
            return f"The profiles are of different {what}: {named}. Profile all runs in the same way."
    if any(run.requests <= 0 or not 0 < run.cpu_s < math.inf for run in runs):
        return "The CPU time of the server or its requests are not known of every profiled run."
    most = max(run.unknown_ratio for run in runs)
    if most > MOST_UNKNOWN_RATIO:
        return (
            f"In one of the profiles {most:.0%} of the CPU time is in functions that nobody knows; the limit is "
            f"{MOST_UNKNOWN_RATIO:.0%}. Install debug symbols, keep frame pointers, or take another profiler."
        )
    return ""


def compare_functions(
    baseline: Sequence[ProfiledRun],
    candidate: Sequence[ProfiledRun],
    *,
    correction: Correction = "holm",
    min_ratio: float = MIN_RATIO,
) -> FunctionChanges:
    """How the cost of each function differs: block by block where three blocks have one run of each, else by Welch's t.

    Holm's correction keeps false functions out of a whole comparison, Benjamini and Hochberg's keeps their share among
    the findings low. ValueError: the profiles cannot be compared, with the words of `why_incomparable`.
    """
    if why := why_incomparable(baseline, candidate):
        raise ValueError(why)
    arms = _arms(baseline, candidate)
    own = _judged(arms, lambda run: run.self_ratio, min_ratio, correction)
    kept = {row.name for row in own}
    rest = _change(REST, arms, lambda run: max(0.0, 1 - math.fsum(run.self_ratio.get(name, 0.0) for name in kept)))
    return FunctionChanges(
        own=own,
        rest=rest,
        whole=_change(WHOLE, arms, lambda _run: 1.0),
        total=_judged(arms, lambda run: run.total_ratio, min_ratio, correction),
        correction=correction,
        paired=arms.design == "blocked",
        n=min(len(arms.baseline), len(arms.candidate)),
    )


@dataclass(frozen=True)
class _Arms:
    """The runs that are compared, in block order where they are paired."""

    baseline: tuple[ProfiledRun, ...]
    candidate: tuple[ProfiledRun, ...]
    design: Arms


def _arms(baseline: Sequence[ProfiledRun], candidate: Sequence[ProfiledRun]) -> _Arms:
    a, b = _by_block(baseline), _by_block(candidate)
    common = sorted(a.keys() & b.keys())
    if len(common) >= MIN_FOR_INTERVAL:
        return _Arms(tuple(a[block] for block in common), tuple(b[block] for block in common), "blocked")
    return _Arms(tuple(baseline), tuple(candidate), "independent")


def _by_block(runs: Sequence[ProfiledRun]) -> dict[int, ProfiledRun]:
    """The run of each block; nothing when a run has no block, or a block has two."""
    found = {run.block: run for run in runs if run.block is not None}
    return found if len(found) == len(runs) else {}


def _judged(
    arms: _Arms, ratios: Callable[[ProfiledRun], Mapping[str, float]], min_ratio: float, correction: Correction
) -> tuple[CostChange, ...]:
    """The functions above the threshold in one of the variants, with the verdicts that the correction leaves."""
    names = {name for side in (arms.baseline, arms.candidate) for name in _above(side, ratios, min_ratio)}
    changes = [_change(name, arms, _ratio_of(name, ratios)) for name in sorted(names)]
    if min(len(arms.baseline), len(arms.candidate)) >= MIN_FOR_VERDICT:
        family = _CORRECTIONS[correction]([1.0 if one.p_value is None else one.p_value for one in changes])
        changes = [_decided(one, p) for one, p in zip(changes, family.adjusted_p, strict=True)]
    separated = ("more", "less")
    return tuple(sorted(changes, key=lambda one: (one.verdict not in separated, -abs(one.change_us), one.name)))


def _ratio_of(name: str, ratios: Callable[[ProfiledRun], Mapping[str, float]]) -> Callable[[ProfiledRun], float]:
    return lambda run: ratios(run).get(name, 0.0)


def _above(
    side: Sequence[ProfiledRun], ratios: Callable[[ProfiledRun], Mapping[str, float]], min_ratio: float
) -> set[str]:
    sums: dict[str, float] = {}
    for run in side:
        for name, ratio in ratios(run).items():
            sums[name] = sums.get(name, 0.0) + ratio
    return {name for name, total in sums.items() if total / len(side) >= min_ratio}


def _decided(change: CostChange, adjusted_p: float) -> CostChange:
    verdict: CostVerdict = "not_separated"
    if adjusted_p <= ALPHA:
        verdict = "more" if change.change_us > 0 else "less"
    return replace(change, adjusted_p=adjusted_p, verdict=verdict)


def _change(name: str, arms: _Arms, ratio: Callable[[ProfiledRun], float]) -> CostChange:
    a, b = (np.array([run.cost_us * ratio(run) for run in side]) for side in (arms.baseline, arms.candidate))
    found = CostChange(name, float(a.mean()), float(b.mean()), float(b.mean() - a.mean()), None, None)
    if min(len(a), len(b)) < MIN_FOR_INTERVAL:
        return found
    change = change_of_means(a, b, arms.design)
    counted = math.hypot(*(_counting_error(side, ratio) for side in (arms.baseline, arms.candidate)))
    # A few runs whose counts are equal by chance look as if there were no noise at all: counting alone makes this much.
    change = replace(change, standard_error=max(change.standard_error, counted))
    return replace(found, ci95_us=change.interval(0.95), p_value=change.p_value())


def _counting_error(side: Sequence[ProfiledRun], ratio: Callable[[ProfiledRun], float]) -> float:
    """The standard error of the mean cost that comes of counting samples alone (binomial); a floor, never the error."""
    variances = [run.cost_us**2 * (r := ratio(run)) * max(0.0, 1 - r) / run.samples for run in side if run.samples]
    return math.sqrt(math.fsum(variances)) / len(side)
