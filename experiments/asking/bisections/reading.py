"""The read side of bisections: names, steps and what is still to come; pages and API alike."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from experiments.analysis.bisection import steps_left
from experiments.analysis.sequential import LOOKS
from experiments.asking.bisections.live import steps_over
from experiments.models import Bisection, BisectionStep
from experiments.running.queue.estimates import estimates_for


@dataclass(frozen=True)
class Remaining:
    """What is still to come, at least and at most; a step that stays unclear adds another one."""

    steps: int
    least: timedelta
    most: timedelta


def steps_of(bisection: Bisection) -> list[BisectionStep]:
    return list(bisection.steps.select_related("experiment"))


def remaining(bisection: Bisection) -> Remaining:
    """Two runs a block, and twice as many with profilers; from the first look to the cap in blocks for each step."""
    if bisection.state != Bisection.State.RUNNING:
        return Remaining(0, timedelta(), timedelta())
    steps = steps_left(len(bisection.candidates), steps_over(bisection))
    estimates = estimates_for({bisection.workload_id}, {bisection.sut_id})
    runs = 4 if bisection.workload.body.get("profilers") else 2
    block = timedelta(seconds=runs * estimates.takes_s(bisection.workload_id, bisection.sut_id))
    return Remaining(steps, steps * min(LOOKS[0], bisection.max_blocks) * block, steps * bisection.max_blocks * block)
