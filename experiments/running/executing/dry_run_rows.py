"""The rows of dry runs, for whoever reads their hosts: our own workers, or those of a site whose keys stay there."""

from __future__ import annotations

from dataclasses import asdict

from django.db.models import Prefetch, QuerySet

from agents.events import Role
from agents.plan import Plan
from agents.spec import driver_role
from agents.system import LOADED
from experiments.models import DryRun, Host, Run
from experiments.registry.hosts.machines import sisters_of

LATER = "Ask again when it has ended. A run that is launched now waits by itself, and looks first, too."


def waiting() -> QuerySet[DryRun]:
    """Those whose hosts were not read yet, with what is needed to log in there."""
    hosts = Host.objects.select_related("jump", "leased_by", "site")
    rows = DryRun.objects.select_related("sut__jump", "sut__leased_by", "sut__site", "drivers")
    return rows.prefetch_related(Prefetch("drivers__hosts", hosts)).filter(state=DryRun.State.PENDING)


def hosts_of(dry_run: DryRun) -> dict[Role, Host]:
    """Each host by its part in the run."""
    others = dry_run.drivers
    drivers = {driver_role(number): host for number, host in enumerate(others.in_order)}
    return {LOADED: dry_run.sut, **others.members, **drivers}


def put_off(dry_run: DryRun) -> bool:
    """True, and it has failed with the reason, when one of its hosts is measured: a login beside that is load."""
    busy = _measured(*hosts_of(dry_run).values())
    if busy:
        fail(dry_run.pk, busy, LATER)
    return bool(busy)


def finish(dry_run_id: int, plan: Plan) -> None:
    """Store the plan, unless another worker was first."""
    rows = DryRun.objects.filter(pk=dry_run_id, state=DryRun.State.PENDING)
    rows.update(state=DryRun.State.READY, plan=asdict(plan))


def fail(dry_run_id: int, message: str, hint: str) -> None:
    """Store why there is no plan, unless another worker was first."""
    rows = DryRun.objects.filter(pk=dry_run_id, state=DryRun.State.PENDING)
    rows.update(state=DryRun.State.FAILED, message=message, hint=hint)


def _measured(*hosts: Host) -> str:
    sisters = sisters_of(hosts)
    for host in hosts:
        run = next((one.leased_by for one in (host, *sisters.of(host.pk)) if one.leased_by is not None), None)
        if run is not None and run.state in (Run.State.WARMING_UP, Run.State.MEASURING):
            whose = f"run #{run.number}" if run.team_id == host.team_id else "a run of another team"
            return f"{host.name} is being measured by {whose}, and a look at it would change the figures."
    return ""
