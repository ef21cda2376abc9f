"""What every monitor must offer: which /proc text to read on the host, and how to turn two readings into samples."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agents.base.channel_kind import ChannelKind

TICKS_PER_S = 100
"""The kernel shows CPU time in ticks of 10 ms on every platform that servers run on (USER_HZ)."""


@dataclass(frozen=True)
class Channel:
    """One line of a chart. `unit` as in the names of figures: ratio, bytes, bytes_per_s, count."""

    name: str
    unit: str


@dataclass(frozen=True)
class Reading:
    """One raw reading: `at_s` seconds of the host's monotonic clock (/proc/uptime) and the text."""

    at_s: float
    text: str


@dataclass(frozen=True)
class OfTheSet:
    """A channel for the CPUs of the watched process: the mean of `of_cpu` ({} is the CPU's number), of all `of_all`."""

    name: str
    unit: str
    of_cpu: str
    of_all: str


class Monitor(ABC):
    """Watches one thing on a host. The shell snippet runs on the host once per interval; all parsing is done here."""

    kind: str
    cost: str
    """What it costs on the host, in words, for the documentation and the run page."""
    channels: tuple[ChannelKind, ...]
    """What `samples` and `of_the_set` may give: names, units, titles, and which chart draws them."""
    of_the_set: tuple[OfTheSet, ...] = ()
    """The channels that are made of those of single CPUs."""

    def before(self, pids: Sequence[int]) -> str:
        """POSIX sh that every reading begins with, before the first clock is read; it prints nothing."""
        return ""

    @abstractmethod
    def snippet(self, pids: Sequence[int]) -> str:
        """POSIX sh that prints the raw text. `pids` are the processes to watch, () where there are none."""

    @abstractmethod
    def samples(self, before: Reading, now: Reading) -> Mapping[Channel, float]:
        """The samples for the time between two readings; what cannot be known is absent."""
