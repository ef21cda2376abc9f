"""What the hosts did in the runs of two variants, and what that leaves of their verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agents.spec import RunSpec
from experiments.analysis.arms import clocks_agree
from experiments.analysis.findings import Finding
from experiments.analysis.thresholds import Thresholds
from experiments.judging.evidence.judgement import finding_json
from experiments.judging.evidence.thresholds import thresholds_of
from experiments.models import Experiment, Run, Variant

_FULL = [{"check": "driver_cpu", "level": "warn"}]
_UNKNOWN = [{"check": "driver_cpu", "evidence": {"driver_cpu_mean_ratio": "unknown"}}]


@dataclass(frozen=True)
class Standing:
    """What is stored of a comparison: its outcome and sentence, with what the hosts leave of them."""

    outcome: str
    sentence: str
    conditions: dict[str, Any]


class Conditions:
    """The conditions under which the runs of an experiment were made, read once for all of its comparisons."""

    def __init__(self, experiment: Experiment, runs: Sequence[Run]) -> None:
        self._runs = [run for run in runs if run.is_usable]
        full = experiment.runs.filter(findings__contains=_FULL).exclude(findings__contains=_UNKNOWN)
        self._full_driver = set(full.values_list("pk", flat=True))
        self._thresholds: Thresholds = thresholds_of(experiment.team)

    def stand(self, baseline: Variant, candidate: Variant, outcome: str, sentence: str) -> Standing:
        """What remains of a verdict: nothing when the clocks differ, and a full driver hides differences."""
        clocks = self._clocks(baseline, candidate)
        runs = [run for run in self._runs if run.variant_id in (baseline.pk, candidate.pk)]
        full = sum(run.pk in self._full_driver for run in runs)
        conditions = {
            "clocks": finding_json(clocks) if clocks is not None else None,
            "full_driver_runs": full,
        }
        if clocks is not None and clocks.level == "invalid":
            return Standing("invalid", clocks.sentence, conditions)
        if outcome == "invalid" or not full or 2 * full < len(runs):
            return Standing(outcome, sentence, conditions)
        was_full = f"The driver was full in {full} of {len(runs)} runs"
        if outcome == "no_practical_difference":
            text = f"{was_full}, so it may hide a difference between the servers. Otherwise: {sentence}"
            return Standing("inconclusive", text, conditions)
        text = f"{sentence.rstrip('.')}. {was_full}: see whether it was the limit."
        return Standing(outcome, text, conditions)

    def _clocks(self, baseline: Variant, candidate: Variant) -> Finding | None:
        """The finding on the clocks of both variants; None when they are meant to differ.

        They are on other hosts or other numbers of CPUs, or the recipes differ in a step that may set the clock.
        """
        if baseline.sut_id != candidate.sut_id or _what_sets_it(baseline) != _what_sets_it(candidate):
            return None
        mhz = {
            variant.pk: [
                float(run.metrics["sut_mhz"])
                for run in self._runs
                if run.variant_id == variant.pk and run.metrics.get("sut_mhz")
            ]
            for variant in (baseline, candidate)
        }
        return clocks_agree(
            mhz[baseline.pk],
            mhz[candidate.pk],
            names=(baseline.name, candidate.name),
            thresholds=self._thresholds,
        )


def _what_sets_it(variant: Variant) -> tuple[Any, ...]:
    """The server's CPU set and the steps that may set the clock, as frozen at the launch."""
    if not variant.spec:
        return (variant.application_id, variant.recipe_id)
    spec = RunSpec.model_validate(variant.spec)
    steps = (step.model_dump_json() for step in spec.recipe.steps if step.sets_clock)
    return (spec.application.server.cpus, *steps)
