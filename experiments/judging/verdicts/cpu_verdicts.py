"""Why a candidate is slower: low or high CPU beside the low throughput, for variants of an experiment and for runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import mean

from agents.recordings.tools import RECORDERS
from experiments.analysis import wording
from experiments.analysis.findings import percent
from experiments.analysis.quadrant import SAME_DEMAND_RATIO, CpuVerdict, Demand, judge_cpu
from experiments.analysis.system_limit import SystemLimit
from experiments.analysis.verdict import Arms, Interval, Verdict, judge
from experiments.judging.evidence.roles import limit_of_runs, loaded_role
from experiments.judging.verdicts.verdict_numbers import VerdictNumbers
from experiments.models import Experiment, Run, StoredVerdict, Variant


@dataclass(frozen=True)
class NamedCpuVerdict:
    """The verdict on one candidate, against the baseline."""

    name: str
    verdict: CpuVerdict


def of_variants(
    experiment: Experiment, variants: Sequence[Variant], runs: Sequence[Run], verdicts: Sequence[StoredVerdict]
) -> list[NamedCpuVerdict]:
    """Every candidate that has counted runs with the CPU of the SUT, by the figures of its repetitions.

    Throughput is judged by the stored verdict, CPU per request in the same way: block by block, unless the order is
    sequential.
    """
    sides = {variant.pk: _side_of([run for run in runs if run.variant_id == variant.pk]) for variant in variants}
    baseline = next((sides[variant.pk] for variant in variants if variant.is_baseline), None)
    if baseline is None:
        return []
    stored = {one.candidate_id: _Throughput.of(one) for one in verdicts if one.metric == "throughput_rps"}
    arms: Arms = "independent" if experiment.is_sequential else "blocked"
    found = []
    for variant in variants:
        side = sides[variant.pk]
        if variant.is_baseline or side is None:
            continue
        judged = _judged(baseline, side, variant.name, arms, stored.get(variant.pk, _Throughput()))
        if experiment.is_sequential:
            judged = replace(judged, sentence=wording.with_order(judged.sentence))
        found.append(NamedCpuVerdict(variant.name, judged))
    return found


def of_runs(runs: Sequence[Run]) -> list[NamedCpuVerdict]:
    """Every run against the first one; single runs have no interval, so no cause is named."""
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
class _Throughput:
    """What is stored of the throughput: the interval that decided, None while it is too early; and what is in doubt."""

    pct: Interval | None = None
    doubt: str = ""

    @classmethod
    def of(cls, verdict: StoredVerdict) -> _Throughput:
        numbers = VerdictNumbers.of(verdict)
        if not numbers.enough:
            return cls()
        doubt = numbers.doubt
        if not doubt and numbers.family is not None and not numbers.family.stands:
            doubt = f"the verdict on its throughput does not hold among {numbers.family.size} comparisons."
        return cls(numbers.deciding_pct or numbers.ci95_pct, doubt)


@dataclass(frozen=True)
class _Side:
    """What BenchHub's own monitors saw, and how busy the CPUs were by each recorder that all of these runs had.

    `ms` is the CPU per request by block, `recorded_ms` the same by each recorder.
    """

    demand: Demand
    ms: Mapping[int | None, float]
    recorded_ratios: Mapping[str, float]
    recorded_ms: Mapping[str, Mapping[int | None, float]]
    limit: SystemLimit | None = None
    """Of a system of several hosts: which member limits it."""
    server: str = ""
    """What the loaded server is among the members of a system; "" for a single server."""


def _judged(
    baseline: _Side,
    candidate: _Side,
    name: str,
    arms: Arms | None = None,
    throughput: _Throughput = _Throughput(),
) -> CpuVerdict:
    """The verdict by BenchHub's own monitors, and whether the recorders beside them come to the same.

    `arms` is how the repetitions were made; None = a single run on each side.
    """

    def by(a: Demand, b: Demand, a_ms: Mapping[int | None, float], b_ms: Mapping[int | None, float]) -> CpuVerdict:
        cost = None if arms is None else _cost(a_ms, b_ms, arms)
        return judge_cpu(
            a,
            b,
            cost=cost,
            throughput_pct=throughput.pct,
            doubt=throughput.doubt,
            name=name,
            server=candidate.server,
        )

    verdict = by(baseline.demand, candidate.demand, baseline.ms, candidate.ms)
    said = []
    for tool in sorted(baseline.recorded_ratios.keys() & candidate.recorded_ratios.keys()):
        before, after = baseline.recorded_ratios[tool], candidate.recorded_ratios[tool]
        by_tool = by(
            replace(baseline.demand, cpu_ratio=before),
            replace(candidate.demand, cpu_ratio=after),
            baseline.recorded_ms[tool],
            candidate.recorded_ms[tool],
        )
        saw = f"{percent(after)} busy against {percent(before)}"
        own = f"{percent(candidate.demand.cpu_ratio)} against {percent(baseline.demand.cpu_ratio)}"
        if by_tool.quadrant != verdict.quadrant:
            said.append(f"By what {tool} recorded it is '{by_tool.label}': {saw}, where BenchHub saw {own}.")
        elif verdict.quadrant in ("too_early", "unclear"):
            said.append(f"{tool} recorded {saw}, BenchHub saw {own}.")
        else:
            said.append(f"{tool} comes to the same: {saw}.")
    said += _limits(baseline, candidate) if arms else []  # of single runs it stands with each of them
    return replace(verdict, sentence=" ".join([verdict.sentence, *said]))


def _limits(baseline: _Side, candidate: _Side) -> list[str]:
    """Which member limits the candidate, and the baseline where that is another one."""
    if candidate.limit is None:
        return []
    said = [candidate.limit.sentence]
    if baseline.limit is not None and baseline.limit.role != candidate.limit.role:
        said.append(f"Of the baseline: {baseline.limit.sentence}")
    return said


def _cost(a: Mapping[int | None, float], b: Mapping[int | None, float], arms: Arms) -> Verdict:
    """The CPU per request of two variants, compared as every other figure."""
    blocks = sorted({*a, *b}, key=lambda block: -1 if block is None else block)
    left, right = [a.get(block) for block in blocks], [b.get(block) for block in blocks]
    return judge(left, right, higher_is_better=False, margin_ratio=SAME_DEMAND_RATIO, design=arms)


def _side_of(runs: Sequence[Run]) -> _Side | None:
    """None when these runs do not say it, or ran on different CPU counts."""
    counted = [(run, figures) for run in runs if (figures := _figures_of(run)) is not None]
    if not counted or len({demand.cpus for _, demand in counted}) > 1:
        return None
    demands = {run.block: demand for run, demand in counted}
    seen = {tool: {run.block: _recorded_ratio(run, tool) for run, _ in counted} for tool in RECORDERS}
    known = {tool: {block: ratio for block, ratio in found.items() if ratio} for tool, found in seen.items()}
    known = {tool: found for tool, found in known.items() if len(found) == len(demands)}
    return _Side(
        Demand(
            mean(demand.throughput_rps for _, demand in counted),
            mean(demand.cpu_ratio for _, demand in counted),
            counted[0][1].cpus,
            _mean_if_all([demand.busy_cpus for _, demand in counted]),
            _mean_if_all([demand.server_cpus for _, demand in counted]),
        ),
        {block: one.ms_per_request for block, one in demands.items()},
        {tool: mean(found.values()) for tool, found in known.items()},
        {
            tool: {block: replace(demands[block], cpu_ratio=ratio).ms_per_request for block, ratio in found.items()}
            for tool, found in known.items()
        },
        limit_of_runs([run for run, _ in counted]),
        loaded_role(counted[0][0]),
    )


def _recorded_ratio(run: Run, tool: str) -> float | None:
    """How busy the server's CPUs were by this recorder; None when the run had none, or it saw nothing of the window."""
    ratio = run.metrics.get(f"{tool}_sut_cpu_ratio")
    return float(ratio) if ratio else None


def _figures_of(run: Run) -> Demand | None:
    """Throughput, CPU and CPUs of a run that counts."""
    figures = run.metrics
    if not (run.is_usable and run.throughput_rps and run.sut_cpu_ratio and figures.get("sut_cpus")):
        return None
    busy, own = figures.get("sut_busy_cpus"), figures.get("server_cpu_ratio")
    return Demand(run.throughput_rps, run.sut_cpu_ratio, float(figures["sut_cpus"]), busy, own)


def _mean_if_all(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return mean(known) if known and len(known) == len(values) else None
