"""Why a queued run waits, and when it may be expected to start: the queue of a team, read and thought through."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property

from django.db.models import Q

from experiments.models import CENTRAL, DriverSet, Host, Run, Team
from experiments.registry.database_clock import database_now
from experiments.registry.hosts.driver_sets import members_of
from experiments.registry.hosts.machines import sisters_of
from experiments.registry.hosts.reservations import holds_on
from experiments.running.queue.estimates import Estimates, estimates_for
from experiments.running.queue.fairness import Shares, shares_of, urgency
from experiments.running.queue.live_limits import live_limits
from experiments.running.queue.plan import NEXT, Expected, Plan, UnfinishedRun, expected_of_active
from experiments.running.queue.workers import workers_at

FORESEEN = 200
"""A launch is answered with a time when at most so many runs of the team wait: of 5,000 that would take most of it."""


@dataclass(frozen=True)
class Schedule:
    """A team's queue as far as it can be foreseen: active runs by number, waiting ones in the order they will start.

    Runs of other teams count as long as they are active; what those teams have waiting is not foreseen.
    """

    at: datetime
    active: tuple[Expected, ...]
    waiting: tuple[Expected, ...]

    def of(self, run_id: int) -> Expected | None:
        return self._by_run.get(run_id)

    @cached_property
    def _by_run(self) -> dict[int, Expected]:
        return {expected.run_id: expected for expected in (*self.active, *self.waiting)}


def schedule_of(team: Team) -> Schedule:
    """The team's whole queue. Fourteen queries, however many runs wait."""
    return schedule_and_count(team, None)[0]


def schedule_and_count(team: Team, most_waiting: int | None) -> tuple[Schedule, int]:
    """The team's queue with the first `most_waiting` of those that wait (None = all), and how many wait in all.

    What waits behind a run changes nothing of what is expected of it; of 5,000 it takes a third of the time.
    """
    return _schedule(team, _waiting_of(team), lambda in_order: in_order[:most_waiting])


def schedule_up_to(team: Team, run_ids: Iterable[int]) -> Schedule:
    """The team's queue up to the last of these runs; nothing of those that wait where none of them does."""
    wanted = frozenset(run_ids)

    def head(in_order: Sequence[UnfinishedRun]) -> Sequence[UnfinishedRun]:
        return in_order[: max((place for place, row in enumerate(in_order, 1) if row.pk in wanted), default=0)]

    return _schedule(team, _waiting_of(team), head)[0]


def _waiting_of(team: Team) -> Q:
    return Q(team=team, state=Run.State.QUEUED)


def _schedule(
    team: Team, queued_ones: Q, head: Callable[[Sequence[UnfinishedRun]], Sequence[UnfinishedRun]]
) -> tuple[Schedule, int]:
    """These waiting runs of the team beside all active ones, thought through as far as their `head`; their count."""
    now = database_now()
    rows = _rows(queued_ones | Q(state__in=Run.ACTIVE))
    active = [row for row in rows if row.state != Run.State.QUEUED]
    queued = [row for row in rows if row.state == Run.State.QUEUED]
    if not any(row.team_id == team.pk for row in rows):
        return Schedule(now, (), ()), 0
    hosts = _hosts(queued)
    sisters = sisters_of(hosts.values())
    estimates = _estimates(rows)
    plan = Plan(
        now=now,
        hosts=hosts,
        holds=holds_on([*hosts, *sisters.ids], after=now),
        workers=workers_at(_sites(queued, hosts), team, Counter((row.site, row.team_id) for row in active), now),
        limits=live_limits([team.pk]),
        team=team,
        estimates=estimates,
        sisters=sisters,
    )
    running = [plan.add_active(row) for row in active]
    shares = shares_of([team.pk])
    waiting = [plan.add_waiting(row) for row in head(_in_order(queued, shares, plan))]
    mine = {row.pk for row in active if row.team_id == team.pk}
    schedule = Schedule(now, tuple(one for one in running if one.run_id in mine), tuple(waiting))
    return schedule, len(queued)


def active_of(runs: Iterable[Run]) -> Schedule:
    """What is expected of these runs, as far as they have begun: nothing is asked about what waits behind them."""
    now = database_now()
    rows = _rows(Q(pk__in=[run.pk for run in runs], state__in=Run.ACTIVE))
    estimates = _estimates(rows)
    return Schedule(now, tuple(expected_of_active(row, estimates, now) for row in rows), ())


def expected_of(run: Run) -> Expected | None:
    """What its team's schedule says of a queued run; None of one that does not wait."""
    return schedule_up_to(run.team, [run.pk]).of(run.pk) if run.state == Run.State.QUEUED else None


