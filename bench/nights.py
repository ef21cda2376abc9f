"""2,000 made-up nights with 12 planted steps: what BenchHub and Apache Otava find of them, when, and what is false.

`python -m bench.nights --otava PYTHON` prints the table of docs/history.md; PYTHON is that of a virtual environment
with apache-otava. `--store SLUG` also stores the nights as runs of a team, one by one and searched after each as real
ones are, and compares what its alerts say; the pages Trends and Alerts then show them. Seeded.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bench.simulations.history import DAY_S, RUN_S, looks
from experiments.analysis.changepoints import HISTORY

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from experiments.models import Alert, Run, Series, Team

Floats = NDArray[np.float64]

NIGHTS, REPETITIONS, LEVEL = 2000, 3, 18_000.0
SIZES = (0.02, 0.03, 0.05, 0.10) * 3
FIRST_STEP, APART = 120, 155
NIGHT_NOISE, RUN_NOISE, LIKENESS = 0.010, 0.008, 0.25
SLOW_SHARE, SLOW_UP_TO = 0.02, 0.15
SEED = 20261122
NEAR = 7
"""Nights by which what is found may lie from the step and be that step."""
WINDOW, P = 50, 1e-3
PEER = """
import json, sys
from otava.analysis import compute_change_points
values, found = json.load(sys.stdin), []
for n in range(2, len(values) + 1):
    points, _ = compute_change_points(values[:n], window_len=%d, max_pvalue=%g, min_magnitude=0.0)
    found.append([int(point.index) for point in points])
