"""What BenchHub's own policy must reach, and which of it was missed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from bench.tuning.scores import Summary

NULL = "null"
REGRET = {50: 0.15, 100: 0.09, 200: 0.06}
MISSED = {100: 0.10, 200: 0.05}
JUDGED_BUDGET = 100
ERROR, ERROR90, BIAS, COVERED = 0.015, 0.04, 0.005, 0.93
VIOLATION, VIOLATION_ANYWHERE = 0.03, 0.05
FALSE_BETTER, SPENT = 0.05, 0.70


@dataclass(frozen=True)
class Aim:
    """One figure beside its aim; both are ratios."""

    budget: int
    name: str
    value: float
    aim: float
    at_least: bool = False

    @property
    def met(self) -> bool:
        if math.isnan(self.value):  # nothing was claimed at all, so nothing shows that claims are true
            return False
        return self.value >= self.aim if self.at_least else self.value <= self.aim

    def line(self) -> str:
        """One row of the table of aims."""
        sign, met = "at least" if self.at_least else "at most", "met" if self.met else "MISSED"
        return f"| {self.budget} | {self.name} | {self.value:.1%} | {sign} {self.aim:.1%} | {met} |"


def mean_of(summaries: Mapping[str, Summary], field: str) -> float:
    """The mean over the systems that have this figure; NaN without any."""
    values = [value for one in summaries.values() if not math.isnan(value := float(getattr(one, field)))]
    return math.fsum(values) / len(values) if values else math.nan


def aims(budget: int, summaries: Mapping[str, Summary]) -> list[Aim]:
    """Every aim that this budget has, from the summaries of the systems by name."""
    real = {name: one for name, one in summaries.items() if not name.startswith(NULL)}
    null = {name: one for name, one in summaries.items() if name.startswith(NULL)}
    found: list[Aim] = []
    if real:
        if budget in REGRET:
            found.append(Aim(budget, "regret", mean_of(real, "regret"), REGRET[budget]))
        if budget in MISSED:
            found.append(Aim(budget, "missed", mean_of(real, "missed"), MISSED[budget]))
        if budget == JUDGED_BUDGET:
            found += [
                Aim(budget, "claim error, median", mean_of(real, "error"), ERROR),
                Aim(budget, "claim error, 90th percentile", mean_of(real, "error90"), ERROR90),
                Aim(budget, "bias of the claim", abs(mean_of(real, "bias")), BIAS),
                Aim(budget, "interval holds the truth", mean_of(real, "covered"), COVERED, at_least=True),
            ]
        most = VIOLATION if budget == JUDGED_BUDGET else VIOLATION_ANYWHERE
        found.append(Aim(budget, "limit broken by the recommendation", mean_of(real, "violation"), most))
    for name, one in null.items():
        found.append(Aim(budget, f"false better on {name}", one.false_better, FALSE_BETTER))
        if budget == JUDGED_BUDGET:
            found.append(Aim(budget, f"budget spent on {name}", one.runs / budget, SPENT))
    return found
