"""What of a run's events leaves BenchHub: for pages and API alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

NOT_SHOWN = {
    "step_intended": ("before", "undo"),
    "step_applied": ("effective",),
    "job_intended": ("cookie",),
    "job_started": ("cookie",),
    "load_reported": ("spectrum",),
}
"""Kind -> what only the runner needs: whole files, some of which only root may read, cookies of jobs, histograms.

What became of a setting is told by the outcomes of `step_applied`, which name a file by its size and SHA-256.
"""


def shown(kind: str, payload: Mapping[str, Any]) -> dict[str, Any]:
    """The payload without what only the runner needs."""
    return {key: value for key, value in payload.items() if key not in NOT_SHOWN.get(kind, ())}
