"""Whether hosts themselves got slower: their short checks before an experiment against their own earlier ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from agents.running.canaries import CANARIES
from experiments.analysis.host_canaries import (
    MIN_EARLIER,
    MOST_EARLIER,
    CanaryChange,
    canary_change,
    canary_sentence,
)
from experiments.models import Experiment, Host, HostCanary

MOST_SHOWN = 60
"""Checks of a host that its page and the API show, the newest first."""


@dataclass(frozen=True)
class JudgedCanary:
    """One check of a host; `change` is None with fewer than five earlier ones, or without a figure.

    `to`: the host at the other end of a check of the network. `sentence` is "" where nothing changed.
    """

    host: str
    to: str
    check: str
    title: str
    unit: str
    value: float | None
    problem: str
    earlier: int
    change: CanaryChange | None
    sentence: str
    at: datetime

    @property
    def slower(self) -> bool:
        return self.change is not None and self.change.slower

    @property
    def change_ratio(self) -> float | None:
        """The change as a part of the mean of the earlier ones: -0.1 is 10 % less."""
        return None if self.change is None else self.change.ratio - 1

    @property
    def interval_ratio(self) -> tuple[float, float] | None:
        """Where `change_ratio` lies with 95 %."""
        return None if self.change is None else (self.change.ci95[0] - 1, self.change.ci95[1] - 1)


@dataclass(frozen=True)
class HostsBefore:
    """What is said of an experiment's hosts before its verdict. `sentence` is "" where they were not checked."""

    checks: tuple[JudgedCanary, ...] = ()

    @property
    def changed(self) -> tuple[str, ...]:
        """One sentence for each check whose host itself got slower or faster."""
        return tuple(one.sentence for one in self.checks if one.sentence)

    @property
    def slower(self) -> bool:
        """Whether a host got slower."""
        return any(one.slower for one in self.checks)

    @property
    def sentence(self) -> str:
        """All in words, for a reader who looks at the verdict next."""
        if not self.checks:
            return ""
        if self.changed:
            return " ".join(self.changed)
        told = [one for one in self.checks if one.change is not None]
        if not told:
            return f"The hosts were checked first; {MIN_EARLIER} earlier checks of each are needed to tell of a change."
        left = len(self.checks) - len(told)
        rest = f" Of {left} check{'s' if left > 1 else ''} it cannot be told." if left else ""
        return f"The hosts were checked first: no change in {len(told)} check{'s' if len(told) > 1 else ''}.{rest}"


def hosts_before(experiment: Experiment) -> HostsBefore:
    """The checks made before this experiment, judged by those made before them; two queries."""
    own = list(experiment.host_canaries.select_related("host", "peer").order_by("id"))
    if not own:
        return HostsBefore()
    every = HostCanary.objects.filter(host__in={one.host_id for one in own}, pk__lte=max(one.pk for one in own))
    return HostsBefore(tuple(_judged(own, every.order_by("-id")[: MOST_EARLIER * 10 * len(own)])))


def host_history(host: Host) -> tuple[JudgedCanary, ...]:
    """The newest checks of one host, each judged by those before it."""
    every = list(HostCanary.objects.filter(host=host).select_related("host", "peer").order_by("-id")[: MOST_SHOWN * 2])
    return tuple(_judged(every[:MOST_SHOWN], every))


def _judged(asked: Sequence[HostCanary], every: Iterable[HostCanary]) -> Iterable[JudgedCanary]:
    series: dict[tuple[int, int | None, str], list[HostCanary]] = defaultdict(list)
    for one in every:
        if one.value is not None:
            series[_key(one)].append(one)
    for one in asked:
        canary = CANARIES[one.check_name]
        before = [other.value for other in reversed(series[_key(one)]) if other.pk < one.pk and other.value is not None]
        change = None
        if one.value is not None:
            change = canary_change(before, one.value, higher_is_better=canary.higher_is_better)
        yield JudgedCanary(
            host=one.host.name,
            to=one.peer.name if one.peer else "",
            check=one.check_name,
            title=f"{canary.title}" if one.peer is None else f"network to {one.peer.name}",
            unit=canary.unit,
            value=one.value,
            problem=one.problem,
            earlier=min(len(before), MOST_EARLIER),
            change=change,
            sentence=canary_sentence(one.host.name, canary.title, change) if change else "",
            at=one.at,
        )


def _key(one: HostCanary) -> tuple[int, int | None, str]:
    return one.host_id, one.peer_id, one.check_name
