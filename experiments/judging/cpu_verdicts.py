"""Why a candidate is slower: low or high CPU beside the low throughput, for variants of an experiment and for runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any

from experiments.analysis.quadrant import CpuVerdict, Demand, judge_cpu
from experiments.models import Run, StoredVerdict, Variant


@dataclass(frozen=True)
class NamedCpuVerdict:
    """The verdict on one candidate, against the baseline."""

    name: str
    verdict: CpuVerdict


def of_variants(
    variants: Sequence[Variant], runs: Sequence[Run], verdicts: Sequence[StoredVerdict]
) -> list[NamedCpuVerdict]:
    """Every candidate that has counted runs with the CPU of the SUT, by the means of its repetitions.

    Throughput counts as low when the stored verdict's whole 95 % interval says so.
    """
    demands = {variant.pk: _demand_of([run for run in runs if run.variant_id == variant.pk]) for variant in variants}
    baseline = next((demands[variant.pk] for variant in variants if variant.is_baseline), None)
    if baseline is None:
        return []
    highs = {v.candidate_id: _ci95_high(v.numbers) for v in verdicts if v.metric == "throughput_rps"}
    return [
        NamedCpuVerdict(
            variant.name,
            judge_cpu(baseline, demand, name=variant.name, throughput_ci95_high=highs.get(variant.pk)),
        )
        for variant in variants
        if not variant.is_baseline and (demand := demands[variant.pk]) is not None
    ]


def of_runs(runs: Sequence[Run]) -> list[NamedCpuVerdict]:
    """Every run against the first one; single runs have no interval."""
    demands = [_demand_of([run]) for run in runs]
    if not demands or demands[0] is None:
        return []
    baseline = demands[0]
    return [
        NamedCpuVerdict(f"#{run.number}", judge_cpu(baseline, demand, name=f"#{run.number}"))
        for run, demand in zip(runs[1:], demands[1:], strict=True)
        if demand is not None
    ]


def _demand_of(runs: Sequence[Run]) -> Demand | None:
    """Throughput and CPU of the runs that count; None when they do not say it, or ran on different CPU counts."""
    seen = [
        (run.throughput_rps, run.sut_cpu_ratio, run.metrics["sut_cpus"])
        for run in runs
        if run.is_usable and run.throughput_rps and run.sut_cpu_ratio and run.metrics.get("sut_cpus")
    ]
    if not seen or len({cpus for _, _, cpus in seen}) > 1:
        return None
    return Demand(mean(rps for rps, _, _ in seen), mean(busy for _, busy, _ in seen), float(seen[0][2]))


def _ci95_high(numbers: Mapping[str, Any]) -> float | None:
    interval = numbers.get("ci95_pct")
    return None if not interval else 1 + float(interval[1]) / 100
