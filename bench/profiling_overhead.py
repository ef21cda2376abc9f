"""What a profiler costs a server: runs with and without it, in pairs in random order, and the change with its interval.

The server is the small JVM of `bench.planted_truth` under load by wrk, each run is walked by BenchHub's own runner over
SSH on this machine. Prints Markdown. Needs wrk, a JDK, sshd and the jars of bin/get-profilers (BENCHHUB_PROFILERS).
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
import time
from pathlib import Path
from statistics import mean

from agents import events as e
from agents.spec import RunSpec
from bench.planted_truth import program, spec_of
from experiments.analysis.number_text import percent_with_interval
from experiments.analysis.profiling_cost import cost_of_profiling
from tests.agents.run_lab import Lab, Watched, make_lab
from tests.sshd import running_sshd

RATE, COST, IN_WINDOW = "requests per second", "CPU time per request", "CPU time per request, in the profile's window"
FIGURES = {RATE: True, COST: False, IN_WINDOW: False}
"""Whether more is better. The window begins when the profiler works: what its loading costs is in the others alone."""


async def measured(lab: Lab, spec: RunSpec) -> dict[str, float]:
    """The figures of one run. RuntimeError when it failed, left something on a host, or its profile is missing."""
    watched = Watched(lab)
    record = await watched.run(spec)
    if record.failed is not None or record.restored != e.Restored({}):
        raise RuntimeError(watched.log)
    if bool(spec.profilers) is not bool(watched.of(e.ProfileTaken)):
        raise RuntimeError(watched.log)
    report, load = record.reports[1].report, record.loads[1]
    rate = report["requests"] / report["duration_s"]
    used = [
        one.values["process.cpu_ratio"][1]
        for one in watched.of(e.Samples)
        if one.role == "sut"
        and "process.cpu_ratio" in one.values
        and 0 < one.at_unix_s - load.at_unix_s <= load.duration_s
    ]
    in_window = [one.cpu_time_s / one.requests for one in watched.of(e.ProfileTaken)] or [mean(used) / rate]
    return {RATE: rate, COST: mean(used) / rate, IN_WINDOW: in_window[0]}


async def pairs_of(options: argparse.Namespace, folder: Path) -> list[tuple[dict[str, float], dict[str, float]]]:
    found = []
    places = [folder / name for name in ("sut", "driver", "lab")]
    for place in places:
        place.mkdir()
    began = time.monotonic()
    with running_sshd(places[0]) as sut, running_sshd(places[1]) as driver:
        lab, jar = make_lab(sut, driver, places[2]), program(folder)
        for number in range(options.pairs):
            if time.monotonic() - began > options.seconds:
                break
            order = [False, True]
            random.Random(number).shuffle(order)  # noqa: S311 - repeatable on purpose
            pair = {
                is_profiled: await measured(
                    lab, spec_of(lab, jar, 0, options.profiler if is_profiled else "", options.load_s)
                )
                for is_profiled in order
            }
            found.append((pair[False], pair[True]))
            print(f"# {pair}", file=sys.stderr)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--profiler", default="async-profiler")
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--load-s", type=int, default=12, help="the measured load of a run")
    parser.add_argument("--seconds", type=float, default=3600.0, help="no pair begins after that")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="benchhub-overhead-") as folder:
        pairs = asyncio.run(pairs_of(options, Path(folder)))
    print("| profiler | figure | pairs | change with the profiler |\n| --- | --- | ---: | --- |")
    for name, higher_is_better in FIGURES.items():
        plain, profiled = ([side[name] for side in sides] for sides in zip(*pairs, strict=True))
        cost = cost_of_profiling(name, plain, profiled, higher_is_better=higher_is_better)
        change = percent_with_interval(cost.change_pct or 0.0, cost.ci95_pct)
        print(f"| {options.profiler} | {name} | {cost.n} | {change} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
