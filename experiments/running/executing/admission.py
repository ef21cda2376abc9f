"""Before a run changes anything: are its hosts machines that nobody else uses, under whatever name?"""

from __future__ import annotations

from collections.abc import Mapping

from django.db import transaction
from django.db.models.functions import Now

from agents.base.errors import HostInUse
from agents.events import Role
from agents.facts.access import Access
from experiments.models import Host, Run, RunEvent
from experiments.registry.hosts.driver_sets import hosts_by_role
from experiments.registry.hosts.machines import recognise, sisters_of, who_uses
from experiments.registry.workers.outbox import announce


def admit(run: Run, shown: Mapping[Role, Access]) -> None:
    """Remember which machines the hosts are. HostInUse when another run is on one of them, or has left it dirty.

    Of two runs that find each other, the one that is told here goes back to wait: it has changed nothing yet. What is
    learned stays locked until that is known; where nothing is, the claim has seen who uses the machines.
    """
    by_role = hosts_by_role(run)
    with transaction.atomic():
        for role, access in shown.items():
            recognise(by_role[role], access)
        hosts = list(Host.objects.filter(pk__in=[by_role[role] for role in shown]).order_by("pk"))
        sisters = sisters_of(hosts)
        used = [words for host in hosts if (words := who_uses(host, sisters.of(host.pk), besides=run.pk))]
    if used:  # told when it is stored, so that the next claim knows it
        raise HostInUse(f"{used[0]}.", hint="Launch it again when that one is free.")


def put_back(run_id: int, fence: int) -> None:
    """Have a run that has changed nothing wait again, as if no worker had begun with it.

    One that somebody cancelled meanwhile is let go instead: whoever takes it up ends it. Does nothing for a run that
    another worker has.
    """
    with transaction.atomic():
        run = Run.objects.select_for_update(of=("self",)).filter(pk=run_id, fence=fence).first()
        if run is None or run.state == Run.State.FINISHED:
            return
        if run.cancel_requested_at is not None:
            Run.objects.filter(pk=run_id).update(lease_until=Now(), owner="")
            return
        RunEvent.objects.filter(run=run).delete()
        run.state, run.owner, run.lease_until = Run.State.QUEUED, "", None
        run.started_at, run.attempts = None, 0
        run.save(update_fields=["state", "owner", "lease_until", "started_at", "attempts"])
        Host.objects.filter(leased_by=run).update(leased_by=None)
        announce(run)
