"""Gives every waiting run its hosts and a worker slot in turn, and says in one sentence why it has to wait for them."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

from experiments.models import CENTRAL, Experiment, Host, Team
from experiments.models.experiments import HELD
from experiments.registry.hosts.machines import Sisters, sister_name, who_uses
from experiments.registry.hosts.reservations import Hold, reserved
from experiments.registry.hosts.sites import said
from experiments.running.queue.estimates import Estimates
from experiments.running.queue.live_limits import LiveLimits
from experiments.running.queue.workers import Workers

NEXT = "It is next."
"""The reason of a run that nothing keeps."""


@dataclass(frozen=True)
class Expected:
    """A run that is active, or one that waits: then `place` counts from 1 and `reason` says why it does.

    `runs_before` use its hosts or will before it does. `starts_at` None: only a person can end the wait.
    """

    run_id: int
    place: int
    reason: str
    runs_before: int
    takes_s: float
    starts_at: datetime | None
    ends_at: datetime | None


@dataclass(frozen=True)
class UnfinishedRun:
    """What the queue needs to know of one unfinished run."""

    pk: int
    number: int
    team_id: int
    state: str
    user_id: int | None
    sut_id: int | None
    driver_ids: tuple[int, ...]
    workload_id: int | None
    started_at: datetime | None
    urgency: int
    experiment_state: str | None = None
    site: str = CENTRAL

    @cached_property
    def hosts(self) -> tuple[int, ...]:
        return tuple(dict.fromkeys(pk for pk in (self.sut_id, *self.driver_ids) if pk is not None))


def expected_of_active(row: UnfinishedRun, estimates: Estimates, now: datetime) -> Expected:
    """What is expected of a run that has begun: it ends when its time is over, whatever waits behind it."""
    takes_s = estimates.takes_s(row.workload_id, row.sut_id)
    ends_at = max((row.started_at or now) + timedelta(seconds=takes_s), now)
    return Expected(row.pk, 0, "", 0, takes_s, row.started_at, ends_at)


class Slots:
    """Places of which each run takes one: when each of them is free, in ascending order."""

    def __init__(self, count: int, now: datetime) -> None:
        self.free_at = [now] * count

    def index_for(self, moment: datetime) -> int:
        """The one that stands idle for the shortest time until then, else the one that is free first."""
        return max(bisect_right(self.free_at, moment) - 1, 0)

    def take(self, moment: datetime, until: datetime) -> None:
        """A run has one from that moment on; nothing is taken where there is none, for a limit was lowered to that."""
        if self.free_at:
            del self.free_at[self.index_for(moment)]
            insort(self.free_at, until)

    def free_from(self, moment: datetime) -> datetime:
        """When the first one is free, not before that moment."""
        return max(moment, self.free_at[self.index_for(moment)])


class Plan:
    """Gives every run its hosts and a worker slot in turn, and remembers why it had to wait for them."""

    def __init__(
        self,
        *,
        now: datetime,
        hosts: Mapping[int, Host],
        holds: Sequence[Hold],
        workers: Mapping[str, Workers],
        limits: LiveLimits,
        team: Team,
        estimates: Estimates,
        sisters: Sisters,
    ) -> None:
        self._now = now
        self._hosts = hosts
        self._sisters = sisters
        self._holds: dict[int, list[Hold]] = {}
        for hold in holds:
            self._holds.setdefault(sisters.first(hold.host_id), []).append(hold)
        self._workers = workers
        self._estimates = estimates
        self._free_at: dict[int, datetime] = {}
        self._limits = limits
        self._team = team
        self._slots = {site: Slots(one.slots, now) for site, one in workers.items() if one.slots}
        self._places_of_team = Slots(limits.most_of_team(team.pk), now)
        self._places_at: dict[str, Slots] = {}
        self._last_on: dict[int, UnfinishedRun] = {}
        self._before: Counter[frozenset[int]] = Counter()
        self._before_on: defaultdict[int, set[frozenset[int]]] = defaultdict(set)
        self._place = 0
        self._blocked_by_kind: dict[tuple[object, ...], str] = {}

    def add_active(self, row: UnfinishedRun) -> Expected:
        expected = expected_of_active(row, self._estimates, self._now)
        ends_at = expected.ends_at or self._now
        self._occupy(row, ends_at)
        for slots in self._all_slots(row):
            slots.take(self._now, ends_at)
        return expected

    def add_waiting(self, row: UnfinishedRun) -> Expected:
        self._place += 1
        takes_s = self._estimates.takes_s(row.workload_id, row.sut_id)
        if blocked := self._blocked(row):
            return Expected(row.pk, self._place, blocked, 0, takes_s, None, None)
        reason, before = self._reason(row), self._runs_before(row)
        stands_back = self.stands_back(row)
        starts_at = self._start(row)
        ends_at = starts_at + timedelta(seconds=takes_s) if starts_at else None
        if not stands_back:  # one that waits for the end of a reservation holds up nobody
            self._occupy(row, ends_at or self._now)
            self._last_on |= dict.fromkeys(self._machines(row), row)
            if starts_at is not None and ends_at is not None:
                for slots in self._all_slots(row):
                    slots.take(starts_at, ends_at)
        return Expected(row.pk, self._place, reason, before, takes_s, starts_at, ends_at)

    def stands_back(self, row: UnfinishedRun) -> bool:
        """Whether a person or the end of a reservation must come first: such a run holds up nobody."""
        if self._blocked(row):
            return True
        return bool(self._holds) and any(self._kept_from(row, pk, self._now) for pk in row.hosts)

    def _blocked(self, row: UnfinishedRun) -> str:
        """The sentence of what only a person can put right: a host, or an experiment that is held."""
        kind = (row.experiment_state, row.site, row.sut_id, row.driver_ids)  # all that `_why_blocked` reads of it
        if kind not in self._blocked_by_kind:
            self._blocked_by_kind[kind] = self._why_blocked(row)
        return self._blocked_by_kind[kind]

    def _why_blocked(self, row: UnfinishedRun) -> str:
        if row.experiment_state in HELD:
            return f"Its experiment is {Experiment.State(row.experiment_state).label}; resume it on its page."
        if row.sut_id is None or not row.driver_ids or any(pk not in self._hosts for pk in row.hosts):
            return "A host of this run does not exist any more; cancel the run."
        for pk in row.hosts:
            host = self._hosts[pk]
            if host.state != Host.State.READY:
                return out_of_service(host)
            if host.site_name != row.site:
                sut = self._hosts[row.sut_id]
                return (
                    f"{host.name} is at {said(host.site_name)} and {sut.name} at {said(row.site)}; no worker reaches "
                    "both. Cancel the run, or change the site of one of them."
                )
            if dirty := self._dirty_sister(host):
                return dirty
        return ""

    def _dirty_sister(self, host: Host) -> str:
        sister = next((one for one in self._sisters.of(host.pk) if one.state == Host.State.DIRTY), None)
        if sister is None:
            return ""
        who = "Put that one right on its page." if sister.team_id == host.team_id else "That team has to put it right."
        return f"{host.name} is the same machine as {sister_name(sister, host.team_id)}, which is dirty. {who}"

    def _reason(self, row: UnfinishedRun) -> str:
        for pk in row.hosts:
            host = self._hosts[pk]
            sisters = self._sisters.of(pk)
            if hold := self._kept_from(row, pk, self._now):
                return f"{reserved(host, sisters, hold)}."
            if host.leased_by is not None:
                return f"{host.name} is used by run #{host.leased_by.number}."
            if used := who_uses(host, sisters):
                return f"{used}."
        for pk, machine in zip(row.hosts, self._machines(row), strict=True):
            if machine in self._last_on:
                return f"Run #{self._last_on[machine].number} is before it on {self._hosts[pk].name}."
        if limited := self._limits.reason(row.team_id, self._team.name, row.site):
            return limited
        workers = self._workers.get(row.site)
        return (workers.reason(self._now) if workers is not None else "") or NEXT

    def _runs_before(self, row: UnfinishedRun) -> int:
        used = set().union(*(self._before_on[machine] for machine in self._machines(row)))
        return sum(self._before[machines] for machines in used)

    def _start(self, row: UnfinishedRun) -> datetime | None:
        """When its hosts, a worker slot and a place under each limit are free; None when only a person can say."""
        workers = self._workers.get(row.site)
        if workers is not None and workers.slots == 0:
            return None
        slots = self._all_slots(row)
        if not all(one.free_at for one in slots):  # a limit of none
            return None
        starts_at = max([self._now, *(self._free_at[one] for one in self._machines(row) if one in self._free_at)])
        for one in slots:
            starts_at = one.free_from(starts_at)
        return self._after_holds(row, starts_at)

    def _all_slots(self, row: UnfinishedRun) -> list[Slots]:
        """What the run takes a place of: the workers of its site, as far as known, its site's limit, its team's."""
        if row.site not in self._places_at:
            self._places_at[row.site] = Slots(self._limits.most_at_site(row.site), self._now)
        found = [self._places_at[row.site]]
        is_ours = row.team_id == self._team.pk
        if row.site in self._slots and (is_ours or not self._workers[row.site].keys_stay):
            found.append(self._slots[row.site])
        if is_ours:
            found.append(self._places_of_team)
        return found

    def _after_holds(self, row: UnfinishedRun, starts_at: datetime) -> datetime:
        while kept := [hold for pk in row.hosts if (hold := self._kept_from(row, pk, starts_at))]:
            starts_at = max(hold.until for hold in kept)
        return starts_at

    def _kept_from(self, row: UnfinishedRun, host_id: int, moment: datetime) -> Hold | None:
        """The reservation of somebody else that keeps this run off the host at that time."""
        holds = (hold for hold in self._holds.get(self._sisters.first(host_id), ()) if hold.holds_at(moment))
        return next((hold for hold in holds if hold.user_id != row.user_id), None)

    def _occupy(self, row: UnfinishedRun, until: datetime) -> None:
        machines = frozenset(self._machines(row))
        for machine in machines:
            self._free_at[machine] = max(self._free_at.get(machine, until), until)
            self._before_on[machine].add(machines)
        self._before[machines] += 1

    def _machines(self, row: UnfinishedRun) -> tuple[int, ...]:
        """What stands for the machine of each host of the run: the first host that is the same one."""
        return tuple(self._sisters.first(pk) for pk in row.hosts)


def out_of_service(host: Host) -> str:
    """Why nothing starts on a host that is not ready, and what to do about it."""
    detail = host.state_reason.rstrip(".")
    because = f": {detail}" if detail else ""
    match host.state:
        case Host.State.NEW:
            what = "has shown a key that nobody has approved" if host.offered_host_key else "has no approved host key"
            return f"{host.name} {what}; an editor approves it on the host's page."
        case Host.State.DIRTY:
            short = because.removeprefix(": ").partition(": ")[0]  # what differs is on the host's page, and may be long
            return f"{host.name} is dirty{f': {short}' if short else ''}. Put it right on the host's page."
        case Host.State.UNREACHABLE:
            return f"{host.name} is unreachable{because}. Test its connection on the host's page when it is back."
        case _:
            ends = f"; run #{host.leased_by.number} on it ends first" if host.leased_by else ""
            return f"{host.name} is {host.state}{because}{ends}. An editor takes it back into service."
