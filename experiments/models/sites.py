"""Where hosts and the workers that reach them are."""

from __future__ import annotations

from django.db import models

CENTRAL = ""
"""The site of hosts that name none, and of the workers that are started without one."""


class Site(models.Model):
    """A place with workers of its own, of the whole installation; hosts without one are at the central site.

    `keys_stay`: its workers fetch their runs over HTTPS and have the hosts' keys; the database has none of them.
    `most_live_runs`: how many runs may be live there; None = as many as `BENCHHUB_SITE_LIVE_RUNS` says.
    """

    name = models.CharField(max_length=40, unique=True)
    description = models.CharField(max_length=200, blank=True)
    most_live_runs = models.PositiveIntegerField(null=True, blank=True)
    keys_stay = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.name
