"""The key file's first key for every stored secret."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from experiments.management import base
from experiments.registry.hosts.key_rotation import rotate_all
from experiments.registry.hosts.keys import KeyFileError


class Command(base.Command):
    help = (
        "Seal every stored secret (SSH keys, webhooks, second factors) under the first key of the key file. Put the new"
        " key there first and keep the old lines until this command has ended well. It may be stopped and begun again."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--verbose", action="store_true", help="name every row")

    def handle(self, *_arguments: Any, verbose: bool, **_options: Any) -> None:
        changed = kept = 0
        try:
            for secret in rotate_all():
                changed, kept = changed + secret.changed, kept + (not secret.changed)
                if verbose:
                    self.stdout.write(f"{secret.row}: {'sealed anew' if secret.changed else 'already'}")
        except KeyFileError as error:
            raise CommandError(f"{error} {changed} secrets were sealed anew before that; put its key back.") from error
        self.stdout.write(
            f"{changed} secrets sealed anew, {kept} were under the first key already. The other lines of the key file "
            "are not needed any more, except for older backups."
        )
