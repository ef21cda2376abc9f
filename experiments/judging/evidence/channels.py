"""The in-run samples of all hosts of a run, and what they come to over its measured window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from experiments.judging.evidence.judgement import mean_in
from experiments.models import SampleSeries


@dataclass
class Channels:
    """The in-run samples of all hosts, t = 0 where measuring began."""

    series: dict[tuple[str, str], SampleSeries]

    def mean(self, role: str, channels: Sequence[str], duration_s: float) -> float | None:
        """The mean over the measured window and over these channels; None when none of them has a sample there."""
        means = [
            value
            for channel in channels
            if (found := self.series.get((role, channel)))
            and (value := mean_in(found.at_s, found.values, duration_s)) is not None
        ]
        return sum(means) / len(means) if means else None

    def rise(self, role: str, channel: str, duration_s: float) -> int | None:
        """By how much a counter rose in the window; None when it was not seen on both sides of some time in it."""
        if (found := self.series.get((role, channel))) is None:
            return None
        seen = list(zip(found.at_s, found.values, strict=True))
        before = [value for at_s, value in seen if at_s <= 0] or [value for _, value in seen[:1]]
        after = [value for at_s, value in seen if 0 < at_s <= duration_s]
        return max(0, round(after[-1] - before[-1])) if after and len(seen) > 1 else None

    def names(self, role: str, prefix: str) -> list[str]:
        return [channel for owner, channel in self.series if owner == role and channel.startswith(prefix)]
