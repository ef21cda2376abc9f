"""An experiment as a scaling measurement: its variants by CPU count, the law through them, and what it advises."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, median
from typing import Any

from agents.base.cpuset import parse_cpus
from agents.drivers.base.driver import Driver
from agents.drivers.concurrency import at_concurrency, concurrency, concurrency_text
from agents.drivers.rates import offered_rate_rps
from experiments.analysis.best_load import LoadTried, best_load_sentences
from experiments.analysis.interval import Mean, mean_of
from experiments.analysis.scaling import ScalingLaw, fit_law
from experiments.analysis.scaling_points import (
    MIN_EFFICIENCY_RATIO,
    Efficiency,
    Instances,
    Quantised,
    advise_instances,
    efficiency,
    quantised,
)
from experiments.analysis.scaling_wording import (
    Conditions,
    advice_sentence,
    law_sentences,
    points_above,
    quantised_sentence,
    super_linear_sentence,
)
from experiments.models import Experiment, Run, Variant
from experiments.registry.documents.contents import content_of
from experiments.registry.metrics.normalisation import MOST_CPUS

_WHOLE_BELOW = 1000
"""Whole numbers of this size may be counts that were cut off; larger throughputs are whole by rounding."""


@dataclass(frozen=True)
class Repetition:
    number: int
    throughput_rps: float


@dataclass(frozen=True)
class Load:
    """The load of a group in words; `count` of `unit` (connections, users) where these alone make it."""

    text: str
    unit: str = ""
    count: int = 0


@dataclass(frozen=True)
class Group:
    """The counted repetitions of one variant under one load, all on the same number of CPUs."""

    name: str
    load: Load
    cpus: int
    instances: int
    repetitions: tuple[Repetition, ...]
    conditions: Conditions

    @property
    def values(self) -> list[float]:
        return [one.throughput_rps for one in self.repetitions]

    @property
    def mean_rps(self) -> float:
        return mean(self.values)


@dataclass(frozen=True)
class Point:
    """The best group of one CPU count; `tried` is how many there were to choose from."""

    group: Group
    mean: Mean
    efficiency: Efficiency
    ideal_rps: float
    tried: int


@dataclass(frozen=True)
class Scaling:
    """One instance on 1, 2, 4 … CPUs, and beside it several instances; sentences say what to make of it."""

    points: tuple[Point, ...]
    several: tuple[Point, ...]
    law: ScalingLaw | None
    whole_rates: Quantised | None
    advice: Instances | None
    sentences: tuple[str, ...]

    @property
    def base_cpus(self) -> int:
        return self.points[0].group.cpus


def groups_of(experiment: Experiment, variants: Sequence[Variant], runs: Sequence[Run]) -> list[Group]:
    """Each variant whose runs say on how many CPUs the server ran. Needs the runs' metrics and labels."""
    found = []
    driver = content_of(experiment.workload).driver
    for variant in variants:
        load = _load(experiment, driver, variant.offered_rate_rps, variant.concurrency)
        by_cpus: dict[int, list[Run]] = defaultdict(list)
        for run in runs:
            if run.variant_id == variant.pk and experiment.compares(run.block) and _counts(run):
                by_cpus[cpus_of(run)].append(run)
        by_cpus.pop(0, None)
        found += [
            _group(variant.name, load, cpus, _instances(variant, same[0]), same) for cpus, same in by_cpus.items()
        ]
    return found


def groups_of_runs(runs: Sequence[Run]) -> list[Group]:
    """Runs of no common experiment, also imported ones: those alike in recipe, workload and CPUs are repetitions."""
    found: dict[tuple[str, str, int, int], list[Run]] = defaultdict(list)
    for run in runs:
        if _counts(run) and (cpus := cpus_of(run)):
            own = run.variant.concurrency if run.variant else None
            key = (
                str(run.recipe or "imported"),
                str(run.workload or "imported") + (f", {own:,} at once" if own else ""),
                cpus,
                _whole(run.labels, "instances"),
            )
            found[key].append(run)
    return [
        _group(recipe, Load(workload), cpus, instances or 1, same)
        for (recipe, workload, cpus, instances), same in found.items()
    ]


def scaling_of(
    groups: Sequence[Group],
    *,
    total_cpus: int | None = None,
    cpus_per_node: int | None = None,
    min_efficiency_ratio: float = MIN_EFFICIENCY_RATIO,
) -> Scaling | None:
    """What the groups say together; None when fewer than two CPU counts were measured with one instance.

    `total_cpus` is what the advice is for: the largest CPU count measured, if it is not given.
    """
    single = [group for group in groups if group.instances == 1]
    best = _best(single)
    if len(best) < 2:
        return None
    base = best[0][0]
    points = tuple(_point(group, tried, base) for group, tried in best)
    several = tuple(_point(group, tried, base) for group, tried in _best([g for g in groups if g.instances > 1]))
    law = fit_law([p.group.cpus for p in points], [p.mean.value for p in points])
    sentences = [*law_sentences(law, len(points)), *_best_loads(single)]
    whole = _whole_rates(points)
    above = points_above([point.efficiency for point in (*points, *several)])
    if whole is not None and above:
        sentences.append(quantised_sentence(whole))
    if whole is None or whole.linear_k is None:
        conditions = {p.group.cpus: p.group.conditions for p in points}
        sentences += [
            super_linear_sentence(e, base.cpus, base.conditions, conditions.get(int(e.cpus), Conditions()))
            for e in above
        ]
    total = min(total_cpus or max(p.group.cpus for p in points), MOST_CPUS)
    advice = None
    if law is not None:
        advice = advise_instances(
            law.gamma.value,
            law.alpha.value,
            law.beta.value,
            cpus=total,
            cpus_per_node=cpus_per_node,
            min_efficiency_ratio=min_efficiency_ratio,
        )
        sentences.append(advice_sentence(advice, total, min_efficiency_ratio))
    return Scaling(points, several, law, whole if above else None, advice, tuple(sentences))


