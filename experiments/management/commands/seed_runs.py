"""Fill a team with made-up runs."""

from __future__ import annotations

import time
from argparse import ArgumentParser
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import CommandError, CommandParser
from django.db import connection

from experiments.keeping.demo.seeding import SEED, seed_runs
from experiments.management import base
from experiments.models import Member, Role, Team

MOST_RUNS = 2_000_000


class Command(base.Command):
    help = "Fill a team with made-up runs, marked as demo; an admin of the team can delete them again."

    def add_arguments(self, parser: CommandParser | ArgumentParser) -> None:
        parser.add_argument("count", type=int, help="How many runs to add.")
        parser.add_argument("--team", default="seeded", help="The team's slug; it is made when there is none.")
        parser.add_argument("--admin", metavar="USERNAME", help="An existing user who becomes admin of the team.")
        parser.add_argument("--seed", type=int, default=SEED, help="The same seed gives the same figures.")

    def handle(self, *args: Any, **options: Any) -> None:
        count = options["count"]
        if not 1 <= count <= MOST_RUNS:
            raise CommandError(f"COUNT must be between 1 and {MOST_RUNS}.")
        slug = options["team"]
        team, _ = Team.objects.get_or_create(slug=slug, defaults={"name": slug.capitalize(), "is_demo": True})
        if username := options["admin"]:
            self._make_admin(team, username)
        started_s = time.monotonic()
        first = seed_runs(team, count, seed=options["seed"])
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")  # the planner knows nothing yet of what COPY brought
        took_s = time.monotonic() - started_s
        self.stdout.write(f"Runs #{first} to #{first + count - 1} of team {slug} in {took_s:.1f} s.")

    def _make_admin(self, team: Team, username: str) -> None:
        user = get_user_model().objects.filter(username=username).first()
        if user is None:
            raise CommandError(f"There is no user {username!r}.")
        Member.objects.get_or_create(team=team, user=user, defaults={"role": Role.ADMIN})
