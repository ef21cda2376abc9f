"""Asking for a dirty host to be put back: a person does, or BenchHub by itself once the host can be reached again."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from experiments.models import Host, Member, Role, Site, Team
from experiments.registry.database_clock import database_now
from experiments.registry.errors import Conflict
from experiments.registry.hosts.quarantine import refuse_while_restoring, restore_state
from experiments.registry.teams import audit
from experiments.registry.teams.access import require
from experiments.registry.workers.outbox import RESTORE_HOST, send

FIRST_AGAIN = timedelta(minutes=1)
LONGEST_AGAIN = timedelta(minutes=30)
MOST_DUE = 20
SAID_AGAIN = timedelta(seconds=15)
"""A pending one that nobody works on after that has lost its message or its worker."""


def request_restore(who: Member | Team, host: Host, *, force: bool = False) -> None:
    """Ask a worker to put a dirty host back; `host.last_restore` says how it went.

    Editors may, and the operator, who speaks for the team. `force` also puts back what somebody else has changed since.
    """
    if isinstance(who, Member):
        require(who, Role.EDITOR)
    host_id = host.pk
    with transaction.atomic():
        locked = Host.objects.select_for_update(of=("self",)).get(pk=host_id)
        if locked.state != Host.State.DIRTY:
            raise Conflict(f"{locked.name} is not dirty.")
        refuse_while_restoring(locked)
        if locked.dirty_run_id is None:
            raise Conflict(
                f"The run that left {locked.name} like this is not stored any more; look at it, then say that you did."
            )
        locked.last_restore = restore_state("pending", "Waiting for a worker.", force=force)
        locked.save(update_fields=["last_restore"])
        audit.record(who, "host.restore", f"host {locked.name}", after={"force": force})
        site = locked.site_name
        transaction.on_commit(lambda: send(RESTORE_HOST, host_id, site), robust=True)
    host.refresh_from_db()


def repeat_due() -> None:
    """Send what nobody works on: a request whose message was lost, a host that is due to be tried again."""
    waiting = _waiting().exclude(site__keys_stay=True)  # the others are asked for by their sites' workers
    now = database_now()
    for host in waiting:
        if _is_due(host, now, said_again=SAID_AGAIN):
            send(RESTORE_HOST, host.pk, host.site_name)


def due_at(site: Site, team: Team) -> list[Host]:
    """The team's dirty hosts at the site that are to be put back now, for a worker that asks by itself.

    Those that have waited longest come first, `MOST_DUE` of them at most.
    """
    waiting = list(_waiting().filter(site=site, team=team))
    if not waiting:
        return []
    now = database_now()
    return [host for host in waiting if _is_due(host, now, said_again=timedelta())][:MOST_DUE]


def _waiting() -> QuerySet[Host]:
    """Those that are to be put back at some time and that nobody works on, the longest waiting first."""
    asked_for = Host.objects.filter(last_restore__state__in=("pending", "again"))
    dirty = asked_for.filter(state=Host.State.DIRTY, dirty_run__isnull=False)
    return dirty.exclude(dirty_run__lease_until__gt=Now()).select_related("site").order_by("last_restore__at", "pk")


def _is_due(host: Host, now: datetime, *, said_again: timedelta) -> bool:
    last = host.last_restore
    waited = now - datetime.fromisoformat(str(last["at"]))
    if waited < -SAID_AGAIN:  # the clock was set back: how long it has waited is not known any more
        waited = LONGEST_AGAIN
    pause = min(FIRST_AGAIN * 2 ** min(int(last["tries"]), 10), LONGEST_AGAIN)
    return (last["state"] == "pending" and waited >= said_again) or (last["state"] == "again" and waited >= pause)
