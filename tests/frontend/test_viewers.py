"""Every page and action as a viewer: they see the team, and change nothing of it."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from experiments.models import AuditEntry, Experiment, Host, Invitation, Member, Recipe, Role, Run, Team, Token
from tests.experiments.conftest import MakeMember
from tests.frontend.test_isolation import PAGES, admin, arguments, make_member, other_admin, team

__all__ = ["admin", "arguments", "make_member", "other_admin", "team"]  # fixtures

OF_THEIR_OWN = {
    "no_first_steps": "hides a hint from oneself",
    "alert_mails": "one's own mails",
    "choose_mails": "one's own mails",
    "new_view": "a saved filter of one's own",
    "change_view": "of one's own; the team's belong to editors",
    "bulk_runs": "looks at what was ticked: nothing here",
    "library_fits": "only says what would fit",
    "leave_team": "one's own membership",
}
STREAMS = {"run_events"}


@pytest.mark.django_db
def test_a_viewer_sees_pages_and_changes_nothing(
    arguments: dict[str, dict[str, Any]], admin: Member, make_member: MakeMember
) -> None:
    viewer = make_member(admin.team, Role.VIEWER, "vera")
    browser = Client()
    browser.force_login(viewer.user)
    counted = (AuditEntry, Experiment, Host, Invitation, Member, Recipe, Run, Token)
    before = [model.objects.count() for model in counted]
    allowed, broken = set(), {}
    for page in PAGES:
        name = str(page.name)
        if name in STREAMS:
            continue
        address = reverse(name, kwargs={"team_slug": admin.team.slug, **arguments[name]})
        seen = browser.get(address).status_code
        # The page of an action alone knows no GET; a form that is also a page is asked for with nothing filled in.
        done = browser.post(address).status_code if name != "leave_team" else seen
        if seen == 405 and done not in (403, 404):  # what is of staff is not there
            allowed.add(name)
        if max(seen, done) >= 500:
            broken[name] = (seen, done)
    assert broken == {}
    assert allowed <= OF_THEIR_OWN.keys()
    assert [model.objects.count() for model in counted] == before


@pytest.mark.django_db
def test_a_form_that_is_also_a_page_refuses_a_viewer_who_fills_it_in(admin: Member, make_member: MakeMember) -> None:
    browser = Client()
    browser.force_login(make_member(admin.team, Role.VIEWER, "vera").user)
    before = AuditEntry.objects.count()
    assert browser.post("/t/perf/settings/", {"username": "mallory", "role": "admin"}).status_code == 403
    assert browser.post("/t/perf/settings/team/", {"name": "Mine"}).status_code == 403
    asked = {"name": "x", "scopes": ["write"], "days": "9"}
    assert browser.post("/t/perf/settings/tokens/", asked).status_code == 422
    assert AuditEntry.objects.count() == before


@pytest.mark.django_db
@pytest.mark.parametrize(
    "page", ["experiments", "schedules", "searches", "bisections", "tunings", "trends", "overview"]
)
def test_an_empty_list_offers_a_viewer_no_button_that_would_refuse_them(
    page: str, team: Team, make_member: MakeMember
) -> None:
    browser = Client()
    browser.force_login(make_member(team, Role.VIEWER, "vera").user)
    text = browser.get(reverse(page, args=[team.slug])).content.decode()
    assert 'class="empty"' in text
    assert "/new/" not in text
