"""What BenchHub's own commands have in common."""

from __future__ import annotations

from django.core.management.base import BaseCommand


class Command(BaseCommand):
    """A command that starts without Django's system checks.

    They look at the source, which is the same at each start, and read every page and the whole API for it: more than
    half of a short command's time. `bin/test` makes them.
    """

    requires_system_checks = ()
