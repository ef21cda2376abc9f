"""The connection test of a host, without a worker and without the pages."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError

from experiments.management.host_command import HostCommand
from experiments.registry.hosts.check import perform_check


class Command(HostCommand):
    help = (
        "Log in to a host and read what it is, as *Test connection* on its page does, and store what was seen. Without "
        "an approved host key it only shows the key that the host offers. Exit status 1 when it cannot be used."
    )

    def handle(self, *_arguments: Any, host: str, team: str, **_options: Any) -> None:
        found = self.named_host(host, team)
        perform_check(found.pk)
        found.refresh_from_db()
        said = f"{host}: {found.last_check['message']} {found.last_check['hint']}".strip()
        if found.last_check["state"] != "ok" or not found.host_key:
            raise CommandError(said)
        self.stdout.write(f"{said} It is {found.state}.")
