"""Makes the trends again from their runs: after deleting, archiving or judging runs anew, or after an upgrade."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from experiments.judging.alerts.trends import rebuild
from experiments.management import base
from experiments.models import Alert, Series, Team


class Command(base.Command):
    help = (
        "Find the change points of every series again from its runs. What people said about alerts stays; nobody gets "
        "a mail about what is found."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--team", default="", help="only this team, by its short name; all when left out")

    def handle(self, *_arguments: Any, team: str, **_options: Any) -> None:
        found = Series.objects.select_related("team").order_by("pk")
        if team:
            if not Team.objects.filter(slug=team).exists():
                raise CommandError(f"There is no team {team}.")
            found = found.filter(team__slug=team)
        for series in found.iterator():
            rebuild(series)
            changes = Alert.objects.filter(trend__series=series, kind=Alert.Kind.CHANGE, stands=True).count()
            self.stdout.write(f"{series.team.slug}: {series}: {changes} change points")
