"""The timeline of a run: what the load did and what the machines did, over one time axis with the phases."""

from __future__ import annotations

from typing import Any

from experiments.models import Run
from experiments.registry.notes.chart_notes import of_run
from frontend.charts.channels import KINDS, group_of
from frontend.charts.samples import Part, run_samples_json
from frontend.shared.run_story import Story

TIMELINE = group_of("Timeline", (kind for kind in KINDS if kind.panel))

PANELS = (
    {"id": "load", "title": "requests/s", "unit": "requests/s", "weight": 3, "of_hosts": False},
    {"id": "latency", "title": "ms", "unit": "ms", "weight": 2, "of_hosts": False},
    {"id": "cpu", "title": "CPUs busy", "unit": "ratio", "weight": 3, "of_hosts": True},
)
"""From the top to the bottom: what the load tool saw, then what the machines did. A channel names its panel."""


def timeline_json(run: Run, story: Story, part: Part | None = None) -> dict[str, Any]:
    """The JSON of charts/timeline.js: lines by seconds since measuring began, phases and notes on the same axis."""
    found = run_samples_json(run, TIMELINE, story.measure_from_unix_s, story.measure_for_s, part)
    found["panels"] = PANELS
    began = [phase.from_unix_s for phase in story.phases if phase.from_unix_s is not None]
    zero_unix_s = found["zero_unix_s"] or (min(began) if began else None)
    if zero_unix_s is None:
        return {**found, "phases": [], "notes": []}
    phases = [
        {
            "label": phase.label,
            "state": phase.state,
            "from_s": round(phase.from_unix_s - zero_unix_s, 3),
            "to_s": None if phase.duration_s is None else round(phase.from_unix_s + phase.duration_s - zero_unix_s, 3),
        }
        for phase in story.phases
        if phase.from_unix_s is not None
    ]
    notes = [
        {
            "at_s": round(note.at.timestamp() - zero_unix_s, 3),
            "text": note.text,
            "author": note.author.get_username() if note.author else "",
        }
        for note in of_run(run)
    ]
    return {**found, "phases": phases, "notes": notes}
