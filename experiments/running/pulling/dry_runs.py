"""Dry runs that the workers of a site make, as nobody else reaches its hosts."""

from __future__ import annotations

from django.db.models.functions import Now

from agents.site.wire import DryRunGiven, HostWay, PlanRead
from experiments.models import DryRun, Site, Team
from experiments.registry.errors import NotFound, RequestError
from experiments.registry.hosts.host_keys import way_to
from experiments.running.executing.dry_run_rows import fail, finish, hosts_of, put_off, waiting
from experiments.running.pulling.checks import TAKES


def dry_run_due(team: Team, site: Site) -> DryRunGiven | None:
    """A dry run of the team at the site, given out to one worker; None when none waits."""
    due = waiting().filter(team=team, sut__site=site).exclude(given_at__gt=Now() - TAKES).order_by("pk")
    for dry_run in due:
        if put_off(dry_run):
            continue
        not_given = DryRun.objects.filter(pk=dry_run.pk).exclude(given_at__gt=Now() - TAKES)
        if not_given.update(given_at=Now()):
            ways = {role: HostWay.of(way_to(host)) for role, host in hosts_of(dry_run).items()}
            return DryRunGiven(id=dry_run.pk, spec=dry_run.spec, ways=ways)
    return None


def plan_read(team: Team, site: Site, dry_run_id: int, told: PlanRead) -> None:
    """Store what the worker brought; the second time it changes nothing. NotFound for dry runs elsewhere."""
    if not DryRun.objects.filter(pk=dry_run_id, team=team, sut__site=site).exists():
        raise NotFound("There is no such dry run at this site.")
    if told.failure:
        fail(dry_run_id, told.failure, told.hint)
    elif told.plan is not None:
        finish(dry_run_id, told.plan)
    else:
        raise RequestError("There is neither a plan nor a reason why there is none.", field="plan")
