"""What share of a profile each function has, itself and with all that it called, under normal names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from agents.profiles.base.profile import UNKNOWN, Profile
from agents.profiles.names import is_thread, normal_name

_NO_FUNCTION = -1


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
    functions = of_frame[profile.places]
    whole = profile.weight
    leaves = functions[profile.edges[1:] - 1]
    nothing_known = leaves == _NO_FUNCTION  # a thread, and no function in it
    own = np.bincount(np.where(nothing_known, 0, leaves), weights=profile.weights, minlength=len(names))
    known = functions != _NO_FUNCTION
    stack = np.repeat(np.arange(len(profile)), np.diff(profile.edges))[known]
    pairs = np.sort(stack * len(names) + functions[known])
    once = pairs[np.diff(pairs, prepend=-1) > 0]  # a function of a stack once, however often it is in it
    total = np.bincount(once % len(names), weights=profile.weights[once // len(names)], minlength=len(names))
    total[0] = min(whole, total[0] + profile.weights[nothing_known].sum())
    return Functions(
        {name: float(own[at] / whole) for name, at in names.items() if own[at] > 0},
        {name: float(total[at] / whole) for name, at in names.items() if total[at] > 0},
        float(own[0] / whole),
    )
