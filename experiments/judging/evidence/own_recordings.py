"""What the recorders of a run wrote, as channels on the run's clock."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from agents.base.errors import ParseError
from agents.events import RecordingKept
from agents.record import Record
from agents.recordings import read_recording
from agents.recordings.base import Recording
from experiments.judging.evidence.load_course import Points
from experiments.models import Artifact, Run
from experiments.registry.errors import RequestError
from experiments.registry.runs.file_store import whole
from experiments.registry.runs.recording_channels import channel_name, kernel_names

logger = logging.getLogger(__name__)


def recorded_points(run: Run, record: Record, started_unix_s: float, own: Iterable[tuple[str, str]]) -> Points:
    """The channels of the kept files, such as `nmon.cpu.busy_ratio`. A file that cannot be read has none.

    The files are in UTC by their host's clock, so what is known of that clock's offset is taken off. `own` are the
    roles and channels that BenchHub sampled itself: they tell which CPUs were online.
    """
    own = list(own)
    points: Points = {}
    for kept in record.recordings.values():
        recording = _read(run, kept)
        if recording is None or recording.started_at is None:
            continue
        offset_s = record.facts[kept.role].clock_midpoint_s or 0.0
        shift_s = recording.started_at.timestamp() - offset_s - started_unix_s
        names = kernel_names(recording, [channel for role, channel in own if role == kept.role])
        for name, line in recording.channels.items():
            at_s = [round(at_s + shift_s, 3) for at_s in line.at_s]
            points[kept.role, channel_name(kept.recorder, (names or {}).get(name, name))] = (
                line.unit,
                at_s,
                list(line.values),
            )
    return points


def _read(run: Run, kept: RecordingKept) -> Recording | None:
    file = Artifact.objects.filter(run=run, name=kept.kept).first()
    if file is None:
        return None
    try:
        content = whole(file)
    except RequestError as error:
        logger.warning("run %s: %s cannot be read: %s", run.number, kept.kept, error.message)
        return None
    # A recorder is ended in the middle of whatever it writes: its last line may be half of one. A crash leaves NULs.
    text = content.rpartition(b"\n")[0].replace(b"\0", b"").decode("utf-8", "replace")
    try:
        return read_recording(kept.recorder, text)
    except ParseError as error:
        logger.warning("run %s: %s cannot be read: %s", run.number, kept.kept, error.message)
        return None
