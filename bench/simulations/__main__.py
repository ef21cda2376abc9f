"""Prints each simulated figure beside its aim or the published one, and what it was before.

Ends with exit status 1 when one of them is missed. Seeded: the same seed gives the same figures. Needs no database.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import numpy as np

from bench.simulations import advice, bisect, history, loads, scaling, search, verdicts

SECTIONS = (
    *verdicts.SECTIONS,
    *history.SECTIONS,
    *loads.SECTIONS,
    *search.SECTIONS,
    *bisect.SECTIONS,
    *scaling.SECTIONS,
    *advice.SECTIONS,
)
HEAD = "| what | ours | aim or published | before | met |\n| --- | ---: | ---: | ---: | --- |"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=2000, help="of one figure; sections take a multiple of them")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="sections whose title has this word")
    asked = parser.parse_args(arguments)
    missed = 0
    for number, section in enumerate(SECTIONS):
        if asked.only.lower() not in section.title.lower():
            continue
        trials = max(1, round(asked.trials * section.factor))
        figures = section.simulate(np.random.default_rng((asked.seed, number)), trials)
        print(f"### {section.title}\n\n{HEAD}")
        print("\n".join(figure.row() for figure in figures), end="\n\n", flush=True)
        missed += sum(not figure.holds for figure in figures)
    if not asked.only:
        print(verdicts.speed(np.random.default_rng(asked.seed)))
    if missed:
        print(f"\n{missed} figures are missed.", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