json.dump(found, sys.stdout)
"""


@dataclass(frozen=True)
class Step:
    """A planted change: the first night of the new level, and by how much."""

    night: int
    ratio: float


@dataclass(frozen=True)
class Nights:
    """Figures by night and repetition, and the steps in them."""

    values: Floats
    steps: tuple[Step, ...]

    @property
    def at_s(self) -> Floats:
        return np.arange(len(self.values))[:, None] * DAY_S + np.arange(self.values.shape[1]) * RUN_S


def made_up(seed: int = SEED) -> Nights:
    """Noise as of real machines: nights resemble the one before, runs of a night each other, a few nights are slow."""
    rng = np.random.default_rng(seed)
    night = rng.normal(0, NIGHT_NOISE, NIGHTS)
    for place in range(1, NIGHTS):
        night[place] = LIKENESS * night[place - 1] + np.sqrt(1 - LIKENESS**2) * night[place]
    slow = np.where(rng.random(NIGHTS) < SLOW_SHARE, rng.uniform(0.03, SLOW_UP_TO, NIGHTS), 0.0)
    sizes = rng.permutation(SIZES) * rng.permutation([-1, 1] * (len(SIZES) // 2))
    level, steps = np.ones(NIGHTS), []
    for place, size in enumerate(sizes.tolist()):
        at = FIRST_STEP + place * APART + int(rng.integers(-20, 21))
        level[at:] *= 1 + size
        steps.append(Step(at, size))
    runs = rng.normal(0, RUN_NOISE, (NIGHTS, REPETITIONS))
    return Nights(LEVEL * level[:, None] * (1 - slow[:, None]) * np.exp(night[:, None] + runs), tuple(steps))


@dataclass(frozen=True)
class Found:
    """What a search that looks again and again said: after how many nights a step was confirmed, and what is false."""

    delays: dict[Step, int]
    at_the_end: int
    false: int
    false_at_the_end: int


def judged(nights: Nights, looked: Iterator[tuple[int, Sequence[int]]]) -> Found:
    """`looked`: the number of nights so far, and the nights at which changes are confirmed then."""
    delays: dict[Step, int] = {}
    false: list[int] = []
    places: Sequence[int] = ()
    for known, places in looked:
        for place in places:
            step = _step(nights, place)
            if step is not None:
                delays.setdefault(step, known - step.night)
            elif not any(abs(place - other) <= NEAR for other in false):
                false.append(place)
    ends = [_step(nights, place) for place in places]
    return Found(delays, len({step for step in ends if step}), len(false), sum(step is None for step in ends))


def _step(nights: Nights, place: int) -> Step | None:
    return next((step for step in nights.steps if abs(step.night - place) <= NEAR), None)


def by_benchhub(nights: Nights) -> Found:
    """With a look after every run."""
    found = looks(nights.values.ravel(), HISTORY, nights.at_s.ravel(), since=2 * REPETITIONS)
    looked = ((one.length, one.indexes) for one in found)
    return judged(nights, looked)


def by_otava(nights: Nights, python: str) -> Found:
    """With its defaults on the means of the nights, with a look after every night."""
    script = PEER % (WINDOW, P)
    given = json.dumps(nights.values.mean(axis=1).tolist())
    done = subprocess.run([python, "-c", script], input=given, capture_output=True, text=True, check=True)
    return judged(nights, ((place + 2, found) for place, found in enumerate(json.loads(done.stdout))))


def table(found: dict[str, Found], nights: Nights) -> str:
    """By size of step how many were found and after how many nights; then what is false."""
    lines = [f"| | {' | '.join(found)} |", f"| --- |{' --- |' * len(found)}"]
    for size in sorted(set(SIZES)):
        steps = [step for step in nights.steps if abs(abs(step.ratio) - size) < 1e-9]
        cells = []
        for one in found.values():
            delays = sorted(one.delays[step] for step in steps if step in one.delays)
            after = f" after {', '.join(map(str, delays))} nights" if delays else ""
            cells.append(f"{len(delays)} of {len(steps)}{after}")
        lines.append(f"| steps of {size:.0%} found | {' | '.join(cells)} |")
    lines.append(f"| steps that stand at the end | {' | '.join(str(one.at_the_end) for one in found.values())} |")
    lines.append(f"| false at some look | {' | '.join(str(one.false) for one in found.values())} |")
    lines.append(f"| false at the end | {' | '.join(str(one.false_at_the_end) for one in found.values())} |")
    return "\n".join(lines)


def store(nights: Nights, slug: str) -> Found:
    """Store each run as if it had just ended; what the alerts say after each night."""
    import bench.django_project  # noqa: F401 - sets Django up, which the table alone does not need
    from experiments.judging.alerts.trends import follow
    from experiments.models import Alert, Run, Team
    from experiments.registry.runs.numbers import reserve_numbers
    from experiments.registry.runs.series import extend_series

    team, _ = Team.objects.get_or_create(slug=slug, defaults={"name": slug.capitalize(), "is_demo": True})
    start = datetime.now(UTC) - timedelta(days=NIGHTS)
    first_night: dict[int, int] = {}
    confirmed: list[tuple[int, list[int]]] = []
    series: Series | None = None
    for place, night in enumerate(nights.values):
        first = reserve_numbers(team, REPETITIONS)
        first_night[first] = place
        for repetition, value in enumerate(night.tolist()):
            run = _run(
                team, first + repetition, start + timedelta(seconds=float(nights.at_s[place, repetition])), value
            )
            run.save()
            series = extend_series(
                run, application="2,000 nights", workload="made up", tool="bench", latency_basis="service_time"
            )
            follow(run, series)
        alerts = Alert.objects.filter(trend__series=series, state=Alert.State.CONFIRMED, stands=True)
        confirmed.append((place + 1, [first_night[number] for number in _first_runs(alerts)]))
    print(f"Stored as {Run.objects.filter(team=team).count()} runs of team {slug}, series {series}.")
    print(f"Alerts that anybody would have been mailed: {Alert.objects.filter(confirmed_at__isnull=False).count()}.")
    return judged(nights, iter(confirmed))


def _first_runs(alerts: QuerySet[Alert]) -> list[int]:
    return list(alerts.filter(run_after__isnull=False).values_list("run_after__number", flat=True))


def _run(team: Team, number: int, at: datetime, value: float) -> Run:
    from experiments.models import Run

    return Run(
        team=team,
        number=number,
        origin=Run.Origin.IMPORTED,
        fingerprint="2000" * 16,
        tags=["made-up"],
        state=Run.State.FINISHED,
        outcome=Run.Outcome.SUCCEEDED,
        validity=Run.Validity.VALID,
        started_at=at,
        measured_at=at,
        finished_at=at,
        metrics={"throughput_rps": value},
        throughput_rps=value,
        is_demo=True,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--otava", default="", help="the Python of a virtual environment with apache-otava")
    parser.add_argument("--store", default="", metavar="SLUG", help="store the nights in this team, too")
    parser.add_argument("--seed", type=int, default=SEED)
    options = parser.parse_args()
    nights = made_up(options.seed)
    found = {"BenchHub": by_benchhub(nights)}
    if options.store:
        found["BenchHub, stored"] = store(nights, options.store)
    if options.otava:
        found["Apache Otava"] = by_otava(nights, options.otava)
    print(table(found, nights))
    return 0


if __name__ == "__main__":
    sys.exit(main())
