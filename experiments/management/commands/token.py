"""API tokens from the operator's command line."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import CommandError

from experiments.management import base
from experiments.models import Member
from experiments.registry.errors import RequestError
from experiments.registry.hosts.site_tokens import issue_as_asked
from experiments.registry.teams.tokens import MAX_DAYS, SCOPES


class Command(base.Command):
    help = "Make an API token and print it; it cannot be shown again."

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        create = actions.add_parser("create", help="make a token for a member of a team")
        create.add_argument("--team", required=True, help="the team's short name, as in its addresses")
        create.add_argument("--user", required=True, help="the member for whom the token acts")
        create.add_argument("--name", required=True, help="what the token is for")
        create.add_argument("--scopes", required=True, help=f"some of {','.join(SCOPES)}, with commas between; or work")
        create.add_argument("--site", default="", help="of a token with the scope work: the site of its worker")
        create.add_argument("--days", type=int, default=90, help=f"how long it lives, at most {MAX_DAYS} (90)")

    def handle(
        self, *_arguments: Any, team: str, user: str, name: str, scopes: str, days: int, site: str, **_options: Any
    ) -> None:
        key = f"user__{get_user_model().USERNAME_FIELD}"
        member = Member.objects.select_related("team", "user").filter(team__slug=team, **{key: user}).first()
        if member is None:
            raise CommandError(f"{user} is no member of a team {team}.")
        chosen = [one.strip() for one in scopes.split(",") if one.strip()]
        try:
            _, text = issue_as_asked(member, name=name, scopes=chosen, days=days, site=site)
        except RequestError as error:
            raise CommandError(error.message) from error
        self.stdout.write(text)
