"""A team as a file, to keep or to move."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from experiments.keeping.transfer.exporting import export_team
from experiments.management import base
from experiments.models import Team


class Command(base.Command):
    help = (
        "Write everything of a team but its secrets (private keys, tokens, links, webhooks) into one file. Runs that "
        "are not over are left out."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("team", metavar="TEAM", help="the team's short name, as in its addresses")
        parser.add_argument("file", metavar="FILE", help="the archive to write; it must not exist yet")

    def handle(self, *_arguments: Any, team: str, file: str, **_options: Any) -> None:
        found = Team.objects.filter(slug=team).first()
        if found is None:
            raise CommandError(f"There is no team {team}.")
        try:
            exported = export_team(found, Path(file))
        except OSError as error:
            raise CommandError(f"{file} cannot be written: {error}") from error
        size_mb = Path(file).stat().st_size / 1e6
        rows = sum(exported.rows.values())
        self.stdout.write(f"{exported.rows['run']:,} runs of team {team} ({rows:,} rows) in {file}, {size_mb:,.1f} MB.")
        if exported.left_out:
            self.stdout.write(f"{exported.left_out:,} runs are not over and were left out.")
