"""Prints what finished runs cost beside their load: wall time minus load time, split by phase.

Reads the runs that were really executed (not the made-up history) from the database of BENCHHUB_DATA_DIR or
DATABASE_URL, for example after `manage.py demo` has finished its experiment. Prints Markdown.
"""

from __future__ import annotations

import argparse
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import bench.django_project  # noqa: F401 - before the models
from agents.events import PHASES, LoadStarted, PhaseFinished, from_json
from experiments.models import Run, RunEvent

LOAD_PHASES = ("warm_up", "measure")


@dataclass(frozen=True)
class Cost:
    """Seconds of one run: from the claim to the end, of load, and of each phase with the load taken off."""

    wall_s: float
    load_s: float
    phases_s: Mapping[str, float]

    @property
    def beside_load_s(self) -> float:
        return self.wall_s - self.load_s


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--team", default="demo", help="the team's slug")
    parser.add_argument("--newest", type=int, default=30, help="how many runs at most")
    given = parser.parse_args()
    runs = (
        Run.objects.filter(team__slug=given.team, state=Run.State.FINISHED, outcome=Run.Outcome.SUCCEEDED)
        .filter(origin=Run.Origin.EXECUTED, events__kind="load_reported")
        .distinct()
        .order_by("-number")[: given.newest]
    )
    costs = [cost_of(run) for run in runs]
    if not costs:
        raise SystemExit(f"Team {given.team} has no executed run that succeeded.")
    print("\n".join(table(costs)))


def cost_of(run: Run) -> Cost:
    """What one finished run cost, from its stored events."""
    events = RunEvent.objects.filter(run=run, kind__in=("phase_finished", "load_started")).order_by("seq")
    phases_s: defaultdict[str, float] = defaultdict(float)
    load_s = 0.0
    for payload in events.values_list("payload", flat=True):
        match from_json(payload):
            case PhaseFinished(phase, duration_s):
                phases_s[phase] += duration_s
            case LoadStarted() as load:
                load_s += load.duration_s
                phases_s["measure" if load.measured else "warm_up"] -= load.duration_s
    wall_s = (run.finished_at - run.started_at).total_seconds() if run.finished_at and run.started_at else 0.0
    return Cost(wall_s, load_s, phases_s)


def table(costs: Sequence[Cost]) -> list[str]:
    """The Markdown: one row per phase, median and range over the runs."""
    lines = [f"{len(costs)} runs, {statistics.median(c.load_s for c in costs):g} s of load each (median).", ""]
    lines += ["| part | median, s | range, s |", "| --- | ---: | ---: |"]
    for phase in PHASES:
        if values := [cost.phases_s[phase] for cost in costs if phase in cost.phases_s]:
            name = f"{phase}, beside the load itself" if phase in LOAD_PHASES else phase
            lines.append(_row(name, values))
    lines.append(_row("between the phases", [c.beside_load_s - sum(c.phases_s.values()) for c in costs]))
    lines.append(_row("**all: wall time minus load time**", [cost.beside_load_s for cost in costs]))
    return lines


def _row(name: str, values: Sequence[float]) -> str:
    return f"| {name} | {statistics.median(values):.2f} | {min(values):.2f} to {max(values):.2f} |"


if __name__ == "__main__":
    main()
