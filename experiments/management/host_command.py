"""What the commands about one host have in common: how the host is named."""

from __future__ import annotations

from argparse import ArgumentParser

from django.core.management.base import CommandError

from experiments.management import base
from experiments.models import Host


class HostCommand(base.Command):
    """A command that takes the name of a host and its team."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("host", metavar="HOST", help="the host's name")
        parser.add_argument("--team", required=True, help="the team's short name, as in its addresses")

    def named_host(self, name: str, team: str) -> Host:
        """The host, its team, site and jump host. CommandError when the team has none of this name."""
        hosts = Host.objects.select_related("team", "jump", "site")
        found: Host | None = hosts.filter(team__slug=team, name=name).first()
        if found is None:
            raise CommandError(f"Team {team} has no host {name}.")
        return found
