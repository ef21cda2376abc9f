"""The whole installation in one file."""

from __future__ import annotations

import shutil
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, OutputWrapper

from experiments.keeping.backups.archive import BackupError, Manifest
from experiments.keeping.backups.pipes import PIPE, given_file, write_to_standard_output
from experiments.keeping.backups.restoring import verify_backup
from experiments.keeping.backups.writing import write_backup
from experiments.management import base

KEY_FILES = ("secret_key",)
"""Kept in the data directory beside the key file, on one machine; elsewhere SECRET_KEY is a setting."""


class Command(base.Command):
    help = (
        "Write everything but the keys into one file, while BenchHub goes on working. Keep the keys apart from it: "
        "together they open your hosts."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "file", metavar="FILE", help="the backup to write, which must not exist yet; - sends it to standard output"
        )
        parser.add_argument("--keys", metavar="DIRECTORY", help="also copy the keys into this directory")
        parser.add_argument("--verify", action="store_true", help="check a backup that is there, and write none")

    def handle(self, *_arguments: Any, file: str, keys: str | None, verify: bool, **_options: Any) -> None:
        if file == PIPE and not verify:
            self.stdout = OutputWrapper(sys.stderr)  # the other one has the backup
        try:
            self.stdout.write(self._verified(file) if verify else self._written(file))
        except BackupError as error:
            raise CommandError(str(error)) from error
        if verify:
            return
        if keys:
            self._copy_keys(Path(keys))
        else:
            self.stdout.write(f"The keys are not in it: keep {settings.BENCHHUB_KEY_FILE} and SECRET_KEY elsewhere.")

    def _verified(self, file: str) -> str:
        with given_file(file) as place:
            manifest = verify_backup(place)
        return f"{file} is whole: {_what(manifest)}, taken {manifest.taken_at:%Y-%m-%d %H:%M} UTC."

    def _written(self, file: str) -> str:
        if file == PIPE:
            return f"{_what(write_to_standard_output())} sent."
        place = Path(file).absolute()
        return f"{_what(write_backup(place))} in {file}, {place.stat().st_size / 1e6:,.1f} MB."

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


def _what(manifest: Manifest) -> str:
    return f"{manifest.runs:,} runs, teams: {manifest.teams:,}, BenchHub {manifest.version}"
