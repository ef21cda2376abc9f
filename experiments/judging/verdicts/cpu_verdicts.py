"""Why a candidate is slower: low or high CPU beside the low throughput, for variants of an experiment and for runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import mean
from typing import Any

from agents.recordings.tools import RECORDERS
from experiments.analysis.findings import percent
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
    sides = {variant.pk: _side_of([run for run in runs if run.variant_id == variant.pk]) for variant in variants}
    baseline = next((sides[variant.pk] for variant in variants if variant.is_baseline), None)
    if baseline is None:
        return []
    highs = {v.candidate_id: _ci95_high(v.numbers) for v in verdicts if v.metric == "throughput_rps"}
    return [
        NamedCpuVerdict(variant.name, _judged(baseline, side, variant.name, highs.get(variant.pk)))
        for variant in variants
        if not variant.is_baseline and (side := sides[variant.pk]) is not None
    ]


def of_runs(runs: Sequence[Run]) -> list[NamedCpuVerdict]:
    """Every run against the first one; single runs have no interval."""
    sides = [_side_of([run]) for run in runs]
    if not sides or sides[0] is None:
        return []
    baseline = sides[0]
    return [
        NamedCpuVerdict(f"#{run.number}", _judged(baseline, side, f"#{run.number}"))
        for run, side in zip(runs[1:], sides[1:], strict=True)
        if side is not None
    ]


@dataclass(frozen=True)
class _Side:
    """What BenchHub's own monitors saw, and how busy the CPUs were by each recorder that all of these runs had."""

    demand: Demand
    recorded_ratios: Mapping[str, float]


def _judged(baseline: _Side, candidate: _Side, name: str, ci95_high: float | None = None) -> CpuVerdict:
    """The verdict by BenchHub's own monitors, and whether the recorders beside them come to the same."""
    verdict = judge_cpu(baseline.demand, candidate.demand, name=name, throughput_ci95_high=ci95_high)
    said = []
    for tool in sorted(baseline.recorded_ratios.keys() & candidate.recorded_ratios.keys()):
        before, after = baseline.recorded_ratios[tool], candidate.recorded_ratios[tool]
        by_tool = judge_cpu(
            replace(baseline.demand, cpu_ratio=before),
            replace(candidate.demand, cpu_ratio=after),
            name=name,
            throughput_ci95_high=ci95_high,
        )
        saw = f"{percent(after)} busy against {percent(before)}"
        if by_tool.quadrant == verdict.quadrant:
            said.append(f"{tool} comes to the same: {saw}.")
        else:
            own = f"{percent(candidate.demand.cpu_ratio)} against {percent(baseline.demand.cpu_ratio)}"
            said.append(f"By what {tool} recorded it is '{by_tool.label}': {saw}, where BenchHub saw {own}.")
    return replace(verdict, sentence=" ".join([verdict.sentence, *said]))


def _side_of(runs: Sequence[Run]) -> _Side | None:
    """None when these runs do not say it, or ran on different CPU counts."""
    counted = [(run, figures) for run in runs if (figures := _figures_of(run)) is not None]
    if not counted or len({cpus for _, (_, _, cpus) in counted}) > 1:
        return None
    rates, busy, cpus = zip(*(figures for _, figures in counted), strict=True)
    demand = Demand(mean(rates), mean(busy), cpus[0])
    seen = {tool: [_recorded_ratio(run, tool) for run, _ in counted] for tool in RECORDERS}
    known = {tool: [ratio for ratio in found if ratio is not None] for tool, found in seen.items()}
    return _Side(demand, {tool: mean(found) for tool, found in known.items() if len(found) == len(counted)})


def _recorded_ratio(run: Run, tool: str) -> float | None:
    """How busy the server's CPUs were by this recorder; None when the run had none, or it saw nothing of the window."""
    ratio = run.metrics.get(f"{tool}_sut_cpu_ratio")
    return float(ratio) if ratio else None


def _figures_of(run: Run) -> tuple[float, float, float] | None:
    """Throughput, CPU and CPUs of a run that counts."""
    if run.is_usable and run.throughput_rps and run.sut_cpu_ratio and run.metrics.get("sut_cpus"):
        return run.throughput_rps, run.sut_cpu_ratio, float(run.metrics["sut_cpus"])
    return None


def _ci95_high(numbers: Mapping[str, Any]) -> float | None:
    interval = numbers.get("ci95_pct")
    return None if not interval else 1 + float(interval[1]) / 100
