"""What share of a profile each function has, itself and with all that it called, under normal names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from agents.profiles.base.profile import UNKNOWN, Edges, Profile, Weights
from agents.profiles.names import is_thread, normal_name

_NO_FUNCTION = -1
_AT_ONCE = 1_000_000
"""Frames of stacks that are looked at together: what bounds the memory."""


@dataclass(frozen=True)
class Functions:
    """Ratios of the profile's weight. Those of `self_ratio` add up to 1; a function that calls itself counts once.

    `unknown_ratio` is the weight of stacks whose last function is unknown, or that have none: what no row explains.
    """

    self_ratio: Mapping[str, float]
    total_ratio: Mapping[str, float]
    unknown_ratio: float


def functions_of(profile: Profile) -> Functions:
    """The functions of a profile; threads are none. The arithmetic is ours, docs/profiles.md."""
    names: dict[str, int] = {UNKNOWN: 0}
    of_frame = np.array(
        [_NO_FUNCTION if is_thread(one) else names.setdefault(normal_name(one), len(names)) for one in profile.frames],
        np.int64,
    )
    whole = profile.weight
    leaves = of_frame[profile.places[profile.edges[1:] - 1]]
    nothing_known = leaves == _NO_FUNCTION  # a thread, and no function in it
    own = np.bincount(np.where(nothing_known, 0, leaves), weights=profile.weights, minlength=len(names))
    total = np.zeros(len(names))
    for first, last in _blocks(profile):
        total += _totals(profile, of_frame, len(names), first, last)
    total[0] = min(whole, total[0] + profile.weights[nothing_known].sum())
    return Functions(
        {name: float(own[at] / whole) for name, at in names.items() if own[at] > 0},
        {name: float(total[at] / whole) for name, at in names.items() if total[at] > 0},
        float(own[0] / whole),
    )


def _blocks(profile: Profile) -> Iterator[tuple[int, int]]:
    """The stacks in blocks of some frames, each from its first stack to the one behind its last."""
    first = 0
    while first < len(profile):
        last = int(np.searchsorted(profile.edges, profile.edges[first] + _AT_ONCE, "right")) - 1
        yield first, max(first + 1, last)
        first = max(first + 1, last)


def _totals(profile: Profile, of_frame: Edges, count: int, first: int, last: int) -> Weights:
    """The weight of each function with all that it called, in these stacks."""
    edges = profile.edges[first : last + 1]
    functions = of_frame[profile.places[edges[0] : edges[-1]]]
    known = functions != _NO_FUNCTION
    stack = np.repeat(np.arange(last - first), np.diff(edges))[known]
    pairs = np.sort(stack * count + functions[known])
    once = pairs[np.diff(pairs, prepend=-1) > 0]  # a function of a stack once, however often it is in it
    weights = profile.weights[first:last][once // count]
    return np.bincount(once % count, weights=weights, minlength=count).astype(np.float64)
