"""What the hosts did in the runs of two variants, and what that leaves of their verdict."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db.models import QuerySet

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
        self._full_driver = with_full_driver(experiment.runs.all())
        self._thresholds: Thresholds = thresholds_of(experiment.team)

    def stand(self, baseline: Variant, candidate: Variant, metric: str, outcome: str, sentence: str) -> Standing:
        """What remains of a verdict: nothing when the clocks differ, and a full driver measures itself."""
        clocks = self._clocks(baseline, candidate)
        arms = [[run.pk for run in self._runs if run.variant_id == variant.pk] for variant in (baseline, candidate)]
        stands = behind_driver(arms, self._full_driver, metric, outcome, sentence)
        conditions = {"clocks": finding_json(clocks) if clocks is not None else None, **stands.conditions}
        if clocks is not None and clocks.level == "invalid":
            return Standing("invalid", clocks.sentence, conditions | {"doubt": clocks.sentence})
        return replace(stands, conditions=conditions)

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


def with_full_driver(runs: QuerySet[Run]) -> set[int]:
    """Those of the runs in which the load tool was full."""
    full = runs.filter(findings__contains=_FULL).exclude(findings__contains=_UNKNOWN)
    return set(full.values_list("pk", flat=True))


def behind_driver(
    arms: Sequence[Sequence[int]], full_driver: Collection[int], metric: str, outcome: str, sentence: str
) -> Standing:
    """What a full driver leaves of a verdict on these two arms of runs.

    Full in half of the runs of each, it measured itself: no outcome on throughput or latency stands. Full in half of
    all, it may hide a difference.
    """
    counts = [(sum(run in full_driver for run in arm), len(arm)) for arm in arms]
    full, runs = (sum(column) for column in zip(*counts, strict=True))
    conditions = {"full_driver_runs": full}
    if outcome == "invalid" or not full or 2 * full < runs:
        return Standing(outcome, sentence, conditions)
    was_full = f"The driver was full in {full} of {runs} runs"
    if all(count and 2 * count >= of for count, of in counts) and _is_of_the_load(metric):
        what = "throughput is" if metric.startswith("throughput") else "latency is"
        text = f"{was_full}, of both variants, so their {what} the driver's and not the servers'. Otherwise: {sentence}"
        return Standing("inconclusive", text, conditions | {"doubt": f"{was_full}, of both variants."})
    if outcome == "no_practical_difference":
        text = f"{was_full}, so it may hide a difference between the servers. Otherwise: {sentence}"
        return Standing("inconclusive", text, conditions | {"doubt": f"{was_full}."})
    text = f"{sentence.rstrip('.')}. {was_full}: see whether it was the limit."
    return Standing(outcome, text, conditions)


def _is_of_the_load(metric: str) -> bool:
    """Whether the load tool measures it, so that a full one measures itself."""
    return metric.startswith(("throughput_", "latency_"))


def _what_sets_it(variant: Variant) -> tuple[Any, ...]:
    """The server's CPU set and the steps that may set the clock, as frozen at the launch."""
    if not variant.spec:
        return (variant.application_id, variant.recipe_id)
    spec = RunSpec.model_validate(variant.spec)
    steps = (step.model_dump_json() for step in spec.recipe.steps if step.sets_clock)
    return (spec.application.server.cpus, *steps)
