"""Before the launch: what an experiment will cost by the past of its recipes, and what its repetitions can find."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median, variance
from typing import Any, Literal

from django.db.models import FloatField
from django.db.models.fields.json import KeyTransform
from django.db.models.functions import Cast

from experiments.analysis.limits import MIN_FOR_INTERVAL
from experiments.analysis.power import detectable_change
from experiments.analysis.sequential import LOOKS
from experiments.analysis.verdict import needed_per_arm
from experiments.analysis.wording import duration
from experiments.models import Experiment, Host, Recipe, Run, RunEvent, Workload
from experiments.registry.experiments.rules import Rules, alpha_of
from experiments.registry.metrics.vocabulary import label_of
from experiments.running.queue.estimates import LAST_RUNS, Estimates, estimates_for

Basis = Literal["recipe", "host", "usual"]

LAST_FOR_NOISE = 60
"""Earlier runs that tell the noise; older ones saw another machine."""
COOL_DOWN = ("collect", "stop", "restore", "verify")
PREPARE = ("connect", "facts", "snapshot", "tune", "start")


@dataclass(frozen=True)
class Arm:
    """A variant as far as its cost goes."""

    name: str
    recipe: Recipe
    sut: Host
    is_baseline: bool


@dataclass(frozen=True)
class ArmCost:
    """One run of a variant. `basis` says what `prepare_s` and `cool_down_s` rest on: `runs` past runs of the recipe on
    this SUT, those of anything on this SUT (then cooling down is part of preparing), or what a run usually takes.
    """

    name: str
    basis: Basis
    runs: int
    prepare_s: float
    warm_up_s: float
    measure_s: float
    cool_down_s: float

    @property
    def total_s(self) -> float:
        return self.prepare_s + self.warm_up_s + self.measure_s + self.cool_down_s


@dataclass(frozen=True)
class Noise:
    """The spread of repetitions of one thing, pooled over `runs` earlier runs of the workload on the SUT."""

    cov_ratio: float
    runs: int


@dataclass(frozen=True)
class Finds:
    """The change that so many blocks find in four of five cases."""

    blocks: int
    change_ratio: float


@dataclass(frozen=True)
class Extent:
    """So many blocks, all of their runs, profiled twins too, and the time that these take one after the other."""

    blocks: int
    runs: int
    duration_s: float


@dataclass(frozen=True)
class Forecast:
    """`first` is what a launch queues (with the A/A check), `most` what the stop rule may bring it to.

    `needed_blocks` would bring the interval down to half the margin, by the noise of the past; None when that is not
    known, or when no reasonable number would.
    """

    arms: tuple[ArmCost, ...]
    first: Extent
    most: Extent
    noise: Noise | None
    needed_blocks: int | None
    finds: tuple[Finds, ...]
    sentences: tuple[str, ...]


def forecast(
    workload: Workload,
    arms: Sequence[Arm],
    *,
    rules: Rules,
    repetitions: int,
    metric: str,
    margin_ratio: float,
    order: str = Experiment.Order.BLOCKS,
    profilers: Sequence[str] | None = None,
) -> Forecast:
    """In at most seven queries, however many runs there are. Nothing is stored.

    `profilers` profile a twin of each run that is compared; None = those that the workload names.
    """
    costs = _arm_costs(workload, arms)
    first_blocks = rules.first_blocks(repetitions)
    most_blocks = repetitions if rules.stop_rule == Experiment.StopRule.FIXED else rules.max_blocks
    baseline = next((arm for arm in arms if arm.is_baseline), arms[0])
    base_s = next(cost.total_s for cost, arm in zip(costs, arms, strict=True) if arm is baseline)
    aa_runs = 2 * Experiment.AA_PAIRS if rules.aa_first else 0
    twins = bool(workload.body.get("profilers") if profilers is None else profilers)
    per_block = len(arms) * (2 if twins else 1)

    def extent(blocks: int) -> Extent:
        took = blocks * per_block * sum(cost.total_s for cost in costs) / len(arms) + aa_runs * base_s
        return Extent(blocks, blocks * per_block + aa_runs, took)

    paired = order != Experiment.Order.SEQUENTIAL
    noise = noise_of(workload, baseline.sut, metric)
    needed = None
    finds: tuple[Finds, ...] = ()
    if noise is not None and noise.cov_ratio > 0:
        sd = math.sqrt(math.log1p(noise.cov_ratio**2))
        needed = needed_per_arm(sd, math.log1p(margin_ratio), "blocked" if paired else "independent")
        alpha = alpha_of(rules, primary_metric=metric, candidates=len(arms) - 1)
        blocks = sorted({*LOOKS, first_blocks, most_blocks} - {1})
        finds = tuple(Finds(n, detectable_change(n, noise.cov_ratio, alpha=alpha, paired=paired)) for n in blocks)
    found = Forecast(costs, extent(first_blocks), extent(most_blocks), noise, needed, finds, ())
    check = f", {aa_runs} of them the baseline against itself" if aa_runs else ""
    if twins:
        check += f", {first_blocks * len(arms)} of them profiled twins, which count nowhere"
    said = _sentences(found, rules, label_of(metric), margin_ratio, str(baseline.sut.name), check)
    return Forecast(costs, found.first, found.most, noise, needed, finds, tuple(said))


def noise_of(workload: Workload, sut: Host, metric: str) -> Noise | None:
    """The noise of this metric among the last runs of this workload on this SUT, within what was the same.

    Runs of one variant of an experiment are the same, so are other runs of one recipe version and application.
    """
    rows = (
        Run.objects.filter(team_id=workload.team_id)
        .counted()
        .filter(workload__name=workload.name, sut=sut)
        .annotate(value=Cast(KeyTransform(metric, "metrics"), FloatField()))
        .filter(value__gt=0)
        .order_by("-number")
        .values_list("experiment_id", "variant_id", "recipe_id", "application_id", "workload_id", "value")
    )[:LAST_FOR_NOISE]
    groups: dict[tuple[int | None, ...], list[float]] = defaultdict(list)
    for experiment, variant, recipe, application, version, value in rows:
        same = (experiment, variant) if experiment is not None else (None, recipe, application, version)
        groups[same].append(math.log(value))
    repeated = [values for values in groups.values() if len(values) >= MIN_FOR_INTERVAL]
    degrees = sum(len(values) - 1 for values in repeated)
    if not degrees:
        return None
    pooled = sum(variance(values) * (len(values) - 1) for values in repeated) / degrees
    return Noise(math.sqrt(math.expm1(pooled)), sum(map(len, repeated)))


def _arm_costs(workload: Workload, arms: Sequence[Arm]) -> tuple[ArmCost, ...]:
    phases = workload.body.get("phases", ())
    warm_up_s, measure_s = _load_s(phases, "warm_up"), _load_s(phases, "measure")
    estimates = estimates_for({workload.pk}, {arm.sut.pk for arm in arms})
    past = _past_of(workload.team_id, {(arm.recipe.name, arm.sut.pk) for arm in arms})
    found = []
    for arm in arms:
        seen = past.get((arm.recipe.name, arm.sut.pk), [])
        if seen:
            prepare, cool = median(one[0] for one in seen), median(one[1] for one in seen)
            found.append(ArmCost(arm.name, "recipe", len(seen), prepare, warm_up_s, measure_s, cool))
        else:
            found.append(_without_past(arm, estimates, warm_up_s, measure_s))
    return tuple(found)


def _without_past(arm: Arm, estimates: Estimates, warm_up_s: float, measure_s: float) -> ArmCost:
    basis: Basis = "host" if arm.sut.pk in estimates.beside_s else "usual"
    return ArmCost(arm.name, basis, 0, estimates.takes_s(None, arm.sut.pk), warm_up_s, measure_s, 0.0)


def _past_of(team_id: int, wanted: Iterable[tuple[str, int]]) -> dict[tuple[str, int], list[tuple[float, float]]]:
    """(prepare_s, cool_down_s) of the last runs of each recipe on each SUT, whatever their workload was."""
    keys: dict[int, tuple[str, int]] = {}
    for recipe, sut in wanted:
        last = (
            Run.objects.filter(team_id=team_id, recipe__name=recipe, sut=sut)
            .filter(state=Run.State.FINISHED, outcome=Run.Outcome.SUCCEEDED)
            .order_by("-number")
            .values_list("pk", flat=True)[:LAST_RUNS]
        )
        keys |= dict.fromkeys(last, (recipe, sut))
    spent: dict[int, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    events = RunEvent.objects.filter(run__in=keys, kind="phase_finished")
    for run_id, payload in events.values_list("run_id", "payload"):
        spent[run_id][payload["phase"]] += float(payload["duration_s"])
    found: dict[tuple[str, int], list[tuple[float, float]]] = defaultdict(list)
    for run_id, seconds in spent.items():
        found[keys[run_id]].append((sum(seconds[p] for p in PREPARE), sum(seconds[p] for p in COOL_DOWN)))
    return found


def _load_s(phases: Iterable[Mapping[str, Any]], kind: str) -> float:
    return sum(float(phase.get("duration_s", 0)) for phase in phases if phase.get("kind") == kind)


def _sentences(found: Forecast, rules: Rules, label: str, margin_ratio: float, sut: str, check: str) -> list[str]:
    said = [f"{found.first.runs} runs{check}, about {duration(found.first.duration_s)}."]
    if found.most.runs > found.first.runs:
        said.append(
            f"If the answer is not clear, up to {found.most.blocks} blocks: {found.most.runs} runs, "
            f"about {duration(found.most.duration_s)}."
        )
    if rules.max_hours is not None and rules.stop_rule != Experiment.StopRule.FIXED:
        said.append(f"It stops before a look that would take it over {rules.max_hours:g} h.")
    margin = f"±{100 * margin_ratio:g} %"
    if found.noise is None:
        said.append(f"No earlier runs of this workload on {sut} tell the noise, so it may take {LOOKS[-1]} blocks.")
        return said
    cov = f"CoV {100 * found.noise.cov_ratio:.1f} %"
    now = next((one for one in found.finds if one.blocks == found.first.blocks), None)
    finds = (
        f"; with it, {now.blocks} blocks find a change of {100 * now.change_ratio:.1f} % in four of five cases"
        if now
        else ""
    )
    said.append(f"{label} in {found.noise.runs} earlier runs on {sut}: {cov}{finds}.")
    if found.needed_blocks is None:
        said.append(f"So much noise never settles {margin}: reduce it first.")
    elif found.needed_blocks > found.most.blocks:
        said.append(
            f"To settle {margin} takes about {found.needed_blocks} blocks, more than these: expect “inconclusive”."
        )
    else:
        said.append(f"To settle {margin} takes about {found.needed_blocks} blocks.")
    return said
