"""Plays the game of tuning: BenchHub's own search, verdict and confirmation beside what others do.

Prints Markdown: each policy on each system and budget, their means, and the aims of docs/tuning.md. Exit status 1 when
BenchHub's policy misses one. Every game has a seed; the same command prints the same figures.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import numpy as np

from bench.tuning.aims import NULL, aims, mean_of
from bench.tuning.game import Policy, play
from bench.tuning.own import BenchHub
from bench.tuning.peers import OptunaBest, OptunaThree, RandomBest, Tuna
from bench.tuning.scores import Score, Summary, score, summarised
from bench.tuning.smac_peer import MISSING, Smac, is_installed
from bench.tuning.synthetic import SYNTHETIC, synthetic
from bench.tuning.tables import measured
from bench.tuning.world import Lab, Table

OWN = "benchhub"
POLICIES: dict[str, Callable[[], Policy]] = {
    OWN: BenchHub,
    "random": RandomBest,
    "optuna": OptunaBest,
    "optuna3": OptunaThree,
    "smac": Smac,
    "tuna": Tuna,
}
HEAD = (
    "| policy | system | says better | error | 90 % | bias | covered | false better | violation | gain | regret "
    "| missed | runs | crashes | host hours |\n|" + " --- |" * 2 + " ---: |" * 13
)


def games(make: Callable[[int], Table], policy: Callable[[], Policy], budget: int, seeds: range) -> list[Score]:
    """One system and policy: a lab, its noise and a policy's chance for each seed."""
    scores: list[Score] = []
    for seed in seeds:
        lab = Lab(make(seed), seed)
        claim, history = play(lab, policy(), budget, seed=seed, noise=np.random.default_rng([seed, 2]))
        scores.append(score(lab, claim, history))
    return scores


def row(policy: str, system: str, one: Summary) -> str:
    shares = (one.better, one.error, one.error90, one.bias, one.covered, one.false_better, one.violation)
    cells = [f"{value:.1%}".replace("nan%", "-") for value in (*shares, one.usable_gain, one.regret, one.missed)]
    return f"| {policy} | {system} | {' | '.join(cells)} | {one.runs:.0f} | {one.crashes:.1f} | {one.host_hours:.1f} |"


def mean_row(policy: str, summaries: Mapping[str, Summary]) -> str:
    """The means over the systems that are not null."""
    real = {name: one for name, one in summaries.items() if not name.startswith(NULL)}
    means = {field: mean_of(real, field) for field in Summary.__dataclass_fields__}
    return row(policy, "**mean**", Summary(**{**means, "games": len(real)}))  # type: ignore[arg-type]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--tables", type=Path, help="a folder of measured tables; without it made-up systems are played"
    )
    parser.add_argument("--budgets", type=int, nargs="+", default=[50, 100, 200], help="runs")
    parser.add_argument("--seeds", type=int, default=30, help="games of each system")
    parser.add_argument("--null-seeds", type=int, default=100, help="games of each system without anything to gain")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--policies", nargs="+", choices=sorted(POLICIES), default=list(POLICIES))
    parser.add_argument("--systems", nargs="+", help="only those whose names begin so")
    options = parser.parse_args()
    systems = measured(options.tables) if options.tables else {name: partial(synthetic, name) for name in SYNTHETIC}
    if options.systems:
        systems = {name: make for name, make in systems.items() if name.startswith(tuple(options.systems))}
    policies = [name for name in options.policies if name != "smac" or is_installed()]
    if len(policies) < len(options.policies):
        print(MISSING)
    reached = []
    for budget in options.budgets:
        print(f"\n{budget} runs\n\n{HEAD}", flush=True)
        for policy in policies:
            summaries: dict[str, Summary] = {}
            for name, make in systems.items():
                count = options.null_seeds if name.startswith(NULL) else options.seeds
                seeds = range(options.first_seed, options.first_seed + count)
                summaries[name] = summarised(games(make, POLICIES[policy], budget, seeds))
                print(row(policy, name, summaries[name]), flush=True)
            print(mean_row(policy, summaries), flush=True)
            reached += aims(budget, summaries) if policy == OWN else []
    print("\n| runs | BenchHub's figure | reached | aim | |\n| ---: | --- | ---: | ---: | --- |")
    for one in reached:
        print(one.line())
    return 0 if all(one.met for one in reached) else 1


if __name__ == "__main__":
    sys.exit(main())
