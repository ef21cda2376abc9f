"""Django's `migrate`, which afterwards looks whether the tables are those of this version."""

from __future__ import annotations

from typing import Any

from django.core.checks import Tags
from django.core.management.base import CommandError
from django.core.management.commands import migrate

from benchhub.tables import missing_columns


class Command(migrate.Command):
    requires_system_checks = (Tags.database,)  # the others look at the source (experiments/management/base.py)

    def handle(self, *args: Any, **options: Any) -> None:
        super().handle(*args, **options)
        if options["app_label"] or options["plan"] or options["check_unapplied"]:
            return
        # The first migrations are still edited, so a database that has run them may lack what they make today.
        if missing := missing_columns():
            raise CommandError(
                f"This database was made by an earlier state of the source: it lacks {', '.join(missing[:3])}"
                f"{' and more' if len(missing) > 3 else ''}. There is no way from there to this one yet. Go back to "
                "that state, `export` the teams, and `import` them into an empty database."
            )
