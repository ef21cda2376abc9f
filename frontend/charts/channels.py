"""Every channel that a chart of a run may draw, as the monitors, the recordings and the run itself name them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from agents.base.channel_kind import ChannelKind
from agents.monitors import MONITORS
from agents.recordings import RECORDINGS
from experiments.judging.evidence.run_channels import RUN_CHANNELS

KINDS: tuple[ChannelKind, ...] = (
    *(kind for monitor in MONITORS.values() for kind in monitor.channels),
    *(kind for recording in RECORDINGS.values() for kind in recording.channels),
    *RUN_CHANNELS,
)


@dataclass(frozen=True)
class Group:
    """Channels that share a chart. `pattern` is of whole names and also runs in the browser."""

    label: str
    pattern: str
    kinds: tuple[ChannelKind, ...] = ()
    sometimes: bool = False


def group_of(label: str, kinds: Iterable[ChannelKind], *, sometimes: bool = False) -> Group:
    found = tuple(kinds)
    return Group(label, f"^({'|'.join(kind.pattern for kind in found)})$", found, sometimes)


def _groups() -> dict[str, Group]:
    charts = sorted({kind.group for kind in KINDS}, key=lambda chart: chart.order)
    return {
        chart.key: group_of(chart.label, (kind for kind in KINDS if kind.group == chart), sometimes=chart.sometimes)
        for chart in charts
    }


GROUPS: dict[str, Group] = _groups()

COMPARED: dict[str, str] = {
    kind.pattern.replace("\\", ""): kind.compared
    for kind in sorted(KINDS, key=lambda kind: kind.group.order)
    if kind.compared
}
"""The channels that can be laid over each other for several runs, with their labels; their patterns are plain names."""


def kinds_json(group: Group) -> list[dict[str, Any]]:
    """What the chart modules must know of the channels of a group."""
    return [
        {
            "pattern": f"^({kind.pattern})$",
            "title": kind.title,
            "panel": kind.panel,
            "hidden_by": kind.hidden_by,
            "events": kind.events,
        }
        for kind in group.kinds
    ]
