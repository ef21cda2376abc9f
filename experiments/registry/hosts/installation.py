"""The id under which this installation is known on hosts."""

from __future__ import annotations

from django.conf import settings

from agents.base.installation import Installation
from experiments.models import Installation as Row


def installation() -> Installation:
    """This installation as hosts and other installations on them see it: the database's id, and the pages' address."""
    row, _ = Row.objects.get_or_create(only=True)
    return Installation(str(row.uuid), settings.BENCHHUB_URL)
