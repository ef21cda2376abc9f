"""A database that is older than its hosts: a backup was restored, and runs of the time after the dump are unknown."""

from __future__ import annotations

import logging

from django.db import transaction

from agents.base.errors import FenceError
from agents.events import Role
from experiments.models import Host, Run, Team
from experiments.registry.hosts.driver_sets import hosts_by_role
from experiments.registry.teams import audit
from experiments.running.queue.dispatch import go_on_above

logger = logging.getLogger(__name__)


def note_older_database(team: Team, subject: str, refused: FenceError) -> bool:
    """Go on above the fences that the host has seen, and write down once that the database had to.

    False when the host did not tell, or told what cannot be: no other attempt is worth it then.
    """
    if refused.seen is None:
        return False
    ahead = go_on_above(refused.seen)
    if ahead.behind and ahead.believed:
        logger.warning("the database is older than a host has seen it (a restored backup?): %s", refused.message)
        after = {"message": refused.message, "fence": refused.seen}
        audit.record(team, "host.newer_than_database", subject, after=after)
    return ahead.believed


def note_leftovers(run: Run, role: Role, found: tuple[str, ...]) -> None:
    """Write down what other runs had left on a host of the run and was put back."""
    with transaction.atomic():
        host = Host.objects.get(pk=hosts_by_role(run)[role])
        audit.record(run.team, "host.leftovers", f"host {host.name}", after={"run": run.number, "found": list(found)})
