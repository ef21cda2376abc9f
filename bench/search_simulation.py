"""Simulates the search for the sustainable rate on a server whose capacity differs from trial to trial.

Prints Markdown. The capacity is 100,000 requests/s with a coefficient of variation of 2 %; the searches start from the
bracket 20,000 to 200,000 and stop at a width of 2 %. Seeded: the same figures every time, in seconds.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from experiments.analysis.search import Found, SearchSettings, Trial, TryRate, decide

CAPACITY_RPS, LOW_RPS, HIGH_RPS = 100_000.0, 20_000.0, 200_000.0
WIDTH_RATIO = 0.02


@dataclass(frozen=True)
class Row:
    """Errors of the lower bound against the true capacity, in per cent."""

    name: str
    p5_pct: float
    p95_pct: float
    sd_pct: float
    bias_pct: float
    trials: float


def search_once(settings: SearchSettings, cov_ratio: float, source: Generator) -> tuple[Found, int]:
    """One search against a server of noisy capacity, and its trials."""
    trials: list[Trial] = []
    while isinstance(step := decide(settings, trials), TryRate):
        capacity = CAPACITY_RPS * float(np.exp(source.normal(0.0, cov_ratio)))
        trials.append(Trial(step.rate_rps, "pass" if step.rate_rps <= capacity else "fail"))
    if not isinstance(step, Found):
        raise RuntimeError(step.sentence)
    return step, len(trials)


def simulate(*, robust: bool, cov_ratio: float, searches: int, seed: int) -> Row:
    """Many searches of one kind."""
    settings = SearchSettings(LOW_RPS, HIGH_RPS, WIDTH_RATIO, robust=robust, bracketed=True)
    source = np.random.default_rng(seed)
    found = [search_once(settings, cov_ratio, source) for _ in range(searches)]
    errors = np.array([one.low_rps / CAPACITY_RPS * 100 - 100 for one, _ in found])
    p5, p95 = np.percentile(errors, [5, 95])
    return Row(
        "robust" if robust else "simple",
        float(p5),
        float(p95),
        float(np.std(errors, ddof=1)),
        float(np.mean(errors)),
        float(np.mean([count for _, count in found])),
    )


def table(rows: list[Row]) -> list[str]:
    """The Markdown."""
    lines = ["| search | error p5 … p95, % | sd, % | bias, % | trials |", "| --- | ---: | ---: | ---: | ---: |"]
    lines += [
        f"| {row.name} | {row.p5_pct:+.1f} … {row.p95_pct:+.1f} | {row.sd_pct:.2f} | {row.bias_pct:+.1f} "
        f"| {row.trials:.1f} |"
        for row in rows
    ]
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--searches", type=int, default=2000)
    parser.add_argument("--cov", type=float, default=0.02, help="coefficient of variation of the capacity")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    rows = [
        simulate(robust=robust, cov_ratio=given.cov, searches=given.searches, seed=given.seed)
        for robust in (False, True)
    ]
    print("\n".join(table(rows)))


if __name__ == "__main__":
    main()
