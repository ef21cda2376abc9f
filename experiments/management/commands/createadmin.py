"""The first administrator: a user, a team, and the role admin in it."""

from __future__ import annotations

import getpass
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.management.base import CommandError
from django.core.validators import validate_slug
from django.db import transaction

from experiments.management import base
from experiments.models import Member, Role, Team
from experiments.registry.teams.first_account import PASSWORD_RULE


class Command(base.Command):
    help = "Make the first administrator and team. Safe to repeat: what is there stays, a password is never replaced."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--user", default="admin", help="name to sign in with (admin)")
        parser.add_argument("--email", default="")
        parser.add_argument("--team", default="team", help="the team's short name, as in its addresses (team)")
        parser.add_argument("--team-name", default="", help="the team's name as people read it")
        parser.add_argument("--password-file", help=f"a file with the password, else it is asked for. {PASSWORD_RULE}")

    def handle(
        self,
        *_arguments: Any,
        user: str,
        email: str,
        team: str,
        team_name: str,
        password_file: str | None,
        **_options: Any,
    ) -> None:
        try:
            validate_slug(team)
        except ValidationError as error:
            raise CommandError("A team's short name has only letters, digits, - and _.") from error
        users = get_user_model().objects
        existing = users.filter(username=user).first()
        password = "" if existing else _password(password_file)
        with transaction.atomic():
            account = existing
            if account is None:
                account = get_user_model()(username=user, email=email, is_staff=True, is_superuser=True)
                _check(password, account)
                account.set_password(password)
                account.save()
            found, new_team = Team.objects.get_or_create(slug=team, defaults={"name": team_name or team})
            member, new_member = Member.objects.get_or_create(team=found, user=account, defaults={"role": Role.ADMIN})
        if member.role != Role.ADMIN:
            raise CommandError(f"{user} is {member.role} of {team} already; an admin of the team can change that.")
        done = [
            *([f"user {user}"] if existing is None else []),
            *([f"team {team}"] if new_team else []),
            *(["membership"] if new_member else []),
        ]
        self.stdout.write(f"Made: {', '.join(done)}." if done else f"{user} is an admin of {team} already.")


def _password(file: str | None) -> str:
    if file:
        try:
            return Path(file).read_text(encoding="utf-8").strip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            raise CommandError(f"{file} cannot be read: {error}") from error
    if not sys.stdin.isatty():
        raise CommandError("Give --password-file: there is no terminal to ask for the password.")
    print(PASSWORD_RULE, file=sys.stderr)
    first = getpass.getpass("Password: ")
    if getpass.getpass("Again: ") != first:
        raise CommandError("The two passwords differ.")
    return first


def _check(password: str, account: Any) -> None:
    try:
        validate_password(password, account)
    except ValidationError as error:
        raise CommandError(" ".join(error.messages)) from error
