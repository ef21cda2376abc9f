"""Where the files of runs are, whether they are all there, and the way out of the database."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError
from django.db.models import Count, Sum

from experiments.keeping.retention.file_checking import lost_files
from experiments.keeping.retention.file_moving import move_files, waiting_files
from experiments.management import base
from experiments.models import Artifact
from experiments.registry.runs.file_store import FileStoreError, has_place, look_at_place

ROUND_S = 5.0
NO_PLACE = "There is no place outside of the database: set BENCHHUB_FILES_DIR or BENCHHUB_BUCKET."


class Command(base.Command):
    help = "Say where the files of runs are. Those above 1 MB belong outside of the database."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--move", action="store_true", help="take large files out of the database now; may be stopped and repeated"
        )
        parser.add_argument(
            "--verify", action="store_true", help="look for each file outside of it, and end with 1 when one is missing"
        )
        parser.add_argument("--read", action="store_true", help="with --verify: read each and compare its SHA-256")

    def handle(self, *_arguments: Any, move: bool, verify: bool, read: bool, **_options: Any) -> None:
        if (move or verify) and not has_place():
            raise CommandError(NO_PLACE)
        try:
            if move:
                self._move()
            if verify:
                self._verify(read=read)
            self._say()
        except FileStoreError as error:
            raise CommandError(error.message) from error

    def _move(self) -> None:
        while moved := move_files(most_s=ROUND_S):
            count, size = waiting_files()
            self.stdout.write(f"{moved:,} files moved; {count:,} with {size / 1e6:,.1f} MB are left.")

    def _verify(self, *, read: bool) -> None:
        lost = 0
        for sentence in lost_files(read=read):
            lost += 1
            self.stderr.write(sentence)
        if lost:
            raise CommandError(f"{lost:,} files of runs are not as they should be.")
        self.stdout.write("Every file outside of the database is there" + (" and is what it was." if read else "."))

    def _say(self) -> None:
        outside = Artifact.objects.exclude(stored=None).aggregate(count=Count("pk"), size=Sum("stored_bytes"))
        where = look_at_place() if has_place() else "nowhere, as no place is set"
        self.stdout.write(
            f"Outside of the database: {outside['count']:,} files, {(outside['size'] or 0) / 1e6:,.1f} MB ({where})."
        )
        count, size = waiting_files()
        if count:
            more = "they go there within hours, or with --move." if has_place() else NO_PLACE
            self.stdout.write(f"In it, although larger than 1 MB: {count:,} files, {size / 1e6:,.1f} MB; {more}")
