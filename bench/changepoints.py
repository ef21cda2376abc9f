"""Measures the search for change points: against Apache Otava, one point at a time, its false alarms, its delay.

Prints Markdown. Times are CPU seconds, the best of several, so that a busy machine does not count. Otava pins another
numpy, so it lives in a virtual environment of its own: `python -m venv otava && otava/bin/pip install apache-otava`,
then `python -m bench.changepoints --otava otava/bin/python`. Seeded: the same tables every time, in minutes.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from experiments.analysis.changepoints import DEFAULT, Settings, as_otava, find_changes

Floats = NDArray[np.float64]

WINDOW, P = 50, 1e-3
REPEATS = 7
SERIES, LENGTH = 600, 100
NOISE_RATIO = 0.02
PEER = """
import json, sys, time
from otava.analysis import compute_change_points
found = []
for values, repeats in json.load(sys.stdin):
    times = []
    for _ in range(repeats):
        start = time.process_time()
        points, _ = compute_change_points(list(values), window_len=%d, max_pvalue=%g, min_magnitude=0.0)
        times.append(time.process_time() - start)
    found.append([[int(point.index) for point in points], min(times)])
json.dump(found, sys.stdout)
"""


def noise(n: int, source: Generator) -> Floats:
    return 1000 * (1 + source.normal(0, NOISE_RATIO, n))


def with_outliers(n: int, source: Generator) -> Floats:
    """Five values of a hundred are up to 30 % too low, as by a job of somebody else."""
    hit = source.random(n) < 0.05
    return np.asarray(noise(n, source) * np.where(hit, 1 - source.uniform(0.05, 0.3, n), 1.0))


def wandering(n: int, source: Generator) -> Floats:
    """Each value resembles the one before it: autocorrelation 0.3, the same spread."""
    steps = source.normal(0, NOISE_RATIO * np.sqrt(1 - 0.3**2), n)
    values = [source.normal(0, NOISE_RATIO)]
    for step in steps[1:]:
        values.append(0.3 * values[-1] + step)
    return 1000 * (1 + np.array(values))


def with_jumps(n: int, every: int, source: Generator) -> Floats:
    """Noise around a level that changes by 3 to 10 % every so many values."""
    if not every:
        return noise(n, source)
    sizes = source.uniform(0.03, 0.1, n // every + 1) * source.choice([-1, 1], n // every + 1)
    return np.asarray(noise(n, source) * np.repeat(np.cumprod(1 + sizes), every)[:n])


def cpu_s(work: Callable[[], object], repeats: int = REPEATS) -> float:
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def of_otava(python: str, cases: Sequence[Floats]) -> list[tuple[list[int], float]] | None:
    """The peer's answers and CPU seconds; None when it is not installed there."""
    given = json.dumps([(case.tolist(), REPEATS) for case in cases])
    try:
        done = subprocess.run(
            [python, "-c", PEER % (WINDOW, P)], input=given, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"Apache Otava is not there ({getattr(error, 'stderr', '') or error}).", file=sys.stderr)
        return None
    return [(indexes, seconds) for indexes, seconds in json.loads(done.stdout)]


def speed(python: str) -> None:
    source = np.random.default_rng(11)
    kinds = {"noise alone": 0, "a jump every 500": 500, "a jump every 100": 100}
    cases = {(name, n): with_jumps(n, every, source) for name, every in kinds.items() for n in (100, 1000, 10_000)}
    peer = of_otava(python, list(cases.values())) if python else None
    print("| series | points | BenchHub, ms | Apache Otava, ms | faster | same answer | one more point, ms |")
    print("| --- | ---: | ---: | ---: | ---: | --- | ---: |")
    for place, ((name, n), values) in enumerate(cases.items()):
        ours_s = cpu_s(lambda values=values: find_changes(values, as_otava(WINDOW, P)))  # type: ignore[misc]
        known = find_changes(values).windows
        longer = np.append(values, values[-1] * 1.01)
        more_s = cpu_s(lambda values=longer, known=known, n=n: find_changes(values, known=known, unchanged=n))  # type: ignore[misc]
        theirs = "not measured | | "
        if peer is not None:
            indexes, theirs_s = peer[place]
            same = indexes == find_changes(values, as_otava(WINDOW, P)).indexes
            theirs = (
                f"{theirs_s * 1e3:.1f} | {theirs_s / ours_s:.1f} x | {f'yes, {len(indexes)} points' if same else 'NO'}"
            )
        print(f"| {name} | {n:,} | {ours_s * 1e3:.2f} | {theirs} | {more_s * 1e3:.2f} |")


def false_alarms() -> None:
    rules = {
        "Otava's defaults": as_otava(WINDOW, P),
        "ours, p = 0.001": Settings(strict_p=None),
        "ours, p = 0.0001": Settings(p=1e-4, strict_p=None),
        "ours as it is: the limit by autocorrelation": DEFAULT,
    }
    made = {"independent, 2 %": noise, "with 5 % outliers": with_outliers, "autocorrelation 0.3": wandering}
    print(f"| P(at least 1 false alarm in {LENGTH} points) | {' | '.join(made)} |\n| --- | ---: | ---: | ---: |")
    series = {name: [make(LENGTH, np.random.default_rng((5, i))) for i in range(SERIES)] for name, make in made.items()}
    for rule, settings in rules.items():
        shares = [np.mean([bool(find_changes(one, settings).jumps) for one in found]) for found in series.values()]
        print(f"| {rule} | {' | '.join(f'{share:.3f}' for share in shares)} |")


def delay() -> None:
    print("\n| points after a step of 5 % at 2 % noise | suspected or confirmed | confirmed |\n| ---: | ---: | ---: |")
    for after in (1, 2, 3, 4, 6, 8, 12):
        seen = confirmed = 0
        for i in range(SERIES):
            values = noise(50 + after, np.random.default_rng((7, after, i)))
            values[50:] *= 0.95
            found = find_changes(values)
            near = [jump for jump in found.jumps if abs(jump.index - 50) <= 3]
            confirmed += bool(near)
            seen += bool(near or (found.suspected and abs(found.suspected.index - 50) <= 3))
        print(f"| {after} | {100 * seen / SERIES:.0f} % | {100 * confirmed / SERIES:.0f} % |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--otava", default="", help="the Python of a virtual environment with apache-otava")
    options = parser.parse_args()
    speed(options.otava)
    print()
    false_alarms()
    delay()


if __name__ == "__main__":
    main()
