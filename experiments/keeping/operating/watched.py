"""The queues that are watched: those of the central site, and of each site at which workers take messages."""

from __future__ import annotations

from experiments.models import CENTRAL, Worker
from experiments.registry.workers.queues import queues_of, site_of


def watched_queues() -> list[str]:
    """Their names, the central ones first. Workers that have been silent for long are forgotten, and their site too.

    A site whose workers need no broker has no queue that anybody could take from.
    """
    said = Worker.objects.exclude(site=CENTRAL).values_list("queues", flat=True)
    sites = sorted({site_of(name) for queues in said for name in queues} - {CENTRAL})
    return [name for site in (CENTRAL, *sites) for name in queues_of(site)]
