"""Puts a team with one of each kind of thing into an installation, for looks at every kind of page in a browser.

Prints JSON: the addresses that are handed over and linked from nowhere, and the pages of what went wrong as HTML.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

from django.template.loader import render_to_string
from django.urls import reverse

import bench.django_project  # noqa: F401 - before the models
from bench.screenshot_data import fill_with_few
from bench.website import team_with_runs
from experiments.keeping.demo.history import make_history
from experiments.models import Application, Host, Member, Recipe, Role, Run, ShareLink
from experiments.registry.teams.invitations import invite
from experiments.telling.sharing.links import share
from experiments.telling.sharing.subjects import Subject

RUNS = 60
BROKEN = ("403", "403_csrf", "404", "429", "500", "503")
VIEWER = "linus"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--team", default="pictures")
    parser.add_argument("--user", default="demo", help="who becomes its admin")
    parser.add_argument("--password", required=True, help="of a viewer with a second factor, who is made as well")
    given = parser.parse_args()
    team, user = team_with_runs(given.team, RUNS, given.user)
    member = Member.objects.select_related("team", "user").get(team=team, user=user)
    fill_with_few(member)
    viewer = Member.objects.select_related("user").get(team=team, user__username=VIEWER).user
    viewer.set_password(given.password)
    viewer.save()
    code = _second_factor(viewer)
    run = Run.objects.for_team(team).counted().latest("number")
    _history_with_an_alert(member)
    link = share(member, Subject(ShareLink.Kind.RUN, runs=(run.number,)))
    told = {
        "invitation": invite(member, Role.VIEWER).link,
        "shared": reverse("shared_page", args=[link.token]),
        "viewer": VIEWER,
        "recovery_code": code,
        "broken": {name: render_to_string(f"{name}.html", {"again": "/"}) for name in BROKEN},
    }
    print(json.dumps(told))


def _history_with_an_alert(member: Member) -> None:
    hosts = Host.objects.for_team(member.team)
    sut, driver = (hosts.exclude(roles=other).latest("pk") for other in ("driver", "sut"))
    newest = Application.objects.for_team(member.team).order_by("-pk")
    application = next(one for one in newest if not one.body.get("members"))  # of one host, as the history's runs are
    recipe = Recipe.objects.create(
        team=member.team, name="As it is", version=1, body={"steps": []}, created_by=member.user
    )
    make_history(member, sut=sut, driver=driver, application=application, recipe=recipe)


def _second_factor(user: Any) -> str:
    """Give the user one; returns a recovery code. What is imported here needs Django to be set up."""
    from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
    from allauth.mfa.totp.internal.auth import TOTP, generate_totp_secret

    TOTP.activate(user, generate_totp_secret())
    return str(RecoveryCodes.activate(user).get_unused_codes()[0])


if __name__ == "__main__":
    main()
