"""Plants a function that costs 0, 1, 2, 5 and 10 % of CPU per request more, and looks for it in simulated profiles.

Each experiment is some blocks with a run of each variant. CPU per request differs from block to block and from run to
run, each function's cost from run to run; in some runs the compiler inlines a function into another one, and with
it goes its cost; samples are counted. Prints Markdown: how often the function was found, how often it stood first, how
often any other function was named, beside what people do without intervals: the largest raw difference of samples
(`jfrconv --diff`, where the eye looks first), and a test that takes samples for repetitions. Seeded; ends in time.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from experiments.analysis.distributions import normal_share
from experiments.analysis.families import holm
from experiments.analysis.function_costs import CostChange, ProfiledRun, compare_functions

Floats = NDArray[np.float64]
Sides = tuple[list[ProfiledRun], list[ProfiledRun]]

PLANTED_PERCENT = (0, 1, 2, 5, 10)
PLANTED = "com/acme/Page.burn"
FUNCTIONS = 80
BLOCK_NOISE, RUN_NOISE, FUNCTION_NOISE = 0.03, 0.02, 0.05
INLINED_RATIO = 0.3
"""How often a run has a function inlined into another; half of its cost is then seen there."""
REQUESTS = 100_000
COST_US = 200.0
ALPHA = 0.05
FOUND_AIM, FALSE_AIM = 0.9, 0.05


@dataclass
class Tally:
    """What came of the experiments of one planted percentage: numbers of experiments."""

    experiments: int = 0
    found: int = 0
    first: int = 0
    false: int = 0
    first_by_samples: int = 0
    false_by_samples: int = 0
    ranks: list[int] = field(default_factory=list)

    def ratio(self, count: int) -> float:
        return count / self.experiments if self.experiments else math.nan


def costs(source: Generator, planted_ratio: float) -> Floats:
    """The cost of each function in one run, in units of the whole before; the planted one is the last."""
    usual = 1 / np.arange(1, FUNCTIONS + 1)
    cost = usual / usual.sum() * np.exp(source.normal(0, FUNCTION_NOISE, FUNCTIONS))
    if source.random() < INLINED_RATIO:
        callee, caller = source.choice(FUNCTIONS, 2, replace=False)
        cost[caller] += cost[callee] / 2
        cost[callee] /= 2
    return np.append(cost, planted_ratio * np.exp(source.normal(0, FUNCTION_NOISE)))


def profiled(source: Generator, block: int, block_factor: float, planted_ratio: float, samples: int) -> ProfiledRun:
    """One run with its profile, as the product would have it."""
    cost = costs(source, planted_ratio)
    factor = block_factor * math.exp(source.normal(0, RUN_NOISE))
    counts = source.poisson(samples * cost)
    names = [f"com/acme/F{number}.call" for number in range(FUNCTIONS)] + [PLANTED]
    ratios = {name: float(count / counts.sum()) for name, count in zip(names, counts, strict=True) if count}
    cpu_s = COST_US * factor * float(cost.sum()) * REQUESTS / 1e6
    return ProfiledRun(block, "cpu", "async-profiler", cpu_s, REQUESTS, int(counts.sum()), 0.0, ratios, ratios)


def experiment(source: Generator, planted_ratio: float, blocks: int, samples: int) -> Sides:
    factors = np.exp(source.normal(0, BLOCK_NOISE, blocks))
    sides: Sides = ([], [])
    for block, factor in enumerate(factors):
        for side, ratio in zip(sides, (0.0, planted_ratio), strict=True):
            side.append(profiled(source, block, float(factor), ratio, samples))
    return sides


def summed(runs: list[ProfiledRun]) -> dict[str, float]:
    """The samples of all runs together, as somebody has them who merges the profiles."""
    found: dict[str, float] = {}
    for run in runs:
        for name, ratio in run.self_ratio.items():
            found[name] = found.get(name, 0.0) + ratio * (run.samples or 0)
    return found


def by_samples(a: dict[str, float], b: dict[str, float], judged: set[str]) -> tuple[str, set[str]]:
    """The function with the largest raw difference, and those that a test of two shares of samples separates."""
    n_a, n_b = sum(a.values()), sum(b.values())
    names = sorted(judged)
    p_values = []
    for name in names:
        x, y = a.get(name, 0.0), b.get(name, 0.0)
        share = (x + y) / (n_a + n_b)
        error = math.sqrt(share * (1 - share) * (1 / n_a + 1 / n_b)) or 1.0
        p_values.append(2 * normal_share(-abs(y / n_b - x / n_a) / error))
    first = max(names, key=lambda name: abs(b.get(name, 0.0) / n_b - a.get(name, 0.0) / n_a))
    adjusted = holm(p_values).adjusted_p
    return first, {name for name, p in zip(names, adjusted, strict=True) if p <= ALPHA}


def tallied(tally: Tally, sides: Sides) -> None:
    changes = compare_functions(*sides)
    named = [row.name for row in changes.own if row.verdict in ("more", "less")]
    rows = [row.name for row in changes.own]
    whole = changes.whole.change_us
    if not math.isclose(changes.explained_us, whole, rel_tol=1e-6, abs_tol=1e-6):
        raise AssertionError(f"the rows add up to {changes.explained_us}, the change is {whole}")
    tally.experiments += 1
    tally.found += any(_is_found(row) for row in changes.own)
    tally.first += named[:1] == [PLANTED]
    tally.false += any(name != PLANTED for name in named)
    tally.ranks += [rows.index(PLANTED) + 1] if PLANTED in rows else []
    first, separated = by_samples(summed(sides[0]), summed(sides[1]), set(rows))
    tally.first_by_samples += first == PLANTED
    tally.false_by_samples += any(name != PLANTED for name in separated)


def _is_found(row: CostChange) -> bool:
    return row.name == PLANTED and row.verdict == "more"


def simulated(
    percent: int, experiments: int, blocks: int, samples: int, *, seed: int, ended: Callable[[], bool]
) -> Tally:
    """The experiments of one planted percentage, as many as there was time for."""
    tally = Tally()
    for number in range(experiments):
        if ended():
            break
        source = np.random.default_rng((seed, percent, number))
        tallied(tally, experiment(source, percent / 100, blocks, samples))
    return tally


def row(percent: int, tally: Tally) -> str:
    ranks = sorted(tally.ranks)
    middle = str(ranks[len(ranks) // 2]) if ranks else "none"
    cells = [f"{tally.ratio(count):.1%}" for count in (tally.found, tally.first, tally.false)]
    others = [f"{tally.ratio(count):.1%}" for count in (tally.first_by_samples, tally.false_by_samples)]
    return f"| {percent} % | {tally.experiments} | {' | '.join(cells)} | {middle} | {' | '.join(others)} |"


def over(until_s: float) -> bool:
    return time.monotonic() >= until_s


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--experiments", type=int, default=1000, help="of each planted percentage")
    parser.add_argument("--blocks", type=int, default=8, help="runs of each variant in an experiment")
    parser.add_argument("--samples", type=int, default=3000, help="in a run: 30 s of one busy CPU at 100 Hz")
    parser.add_argument("--seconds", type=float, default=300.0, help="the longest that all of it may take")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    began = time.monotonic()
    print("| planted | experiments | found | first | any false | rank (median) | first by samples | false by samples |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |", flush=True)
    found: dict[int, Tally] = {}
    for place, percent in enumerate(PLANTED_PERCENT, start=1):
        until = began + options.seconds * place / len(PLANTED_PERCENT)
        found[percent] = simulated(
            percent,
            options.experiments,
            options.blocks,
            options.samples,
            seed=options.seed,
            ended=partial(over, until),
        )
        print(row(percent, found[percent]), flush=True)
    good = found[5].ratio(found[5].first) >= FOUND_AIM and found[0].ratio(found[0].false) <= FALSE_AIM
    print(
        f"\nAims: first at 5 % in {FOUND_AIM:.0%}, a false function at 0 % in at most {FALSE_AIM:.0%} of experiments."
    )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
