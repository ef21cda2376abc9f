"""Putting a dirty host back, without a worker and without the pages."""

from __future__ import annotations

import time
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from experiments.management.host_command import HostCommand
from experiments.models import Host
from experiments.registry.errors import RequestError
from experiments.running.restoring.requests import request_restore
from experiments.running.restoring.restoration import perform_restore

_LOOK_S = 0.5


class Command(HostCommand):
    help = (
        "Put a dirty host back as its last run found it, and prove it, as *Restore* on its page does. Exit status 1 "
        "when it is still not as it was; what differs is named then. Ctrl-C leaves it to the workers."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--force", action="store_true", help="also put back what somebody else has changed since")

    def handle(self, *_arguments: Any, host: str, team: str, force: bool, **_options: Any) -> None:
        found = self.named_host(host, team)
        try:
            request_restore(found.team, found, force=force)
        except RequestError as error:
            raise CommandError(error.message) from error
        while found.state == Host.State.DIRTY and found.last_restore["state"] == "pending":
            perform_restore(found.pk)  # does nothing while a worker is at it, or at another host of the same run
            found.refresh_from_db()
            time.sleep(_LOOK_S)
        said = f"{host}: {found.last_restore['message']} {found.last_restore['hint']}".strip()
        if found.state == Host.State.DIRTY:
            for difference in found.differences:
                self.stderr.write(difference)
            raise CommandError(said)
        self.stdout.write(f"{said} It is {found.state}.")
