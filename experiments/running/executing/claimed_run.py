"""What the worker of a run is told of it."""

from __future__ import annotations

from django.conf import settings

from agents.spec import RunSpec
from agents.working.store import ClaimedRun
from experiments.models import Run
from experiments.registry.hosts.installation import installation
from experiments.registry.runs.file_store import most_bytes


def claimed(run: Run) -> ClaimedRun:
    """The run as its worker needs it. The key has its time, which makes it unique for ever: a new database counts
    from 1 again."""
    return ClaimedRun(
        id=run.pk,
        number=run.number,
        key=f"r{run.pk}-{int(run.queued_at.timestamp()):x}",
        spec=RunSpec.model_validate(run.spec),
        fence=run.fence,
        attempts=run.attempts,
        heartbeat_s=settings.BENCHHUB_HEARTBEAT_S,
        patience_s=settings.BENCHHUB_PATIENCE_S,
        deadman_s=settings.BENCHHUB_DEADMAN_S,
        max_file_bytes=most_bytes(),
        installation=installation(),
        libraries=settings.BENCHHUB_PROFILERS,
    )
