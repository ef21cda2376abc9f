"""A team from a file that `export` made."""  # noqa: N999 - the command is called so

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from experiments.keeping.transfer.archive import ArchiveError
from experiments.keeping.transfer.importing import import_team
from experiments.management import base


class Command(base.Command):
    help = (
        "Store the team of an archive: all of it, or nothing. Its hosts get new keys and wait out of service, its "
        "schedules are paused."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", metavar="FILE", help="an archive that `export` made")
        parser.add_argument("--as", dest="slug", default="", metavar="NAME", help="another short name for the team")
        parser.add_argument(
            "--user",
            action="append",
            default=[],
            metavar="THEIRS=HERE",
            help="the account here for a user name of the archive; may be given several times",
        )

    def handle(self, *_arguments: Any, file: str, slug: str, user: list[str], **_options: Any) -> None:
        users = dict(pair.split("=", 1) for pair in user if "=" in pair)
        if len(users) != len(user):
            raise CommandError("--user reads THEIRS=HERE, each name once.")
        try:
            imported = import_team(Path(file), slug=slug, users=users)
        except ArchiveError as error:
            raise CommandError(str(error)) from error
        rows = sum(imported.rows.values())
        self.stdout.write(f"Team {imported.team.slug}: {imported.rows['run']:,} runs ({rows:,} rows).")
        if imported.new_users:
            names = ", ".join(imported.new_users)
            self.stdout.write(f"New accounts, which have no password yet: {names}.")
        if imported.rows["host"]:
            self.stdout.write("Its hosts have new keys: put each one's public key on the host before you use it.")
