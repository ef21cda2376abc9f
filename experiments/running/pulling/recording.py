"""What a site's worker says of a run that it has claimed: stored as any other worker stores it, under its fence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.db.models.functions import Now

from agents.base.errors import FenceError, HostInUse
from agents.events import Restored, Role, from_json
from agents.facts.access import Access
from agents.running.canary_checks import CanaryReading
from agents.site.wire import Admitted, End, Held, Stored
from experiments.models import Host, Run, RunEvent, Site, Team, Worker
from experiments.registry.errors import NotFound, RequestError
from experiments.registry.hosts import canaries
from experiments.registry.hosts.driver_sets import hosts_by_role
from experiments.registry.workers.outbox import hint
from experiments.running.ending.conclusion import conclude, give_up
from experiments.running.executing.admission import admit, put_back
from experiments.running.executing.newer_holder import stop_or_go_on_above
from experiments.running.executing.recorder import Recorder, Told
from experiments.running.queue.leases import renew
from experiments.running.restoring import attempts

WITHOUT_STATE = ("samples", "logged")
"""Kinds of events that leave nothing in a record."""


def run_of(team: Team, site: Site, run_id: int) -> Run:
    """A run of the team whose hosts are at the site. NotFound for all others."""
    found: Run | None = Run.objects.for_team(team).filter(pk=run_id, sut__site=site).first()
    if found is None:
        raise NotFound("There is no such run at this site.")
    return found


def insist_on_fence(run: Run, fence: int) -> None:
    """FenceError when another worker holds the run now."""
    if run.fence != fence:
        raise FenceError("Another worker holds this run now.")


def store_events(run: Run, fence: int, first: int, events: Sequence[Told], *, left: bool) -> Stored:
    """Store these events, whose first has the number `first`; those that are stored already are passed over.

    They are a sign of life, which counts where the heartbeat is late, unless the worker has `left` the run.
    """
    last_seq = Recorder(run.pk, fence).store_all(first, events)
    if run.doubted_at is not None and not left:
        renew(Run.objects.filter(pk=run.pk, fence=fence))
    return Stored(last_seq=last_seq, cancelled=_is_cancelled(run))


def hold(team: Team, site: Site, holds: Sequence[Held]) -> None:
    """Hold these runs for another while: who works on them asks for more. A run that somebody newer has is passed over.

    A fence is of one run alone.
    """
    if holds:
        fences, runs = {one.fence for one in holds}, {one.run for one in holds}
        renew(Run.objects.for_team(team).filter(sut__site=site, pk__in=runs, fence__in=fences))


def process_of(owner: str) -> str:
    """The process of this owner of runs, as the row of a worker has it."""
    return owner.rpartition(":")[0]


def beat(run: Run, site: Site, fence: int) -> Stored:
    """Hold the run of the site for another while. Its owner is there, then."""
    if run.state == Run.State.FINISHED and run.lease_until is None:
        raise FenceError("The run has ended.")
    cancelled = Recorder(run.pk, fence).beat()
    Worker.objects.filter(process=process_of(run.owner), team=run.team_id, site=site.name).update(seen_at=Now())
    return Stored(last_seq=run.last_seq, cancelled=cancelled)


def admit_hosts(run: Run, fence: int, shown: Mapping[Role, Access]) -> Admitted:
    """Remember which machines the hosts are, and whether another run has one of them."""
    insist_on_fence(run, fence)
    unknown = sorted(set(shown) - set(hosts_by_role(run)))
    if unknown:
        raise RequestError(f"The run has no host with the part {unknown[0]}.", field="shown")
    try:
        admit(run, shown)
    except HostInUse as error:
        return Admitted(in_use=error.message, hint=error.hint)
    return Admitted()


def keep_readings(run: Run, fence: int, readings: Sequence[CanaryReading]) -> None:
    """Keep the checks of the run's hosts, once: a repeated request finds them made."""
    insist_on_fence(run, fence)
    hosts = hosts_by_role(run)
    if run.experiment is not None and canaries.are_due(run.experiment, hosts):
        canaries.keep_readings(readings, hosts, run.experiment)


def end_work(run: Run, fence: int, end: End) -> None:
    """The worker's last word on the run, or on a finished one whose hosts it put back. Safe to repeat."""
    if end.how == "let_go":
        Recorder(run.pk, fence).let_go()
        hint(run.pk)
    elif run.state == Run.State.FINISHED:
        _end_restore(run, fence, end)
    elif end.how == "conclude":
        insist_on_fence(run, fence)
        conclude(run.pk, fence, Recorder(run.pk, fence).record())
    elif end.how == "put_back":
        put_back(run.pk, fence)
    elif end.how == "refused":
        run.fence = fence  # as the worker knew it: it may not be the newest any more
        stop_or_go_on_above(run, FenceError(end.message, seen=end.seen))
    elif end.how == "give_up":
        give_up(run.pk, fence, end.message, end.hint)
    else:
        raise RequestError("This run has not ended, so no host of it can be restored.", field="how")


def _end_restore(run: Run, fence: int, end: End) -> None:
    host = Host.objects.filter(leased_by=run, state=Host.State.DIRTY).first()
    if host is None or run.fence != fence:
        return  # it was stored before, and this is the request once more
    if end.how == "restored":
        restored = _restored(run)
        roles = tuple(role for role, pk in hosts_by_role(run).items() if pk == host.pk)
        attempts.finish(host.pk, fence, restored, roles)
    elif end.how == "refused":
        attempts.refuse(host.pk, fence, FenceError(end.message, seen=end.seen))
    elif end.how == "give_up":
        attempts.fail(host.pk, fence, end.message, end.hint)


def _restored(run: Run) -> Restored:
    payload: dict[str, Any] | None = (
        RunEvent.objects.filter(run=run, kind="restored").order_by("seq").values_list("payload", flat=True).last()
    )
    event = None if payload is None else from_json(payload)
    if not isinstance(event, Restored):
        raise RequestError("No event of the run says that its hosts were put back.", field="how")
    return event


def _is_cancelled(run: Run) -> bool:
    return Run.objects.filter(pk=run.pk, cancel_requested_at__isnull=False).exists()
