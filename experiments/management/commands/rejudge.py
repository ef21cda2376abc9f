"""Judges stored runs again: after an update of BenchHub, or after a team changed its thresholds."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from experiments.management import base
from experiments.models import Team
from experiments.running.ending.rejudging import rejudge


class Command(base.Command):
    help = "Judge the validity of stored runs again, with the checks and thresholds of today."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--team", default="", help="only this team (its short name); all teams otherwise")
        parser.add_argument("--dry-run", action="store_true", help="say what would change, and store nothing")

    def handle(self, *_arguments: Any, team: str, dry_run: bool, **_options: Any) -> None:
        teams = list(Team.objects.filter(slug=team) if team else Team.objects.order_by("slug"))
        if not teams:
            raise CommandError(f"There is no team {team!r}." if team else "There is no team yet.")
        for one in teams:
            found = rejudge(one, dry_run=dry_run)
            for change in found.changes:
                self.stdout.write(f"{one.slug} #{change.number}: {change.before} -> {change.after}. {change.reason}")
            what = "would change" if dry_run else "changed"
            self.stdout.write(f"{one.slug}: {found.judged} runs judged, {len(found.changes)} {what}.")
            for why, count in found.kept.items():
                self.stdout.write(f"{one.slug}: {count} runs left as they were ({why}).")