def cpus_of(run: Run) -> int:
    """On how many CPUs the server of this run could run; 0 = nobody knows.

    An executed run's were seen; of an imported one its label `cpus` comes before the CPUs of the machine.
    """
    seen, told = int(run.metrics.get("sut_cpus") or 0), _whole(run.labels, "cpus")
    return told or seen if run.origin == Run.Origin.IMPORTED else seen or told


def cpus_per_node(facts: Mapping[str, str]) -> int | None:
    """The CPUs of the smallest NUMA node that has some; None when the facts do not say."""
    sizes = [len(parse_cpus(cpus)) for key, cpus in facts.items() if key.startswith("cpu.numa.node") and cpus]
    return min((size for size in sizes if size), default=None)


def load_text(experiment: Experiment, variants: Sequence[Variant] = ()) -> str:
    """The load of an experiment, or of these variants of it: what its tool offers, or its connections or users."""
    driver = content_of(experiment.workload).driver
    own = {(variant.offered_rate_rps, variant.concurrency): None for variant in variants} or {(None, None): None}
    return "; ".join(dict.fromkeys(_load(experiment, driver, *one).text for one in own))


def _load(experiment: Experiment, driver: Driver, own_rate_rps: float | None, own_concurrency: int | None) -> Load:
    """What the tool offers, or how many connections or users it has; a variant's own values come first."""
    if own_concurrency:
        driver = at_concurrency(driver, own_concurrency)
    if rate_rps := own_rate_rps or offered_rate_rps(driver):
        return Load(f"{rate_rps:,.12g} requests/s")
    if count := concurrency(driver):
        return Load(concurrency_text(driver), driver.concurrency_option, count)
    return Load(str(experiment.workload))


def _best_loads(groups: Sequence[Group]) -> list[str]:
    """What the groups whose load is a number of connections, or of users, say of the best one."""
    found: list[str] = []
    for unit in dict.fromkeys(group.load.unit for group in groups if group.load.unit):
        tried = [
            LoadTried(group.cpus, group.load.count, tuple(group.values)) for group in groups if group.load.unit == unit
        ]
        found += best_load_sentences(tried, unit)
    return found


def _best(groups: Sequence[Group]) -> list[tuple[Group, int]]:
    """Per CPU count the group with the highest mean, and among how many it was."""
    by_cpus: dict[int, list[Group]] = defaultdict(list)
    for group in groups:
        by_cpus[group.cpus].append(group)
    return [(max(same, key=lambda g: g.mean_rps), len(same)) for _, same in sorted(by_cpus.items())]


def _point(group: Group, tried: int, base: Group) -> Point:
    found = mean_of(group.values)
    if found is None:
        raise ValueError("a group has at least one repetition")
    share = efficiency(group.cpus, group.values, base.values, base_cpus=base.cpus)
    return Point(group, found, share, base.mean_rps * group.cpus / base.cpus, tried)


def _whole_rates(points: Sequence[Point]) -> Quantised | None:
    """The check for rates that are cut off, when every single value is a small whole number."""
    values = [value for point in points for value in point.group.values]
    if any(value != int(value) or value >= _WHOLE_BELOW for value in values):
        return None
    return quantised([p.group.cpus for p in points], [int(median(p.group.values)) for p in points])


def _group(name: str, load: Load, cpus: int, instances: int, runs: Sequence[Run]) -> Group:
    repetitions = tuple(Repetition(run.number, run.throughput_rps or 0.0) for run in runs)
    server = _median(runs, "server_cpu_ratio")
    conditions = Conditions(
        _median(runs, "sut_cpu_ratio"), _median(runs, "sut_mhz"), None if server is None else server / cpus
    )
    return Group(name, load, cpus, instances, repetitions, conditions)


def _counts(run: Run) -> bool:
    return run.is_usable and bool(run.throughput_rps)


def _instances(variant: Variant, run: Run) -> int:
    """How many instances share the CPUs: the recipe's parameter `instances`, else the label; 1 without either."""
    return _whole(variant.parameters, "instances") or _whole(run.labels, "instances") or 1


def _whole(values: Mapping[str, Any], name: str) -> int:
    """A small whole number among parameters or labels; 0 when there is none."""
    text = str(values.get(name, ""))
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 4 else 0


def _median(runs: Sequence[Run], metric: str) -> float | None:
    values = [float(run.metrics[metric]) for run in runs if run.metrics.get(metric) is not None]
    return median(values) if values else None
