"""Annotations of runs: the whole run, its measured load, its phases, its steps applied and undone."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from typing import Any

from agents.events import PHASES
from experiments.models import Run, RunEvent
from experiments.registry.runs.windows import from_unix_s, measured_windows, unix_ms, whole_window
from experiments.telling.observing.mark import Mark, mark

FILE_CONTENT = "content"
"""The setting that holds a whole file, which perhaps root alone may read: no annotation shows it."""
MOST_SETTINGS = 10


def marks_of_runs(runs: Collection[Run], now: datetime) -> list[Mark]:
    """From start to end, or to now of a run that is under way."""
    found = []
    for run in runs:
        if window := whole_window(run, now):
            title = f"Run #{run.number} {run.get_outcome_display().lower() if run.outcome else run.get_state_display()}"
            tags = ["run", run.outcome or run.state, run.validity, *_tags(run)]
            found.append(mark(window.start_ms, title, _said(run), tags, page_of(run), end_ms=window.end_ms))
    return found


def measured_loads(runs: Collection[Run]) -> list[Mark]:
    """The windows in which the figures were measured."""
    windows = measured_windows(runs)
    return [
        mark(
            window.start_ms,
            f"Run #{run.number} measured",
            _said(run),
            ["measured", *_tags(run)],
            page_of(run),
            end_ms=window.end_ms,
        )
        for run in runs
        if (window := windows.get(run.pk))
    ]


def phases(runs: Sequence[Run]) -> list[Mark]:
    """Each phase with how long it took."""
    found = []
    for run, events in _events(runs, ("phase_started", "phase_finished")):
        took_s = {one.payload["phase"]: one.payload["duration_s"] for one in events if one.kind == "phase_finished"}
        began: dict[str, datetime] = {}
        for event in events:
            if event.kind == "phase_started":
                at_unix_s = event.payload.get("at_unix_s")  # old runs did not say when a phase began
                began.setdefault(event.payload["phase"], from_unix_s(at_unix_s) if at_unix_s else event.at)
        for phase in (name for name in PHASES if name in began):
            start_ms = unix_ms(began[phase])
            end_ms = start_ms + round(1000 * took_s[phase]) if phase in took_s else None
            title = f"Run #{run.number}: {phase.replace('_', ' ')}"
            said = f"It took {took_s[phase]:.3g} s." if phase in took_s else "It did not come to its end."
            found.append(mark(start_ms, title, said, ["phase", phase, *_tags(run)], page_of(run), end_ms=end_ms))
    return found


def steps(runs: Sequence[Run]) -> list[Mark]:
    """Each tuning step when it was applied and when it was undone."""
    found = []
    for run, events in _events(runs, ("step_intended", "step_applied", "step_reverted")):
        titles = {one.payload["index"]: one.payload["title"] for one in events if one.kind == "step_intended"}
        for event in events:
            index = event.payload["index"]
            if event.kind == "step_intended":
                continue
            done = "applied" if event.kind == "step_applied" else "undone"
            title = f"Run #{run.number}: {titles.get(index, f'step {index}')} {done}"
            said = _settings(event.payload) if done == "applied" else "It is as it was before."
            tags = ["step", done, *_tags(run)]
            found.append(mark(unix_ms(event.at), title, said, tags, page_of(run)))
    return found


def page_of(run: Run) -> str:
    return f"/t/{run.team.slug}/runs/{run.number}/"


def hosts_of(run: Run) -> list[str]:
    return [host.name for host in run.hosts]


def _tags(run: Run) -> list[str]:
    labels = [f"{key}={value}" for key, value in run.labels.items()]
    return ["benchhub", f"run:{run.number}", *(f"host:{name}" for name in hosts_of(run)), *labels, *run.tags]


def _said(run: Run) -> str:
    what = " · ".join(str(part) for part in (run.application, run.recipe, run.workload) if part)
    figures = [
        f"{run.throughput_rps:,.0f} requests/s" if run.throughput_rps is not None else "",
        f"p99 {run.latency_p99_ms:.4g} ms" if run.latency_p99_ms is not None and not run.hides_latency else "",
        run.validity,
        run.failure,
    ]
    return ". ".join(part for part in (what, ", ".join(filter(None, figures))) if part)


def _settings(payload: dict[str, Any]) -> str:
    """What was read back of each setting, but for the content of files."""
    shown = [
        f"{one['setting']}: " + (one["result"] if one["effective"] is None else f"{one['before']} → {one['effective']}")
        for one in payload["outcomes"]
        if one["setting"] != FILE_CONTENT
    ]
    more = f" and {len(shown) - MOST_SETTINGS} more" if len(shown) > MOST_SETTINGS else ""
    return "; ".join(shown[:MOST_SETTINGS]) + more


def _events(runs: Sequence[Run], kinds: Sequence[str]) -> Iterator[tuple[Run, list[RunEvent]]]:
    """The runs that have events of these kinds, with those, in one query."""
    of_run: dict[int, list[RunEvent]] = {}
    for event in RunEvent.objects.filter(run__in=runs, kind__in=kinds).order_by("run", "seq"):
        of_run.setdefault(event.run_id, []).append(event)
    for run in runs:
        if run.pk in of_run:
            yield run, of_run[run.pk]
