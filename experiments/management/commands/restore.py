"""A backup in the place of what the database holds."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from experiments.keeping.backups.archive import BackupError
from experiments.keeping.backups.pipes import given_file
from experiments.keeping.backups.restoring import restore_backup
from experiments.management import base


class Command(base.Command):
    help = (
        "Put a backup in the place of what the database holds, whole or not at all, and bring it to this version. Stop "
        "BenchHub before."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", metavar="FILE", help="what the command backup wrote; - is standard input")
        parser.add_argument("--replace", action="store_true", help="the database is not empty: delete what it holds")
        parser.add_argument("--without-keys", action="store_true", help="go on although keys are lost")

    def handle(self, *_arguments: Any, file: str, replace: bool, without_keys: bool, **_options: Any) -> None:
        try:
            with given_file(file) as place:
                manifest = restore_backup(place, replace=replace, without_keys=without_keys)
        except BackupError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(
            f"Restored {manifest.runs:,} runs, teams: {manifest.teams:,}, as of {manifest.taken_at:%Y-%m-%d %H:%M} UTC."
        )
