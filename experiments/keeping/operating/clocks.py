"""Whose clock differs from the database's, in plain words: no run depends on it, but logs and pages are wrong by it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from experiments.models import Canary, Host, Worker
from experiments.registry.database_clock import clock_ahead_s
from experiments.registry.workers.presence import SILENT_AFTER, process_name

MOST_AHEAD_S = 0.5
"""A machine that asks time servers is within milliseconds; nobody reads a difference below this in a log."""
MOST_HOSTS = 20
SET_IT = "Have that machine ask a time server (chrony, systemd-timesyncd)."


@dataclass(frozen=True)
class WrongClock:
    """`ahead_s`: against the database's, negative = behind."""

    whose: str
    ahead_s: float

    @property
    def sentence(self) -> str:
        way = "ahead of" if self.ahead_s > 0 else "behind"
        return f"The clock of {self.whose} is {_shown(abs(self.ahead_s))} {way} the database's. {SET_IT}"


def wrong_clocks(now: datetime, *, me: str = "this web server") -> list[WrongClock]:
    """Those of BenchHub's processes: this one (`me`), the workers that are there, beat. `now`: the database's time."""
    seen = [WrongClock(f"{me} ({process_name()})", clock_ahead_s())]
    there = Worker.objects.filter(seen_at__range=(now - SILENT_AFTER, now + SILENT_AFTER)).order_by("name", "process")
    seen += [WrongClock(f"the worker {one.name} ({one.host_and_pid})", one.clock_ahead_s) for one in there]
    if (sent := Canary.objects.order_by("-sent_at").first()) is not None:
        seen.append(WrongClock("beat", sent.clock_ahead_s))
    return [clock for clock in seen if clock.ahead_s < -MOST_AHEAD_S or clock.ahead_s > MOST_AHEAD_S]


def hosts_with_wrong_clocks() -> list[WrongClock]:
    """Hosts of all teams whose clock was wrong when BenchHub looked last: at a check, or at the start of a run."""
    wrong = Host.objects.exclude(clock_ahead_s__range=(-MOST_AHEAD_S, MOST_AHEAD_S)).exclude(clock_ahead_s=None)
    rows = wrong.order_by("team__slug", "name").values_list("team__slug", "name", "clock_ahead_s")[:MOST_HOSTS]
    return [WrongClock(f"the host {name} of the team {team}", ahead_s) for team, name, ahead_s in rows]


def _shown(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
