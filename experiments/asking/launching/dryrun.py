"""Dry runs: a worker connects, reads, and shows the exact commands. Nothing on the hosts is changed."""

from __future__ import annotations

from django.db import transaction

from experiments.asking.launching.choices import Choice, freeze_for
from experiments.models import DryRun, Member
from experiments.registry.hosts.driver_sets import driver_set
from experiments.registry.teams.access import require_launch_on
from experiments.registry.workers.outbox import DRY_RUN, send


def request(member: Member, choice: Choice) -> DryRun:
    """Ask a worker for a dry run of this choice; its row says how it went."""
    require_launch_on(member, *choice.hosts)
    spec = freeze_for(member, choice)
    with transaction.atomic():
        hosts = {"sut": choice.sut, "drivers": driver_set(choice.drivers, choice.members)}
        dry_run = DryRun.objects.create(team=member.team, **hosts, spec=spec.model_dump(mode="json"))
        transaction.on_commit(lambda: send(DRY_RUN, dry_run.pk, choice.sut.site_name), robust=True)
    return dry_run
