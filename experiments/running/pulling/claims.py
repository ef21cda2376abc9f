"""What a site's worker is given: a run of its team there, a dirty host to put back, or hosts to look at."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.db.models.functions import Now

from agents.site.wire import Claim, ClaimAsked, HostWay, RunGiven
from agents.spec import RunSpec
from experiments.models import Host, Run, RunEvent, Site, Team, Worker
from experiments.registry.hosts import canaries
from experiments.registry.hosts.driver_sets import hosts_by_role
from experiments.registry.hosts.host_keys import way_to
from experiments.registry.workers.tallies import count
from experiments.running.executing.claimed_run import claimed
from experiments.running.pulling.checks import check_due
from experiments.running.pulling.dry_runs import dry_run_due
from experiments.running.pulling.recording import WITHOUT_STATE, process_of
from experiments.running.queue.dispatch import claim_next, something_to_do
from experiments.running.restoring.attempts import begin
from experiments.running.restoring.requests import due_at

SHOWN_EVERY = timedelta(seconds=5)


def is_there(team: Team, site: Site, owner: str, asked: ClaimAsked) -> None:
    """Note that the process of this owner of runs is at the site, for the team. It has no queue."""
    process = process_of(owner)
    if Worker.objects.filter(seen_at__gt=Now() - SHOWN_EVERY, process=process).exists():
        return
    seen = {
        "name": f"site-worker@{process.rpartition('/')[2]}",
        "site": site.name,
        "team": team,
        "slots": asked.slots,
        "queues": [],
        "version": asked.version,
        "seen_at": Now(),
    }
    Worker.objects.update_or_create(process=process, defaults=seen, create_defaults={**seen, "started_at": Now()})


def claim(team: Team, site: Site, token_id: str, asked: ClaimAsked) -> Claim:
    """Something to do for the worker with this token, claimed for it; empty when there is nothing now.

    It says itself how it is called, so its token stands before that where it owns runs: nobody takes the name of
    another one, and machines of two sites may be called alike.
    """
    owner = f"{token_id}/{asked.worker}"
    is_there(team, site, owner, asked)
    if something_to_do(site.name, team.pk):
        run = claim_next(owner, site.name, team.pk)
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
