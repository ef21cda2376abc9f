"""How an experiment is judged and when it stops: chosen with the question, before the first run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, get_args

from experiments.analysis.limits import MIN_FOR_VERDICT
from experiments.analysis.sequential import LOOKING, LOOKS, MIN_FOR_PRECISION, StopKind, StopRule
from experiments.models import Experiment
from experiments.registry.errors import RequestError
from experiments.registry.metrics.own_metrics import check_metrics

MOST_BLOCKS = 100
MOST_GATE_METRICS = 10


@dataclass(frozen=True)
class Rules:
    """`max_blocks` and `max_hours` (of machine time) cap what a stop rule may add; `target_ratio` is the half-width of
    the 95 % interval that `until_precise` waits for; `gate_metrics` decide beside the primary metric. `canaries_first`:
    its hosts are checked before its first run.
    """

    stop_rule: str = Experiment.StopRule.FIXED
    target_ratio: float | None = None
    max_blocks: int = LOOKS[-1]
    max_hours: float | None = None
    aa_first: bool = False
    canaries_first: bool = False
    gate_metrics: Sequence[str] = ()

    def check(self, team_id: int, *, order: str, variants: int) -> None:
        """RequestError names the rule that makes no sense for this team."""
        if self.stop_rule not in Experiment.StopRule.values:
            known = ", ".join(Experiment.StopRule.values)
            raise RequestError(f"There is no stop rule {self.stop_rule!r}; known: {known}.", field="stop_rule")
        if len(self.gate_metrics) > MOST_GATE_METRICS:
            raise RequestError(f"At most {MOST_GATE_METRICS} metrics can gate.", field="gate_metrics")
        check_metrics(team_id, self.gate_metrics, field="gate_metrics")
        if self.stop_rule == Experiment.StopRule.FIXED:
            return
        if order == Experiment.Order.SEQUENTIAL:
            raise RequestError("A stop rule compares whole blocks; sequential order has none.", field="order")
        if variants < 2:
            raise RequestError("A stop rule needs a candidate beside the baseline.", field="stop_rule")
        if self.max_hours is not None and not 0 < self.max_hours < math.inf:
            raise RequestError("The cap in hours must be positive.", field="max_hours")
        if self.stop_rule in LOOKING:
            least, most = MIN_FOR_VERDICT, LOOKS[-1]
        else:
            least, most = MIN_FOR_PRECISION, MOST_BLOCKS
            if self.target_ratio is None or not 0 < self.target_ratio < 1:
                raise RequestError("Say how narrow the interval is to be (0.01 is ±1 %).", field="target_ratio")
        if not least <= self.max_blocks <= most:
            raise RequestError(f"This stop rule needs a cap between {least} and {most} blocks.", field="max_blocks")

    def fields(self) -> dict[str, Any]:
        """The model's fields that say this."""
        return {**asdict(self), "gate_metrics": list(self.gate_metrics)}

    def first_blocks(self, repetitions: int) -> int:
        """The blocks of the first launch: up to the first look."""
        if self.stop_rule in LOOKING:
            return LOOKS[0]
        return MIN_FOR_PRECISION if self.stop_rule == Experiment.StopRule.UNTIL_PRECISE else repetitions


def rules_of(experiment: Experiment) -> Rules:
    return Rules(
        stop_rule=experiment.stop_rule,
        target_ratio=experiment.target_ratio,
        max_blocks=experiment.max_blocks,
        max_hours=experiment.max_hours,
        aa_first=experiment.aa_first,
        canaries_first=experiment.canaries_first,
        gate_metrics=tuple(experiment.gate_metrics),
    )


def stop_rule_of(experiment: Experiment, candidates: int) -> StopRule:
    """The rule as the analysis knows it: candidates and deciding metrics share the chance of a false alarm."""
    return _stop_rule(rules_of(experiment), candidates * len(experiment.deciding_metrics))


def alpha_of(rules: Rules, *, primary_metric: str, candidates: int) -> float:
    """The alpha of one comparison that decides."""
    return _stop_rule(rules, candidates * len({primary_metric, *rules.gate_metrics})).alpha


def _stop_rule(rules: Rules, comparisons: int) -> StopRule:
    kinds: dict[str, StopKind] = {kind: kind for kind in get_args(StopKind)}
    return StopRule(
        kind=kinds[rules.stop_rule],
        max_blocks=rules.max_blocks,
        target_ratio=rules.target_ratio,
        comparisons=max(1, comparisons),
    )
