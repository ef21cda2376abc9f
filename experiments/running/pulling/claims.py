"""What a site's worker is given: a run of its team there, a dirty host to put back, or hosts to look at."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.db.models import Q
from django.db.models.functions import Now

from agents.site.wire import Claim, ClaimAsked, HostWay, RunGiven
from agents.spec import RunSpec
from experiments.models import Host, Run, RunEvent, Site, Team, Worker
from experiments.registry.hosts import canaries
from experiments.registry.hosts.driver_sets import hosts_by_role
from experiments.registry.hosts.host_keys import way_to
from experiments.registry.workers.presence import SILENT_AFTER
from experiments.registry.workers.tallies import count
from experiments.running.executing.claimed_run import claimed
from experiments.running.pulling.checks import check_due
from experiments.running.pulling.dry_runs import dry_run_due
from experiments.running.pulling.recording import WITHOUT_STATE
from experiments.running.queue.dispatch import claim_next, something_to_do
from experiments.running.restoring.attempts import begin
from experiments.running.restoring.requests import due_at

SHOWN_EVERY = timedelta(seconds=5)


def is_there(team: Team, site: Site, worker: str, slots: int) -> None:
    """Note that a worker process of the team is at the site; `worker` is host:pid:thread. It has no queue.

    It says itself how it is called: while another one of that name lives, that one's row stays as it is.
    """
    process = worker.rpartition(":")[0]
    of_another = Q(seen_at__gt=Now() - SILENT_AFTER) & ~Q(team=team, site=site.name)
    if Worker.objects.filter(Q(seen_at__gt=Now() - SHOWN_EVERY) | of_another, process=process).exists():
        return
    about = {"name": f"site-worker@{process}", "site": site.name, "team": team, "slots": slots}
    seen = {**about, "queues": [], "seen_at": Now()}
    Worker.objects.update_or_create(
        process=process, defaults=seen, create_defaults={**seen, "version": settings.VERSION, "started_at": Now()}
    )


def claim(team: Team, site: Site, asked: ClaimAsked) -> Claim:
    """Something to do for this worker, claimed for it; empty when there is nothing now."""
    is_there(team, site, asked.worker, asked.slots)
    if something_to_do(site.name, team.pk):
        run = claim_next(asked.worker, site.name, team.pk)
        if run is not None:
            if run.attempts > 1:
                count("adoptions")
            return Claim(run=_given(run))
    for host in due_at(site, team):
        begun = begin(host.pk)
        if begun is not None:
            run, force = begun.run, begun.force
            roles = [role for role, pk in hosts_by_role(run).items() if pk == host.pk]
            return Claim(run=_given(run).model_copy(update={"work": "restore", "roles": roles, "force": force}))
    if given := check_due(team, site):
        return Claim(host=given)
    return Claim(dry_run=dry_run_due(team, site))


def _given(run: Run) -> RunGiven:
    known = claimed(run)
    hosts = hosts_by_role(run)
    rows = {host.pk: host for host in Host.objects.select_related("jump").filter(pk__in=hosts.values())}
    spec = RunSpec.model_validate(run.spec)
    events = RunEvent.objects.filter(run=run).exclude(kind__in=WITHOUT_STATE).order_by("seq")
    return RunGiven(
        id=run.pk,
        number=run.number,
        key=known.key,
        spec=run.spec or {},
        fence=run.fence,
        attempts=run.attempts,
        events=list(events.values_list("payload", flat=True)),
        last_seq=run.last_seq,
        ways={address.name: HostWay.of(way_to(rows[hosts[role]])) for role, address in spec.hosts.items()},
        heartbeat_s=known.heartbeat_s,
        lease_s=settings.BENCHHUB_LEASE_S,
        patience_s=known.patience_s,
        deadman_s=known.deadman_s,
        max_file_bytes=known.max_file_bytes,
        installation_id=known.installation.id,
        installation_name=known.installation.name,
        checks_first=run.experiment is not None and canaries.are_due(run.experiment, hosts),
    )