def expected_at_launch(run: Run) -> Expected | None:
    """As `expected_of`, of a run that was queued just now; without a time where more than `FORESEEN` others wait.

    Then only what keeps it off its hosts and from a worker now is looked at, and `runs_before` counts those that use or
    want its hosts and are as urgent: some of them may start later.
    """
    if run.state != Run.State.QUEUED:
        return None
    others = Run.objects.filter(_waiting_of(run.team)).exclude(pk=run.pk)
    count = others.count()
    if count <= FORESEEN:
        return expected_of(run)
    found = _schedule(run.team, Q(pk=run.pk, state=Run.State.QUEUED), lambda in_order: in_order)[0].of(run.pk)
    if found is None:
        return None
    hosts = [run.sut_id, *members_of([run.drivers_id]).get(run.drivers_id, ())] if run.drivers_id else [run.sut_id]
    same_hosts = Q(sut__in=hosts) | Q(drivers__in=DriverSet.objects.filter(hosts__in=hosts))
    before = others.filter(same_hosts).annotate(urgency=urgency()).filter(urgency__gte=run.priority).count()
    reason = found.reason if found.reason != NEXT else f"{count:,} other runs of the team wait, too."
    return replace(found, reason=reason, runs_before=found.runs_before + before, starts_at=None, ends_at=None)


def expected_end(team: Team, runs: Iterable[Run]) -> datetime | None:
    """When the last of these runs may be expected to end; None when all have ended, or a person must act before."""
    live = [run.pk for run in runs if run.is_live]
    if not live:
        return None
    schedule = schedule_up_to(team, live)
    ends = [expected.ends_at if (expected := schedule.of(pk)) else schedule.at for pk in live]
    known = [end for end in ends if end is not None]
    return max(known) if len(known) == len(ends) else None


def _rows(wanted: Q) -> list[UnfinishedRun]:
    found = (
        Run.objects.exclude(state=Run.State.FINISHED)
        .filter(wanted)
        .annotate(urgency=urgency())
        .order_by("team", "number")
    )
    names = ("pk", "number", "team_id", "state", "created_by_id", "sut_id", "drivers_id", "workload_id", "started_at")
    rows = list(found.values_list(*names, "sut__site__name", "urgency", "experiment__state", named=True))
    drivers = members_of({row.drivers_id for row in rows if row.drivers_id is not None})
    return [
        UnfinishedRun(
            pk=row.pk,
            number=row.number,
            team_id=row.team_id,
            state=row.state,
            user_id=row.created_by_id,
            sut_id=row.sut_id,
            driver_ids=drivers.get(row.drivers_id, ()),
            workload_id=row.workload_id,
            started_at=row.started_at,
            urgency=row.urgency,
            experiment_state=row.experiment__state,
            site=row.sut__site__name or CENTRAL,
        )
        for row in rows
    ]


def _estimates(rows: Sequence[UnfinishedRun]) -> Estimates:
    workloads = {row.workload_id for row in rows if row.workload_id}
    return estimates_for(workloads, {row.sut_id for row in rows if row.sut_id})


def _hosts(rows: Iterable[UnfinishedRun]) -> dict[int, Host]:
    wanted = {pk for row in rows for pk in row.hosts}
    fields = (
        "name",
        "state",
        "state_reason",
        "offered_host_key",
        "leased_by__number",
        "team_id",
        "machine_id",
        "site__name",
        "site__keys_stay",
    )
    found = Host.objects.filter(pk__in=wanted).select_related("leased_by", "site").only(*fields)
    return {host.pk: host for host in found}


def _sites(rows: Iterable[UnfinishedRun], hosts: Mapping[int, Host]) -> dict[str, bool]:
    """Where these runs are, and whether the keys of the hosts stay there."""
    stay = {host.site.name for host in hosts.values() if host.site is not None and host.site.keys_stay}
    return {row.site: row.site in stay for row in rows}


def _in_order(queued: Sequence[UnfinishedRun], shares: Shares, plan: Plan) -> list[UnfinishedRun]:
    """The order in which they will start as far as the fair order goes: members take turns inside one urgency."""
    turns: Counter[tuple[int | None, int]] = Counter()
    keys = {}
    for row in sorted(queued, key=lambda row: row.pk):
        turn = turns[row.user_id, row.urgency]
        turns[row.user_id, row.urgency] += not plan.stands_back(row)
        keys[row.pk] = shares.key(
            team_id=row.team_id, user_id=row.user_id, urgency=row.urgency, run_id=row.pk, ahead=turn
        )
    return sorted(queued, key=lambda row: keys[row.pk])
