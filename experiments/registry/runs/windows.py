"""When a run happened, and when its measured load did, by BenchHub's clock."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from experiments.models import Run, RunEvent


@dataclass(frozen=True)
class Window:
    """From when until when; both know their offset from UTC."""

    start: datetime
    end: datetime

    @property
    def start_ms(self) -> int:
        return unix_ms(self.start)

    @property
    def end_ms(self) -> int:
        return unix_ms(self.end)


def unix_ms(moment: datetime) -> int:
    """Milliseconds since 1970, without the rounding of a float."""
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def from_unix_s(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, tz=UTC)


def whole_window(run: Run, now: datetime) -> Window | None:
    """From its start to its end, or until now; None of a run that never started here, such as an imported one."""
    if run.started_at is None:
        return None
    return Window(run.started_at, run.finished_at or max(now, run.started_at))


def measured_window(run: Run) -> Window | None:
    """Of its measured load, which is t = 0 of its charts; None when none began."""
    return measured_windows([run]).get(run.pk)


def measured_windows(runs: Iterable[Run]) -> dict[int, Window]:
    """The same of several runs by their keys, in one query."""
    ended = {run.pk: run.finished_at for run in runs}
    loads = RunEvent.objects.filter(run__in=ended, kind="load_started", payload__measured=True).order_by("run", "seq")
    found: dict[int, Window] = {}
    for run_id, load in loads.values_list("run_id", "payload"):
        if run_id not in found:
            start = from_unix_s(load["at_unix_s"])
            end, over = start + timedelta(seconds=load["duration_s"]), ended[run_id]
            found[run_id] = Window(start, max(start, min(end, over)) if over else end)
    return found
