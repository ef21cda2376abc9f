"""What a claim was worth, beside the truth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bench.tuning.game import Claim, Result
from bench.tuning.world import Lab

MISSABLE_GAIN = 0.03


@dataclass(frozen=True)
class Score:
    """One game. Gains and errors are ratios; NaN where nothing was claimed.

    `error`: by how much the claimed speed is too high. `usable_gain`: what is left after a recommendation that breaks
    a limit was rolled back. `regret`: the share of the speed that was left on the table.
    """

    is_better: bool
    error: float
    covered: float
    false_better: bool
    violation: bool
    usable_gain: float
    best_gain: float
    missed: bool
    runs: int
    crashes: int
    host_hours: float

    @property
    def regret(self) -> float:
        return 1 - (1 + self.usable_gain) / (1 + self.best_gain)


def score(lab: Lab, claim: Claim, history: Sequence[Result]) -> Score:
    """The claim of one game against what is true of its configuration."""
    truth, is_better = lab.truth, claim.config is not None
    place = lab.table.default if claim.config is None else lab.table.nearest(claim.config)
    true_gain, admissible = float(truth.gain[place]), bool(truth.admissible[place])
    interval = claim.low is not None and claim.high is not None and is_better
    return Score(
        is_better=is_better,
        error=(1 + claim.gain) / (1 + true_gain) - 1 if is_better else math.nan,
        covered=float((claim.low or 0.0) <= true_gain <= (claim.high or 0.0)) if interval else math.nan,
        false_better=is_better and true_gain <= 1e-9,
        violation=not admissible,
        usable_gain=true_gain if admissible else 0.0,
        best_gain=truth.best_gain,
        missed=not is_better and truth.best_gain > MISSABLE_GAIN,
        runs=len(history),
        crashes=sum(one.status == "crash" for one in history),
        host_hours=math.fsum(one.hours for one in history),
    )


@dataclass(frozen=True)
class Summary:
    """One system, policy and budget over its seeds: shares and ratios, runs and hours as means."""

    games: int
    better: float
    bias: float
    error: float
    error90: float
    covered: float
    false_better: float
    violation: float
    usable_gain: float
    regret: float
    missed: float
    runs: float
    crashes: float
    host_hours: float


def summarised(scores: Sequence[Score]) -> Summary:
    """Errors and coverage over the claims, everything else over the games; NaN without a claim."""
    errors = np.array([one.error for one in scores if one.is_better])
    covered = [one.covered for one in scores if not math.isnan(one.covered)]

    def mean(values: Sequence[float]) -> float:
        return float(np.mean(values)) if len(values) else math.nan

    return Summary(
        games=len(scores),
        better=mean([one.is_better for one in scores]),
        bias=mean(list(errors)),
        error=float(np.median(np.abs(errors))) if len(errors) else math.nan,
        error90=float(np.quantile(np.abs(errors), 0.9)) if len(errors) else math.nan,
        covered=mean(covered),
        false_better=mean([one.false_better for one in scores]),
        violation=mean([one.violation for one in scores]),
        usable_gain=mean([one.usable_gain for one in scores]),
        regret=mean([one.regret for one in scores]),
        missed=mean([one.missed for one in scores]),
        runs=mean([one.runs for one in scores]),
        crashes=mean([one.crashes for one in scores]),
        host_hours=mean([one.host_hours for one in scores]),
    )
