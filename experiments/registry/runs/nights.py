"""A trend as it is searched and shown: a point per night, with the runs behind it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from django.db.models import QuerySet
from numpy.typing import NDArray

from experiments.analysis.history_points import HistoryPoints, points_of
from experiments.models import Run, RunEvent


def nights_of(points: NDArray[np.void]) -> HistoryPoints:
    """The points of the history that the runs of a trend (`Trend.points`) are."""
    return points_of(points["at_s"], points["key"], points["value"])


def key_of(run: Run, boot_id: str) -> int:
    """What a run shares with those that are one point with it: its experiment's variant, else the boot of its server.

    0 = nobody knows the boot.
    """
    if run.variant_id is not None:
        return int(run.variant_id)
    digits = "".join(digit for digit in boot_id if digit in "0123456789abcdef")
    return -int(digits[:15] or "0", 16)


def boots_of(runs: Iterable[int] | QuerySet[Run]) -> dict[int, str]:
    """The boot of the server's host by run, from what was read of it; one query."""
    told = RunEvent.objects.filter(run__in=runs, kind="facts_collected", payload__role="sut").order_by("seq")
    return {run: str(boot or "") for run, boot in told.values_list("run_id", "payload__boot_id")}


def sessions_of(runs: Sequence[Run]) -> list[list[Run]]:
    """The runs by the point of the history that they are, the oldest point first; of those that have ended."""
    ended = sorted((run.finished_at.timestamp(), run.number, run) for run in runs if run.finished_at is not None)
    boots = boots_of(run.pk for _, _, run in ended if run.variant_id is None)
    found = points_of(
        np.array([at_s for at_s, _, _ in ended]),
        np.array([key_of(run, boots.get(run.pk, "")) for _, _, run in ended], dtype=np.int64),
        np.zeros(len(ended)),
    )
    return [[ended[place][2] for place in members] for members in found.members()]
