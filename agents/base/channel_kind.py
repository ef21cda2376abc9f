"""What the lines of a run's charts are called and which chart draws them, as whoever makes the channel says it."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class ChartGroup:
    """Channels that share a chart, because they share a unit and a question. `order` is its place in the list.

    `sometimes`: only some runs have such channels, so that the others do not offer the chart.
    """

    key: str
    label: str
    order: int
    sometimes: bool = False


@dataclass(frozen=True)
class ChannelKind:
    """Channels that are named and drawn alike.

    `pattern` is of whole names; Python, PostgreSQL and JavaScript read it alike. In `title` {host} is the host's part
    in the run, {1} the first group of the pattern. `panel` is where the timeline draws them ("" = not there), and
    `hidden_by` a channel of the same host that says more there. `events`: each value is one of these, not a reading.
    `compared` names the channel where several runs are laid over each other ("" = it is not offered there).
    """

    pattern: str
    unit: str
    title: str
    group: ChartGroup
    panel: str = ""
    hidden_by: str = ""
    events: str = ""
    compared: str = ""

    def matches(self, channel: str) -> bool:
        return re.fullmatch(self.pattern, channel) is not None

    def words(self, host: str, channel: str) -> str:
        """The title with the host's part in the run and the groups of the channel's name put in."""
        found = re.fullmatch(self.pattern, channel)
        title = self.title.replace("{host}", host)
        for number, group in enumerate(found.groups() if found else (), start=1):
            title = title.replace(f"{{{number}}}", group or "")
        return title
