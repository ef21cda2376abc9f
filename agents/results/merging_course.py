"""The requests over time of several load tools as one course, each moved from its host's clock to that of the first."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from agents.results.request_figures import Course


@dataclass
class _Step:
    requests: int = 0
    errors: int = 0
    elapsed_ms: float = 0.0


def course_of_all(courses: Sequence[Course | None], ahead_s: Sequence[float] = ()) -> Course | None:
    """The sum of the courses; None when a tool has none.

    `ahead_s` is by how much the clock of each tool's host is ahead of that of the first's, none = the clocks agree. A
    course is moved by whole steps of its own, so it may be off by half a step.
    """
    known = [course for course in courses if course is not None]
    if len(known) < len(courses):
        return None
    step_s = math.lcm(*(round(course.step_s) for course in known))
    total: defaultdict[float, _Step] = defaultdict(_Step)
    threads: list[dict[float, int]] = []
    for course, clock_s in zip(known, ahead_s or [0.0] * len(known), strict=True):
        moved_s = round(clock_s / course.step_s) * course.step_s
        steps = [(at - moved_s) // step_s * step_s for at in course.ended_unix_s]
        rows = zip(steps, course.requests, course.errors, course.latency_mean_ms, strict=True)
        for at, requests, errors, mean_ms in rows:
            step = total[at]
            step.requests += requests
            step.errors += errors
            step.elapsed_ms += requests * mean_ms
        if course.active_threads is not None:
            most: dict[float, int] = {}
            for at, count in zip(steps, course.active_threads, strict=True):
                most[at] = max(count, most.get(at, 0))
            threads.append(most)
    at_s = sorted(total)
    return Course(
        step_s=float(step_s),
        ended_unix_s=tuple(at_s),
        requests=tuple(total[at].requests for at in at_s),
        errors=tuple(total[at].errors for at in at_s),
        latency_mean_ms=tuple(round(total[at].elapsed_ms / total[at].requests, 3) for at in at_s),
        active_threads=_threads(threads, at_s) if len(threads) == len(known) else None,
    )


def _threads(several: Sequence[Mapping[float, int]], at_s: Sequence[float]) -> tuple[int, ...]:
    """The sum of all tools. One that ended no request in a step still has the threads that it had before."""
    columns = []
    for most in several:
        last = max(most)
        seen = [most.get(at, -1 if at <= last else 0) for at in at_s]
        columns.append(list(accumulate(seen, lambda before, now: before if now < 0 else now, initial=0))[1:])
    return tuple(map(sum, zip(*columns, strict=True)))
