"""The whole installation in one file."""

from __future__ import annotations

import shutil
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from experiments.keeping.backups.archive import BackupError
from experiments.keeping.backups.restoring import verify_backup
from experiments.keeping.backups.writing import write_backup

KEY_FILES = ("secret_key",)
"""Kept in the data directory beside the key file, on one machine; elsewhere SECRET_KEY is a setting."""


class Command(BaseCommand):
    help = (
        "Write everything but the keys into one file, while BenchHub goes on working. Keep the keys apart from it: "
        "together they open your hosts."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", metavar="FILE", help="the backup to write; it must not exist yet")
        parser.add_argument("--keys", metavar="DIRECTORY", help="also copy the keys into this directory")
        parser.add_argument("--verify", action="store_true", help="check a backup that is there, and write none")

    def handle(self, *_arguments: Any, file: str, keys: str | None, verify: bool, **_options: Any) -> None:
        place = Path(file).absolute()
        try:
            manifest = verify_backup(place) if verify else write_backup(place)
        except BackupError as error:
            raise CommandError(str(error)) from error
        what = f"{manifest.runs:,} runs, teams: {manifest.teams:,}, BenchHub {manifest.version}"
        if verify:
            self.stdout.write(f"{file} is whole: {what}, taken {manifest.taken_at:%Y-%m-%d %H:%M} UTC.")
            return
        self.stdout.write(f"{what} in {file}, {place.stat().st_size / 1e6:,.1f} MB.")
        if keys:
            self._copy_keys(Path(keys))
        else:
            self.stdout.write(f"The keys are not in it: keep {settings.BENCHHUB_KEY_FILE} and SECRET_KEY elsewhere.")

    def _copy_keys(self, directory: Path) -> None:
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            kept = Path(settings.BENCHHUB_DATA_DIR)
            for source in (Path(settings.BENCHHUB_KEY_FILE), *(kept / name for name in KEY_FILES)):
                if source.is_file():
                    shutil.copy2(source, directory / source.name)
        except OSError as error:
            raise CommandError(f"The keys cannot be copied to {directory}: {error.strerror or error}.") from error
        self.stdout.write(f"The keys are in {directory}. Keep them apart from the backup.")
