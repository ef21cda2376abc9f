"""Settings: members, invitations, services, the team, tokens, audit; and the pages that a link leads to."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from experiments.models import AuditEntry, Invitation, Member, Role, Team, Token
from experiments.registry.teams.audit import record
from experiments.registry.teams.invitations import invite
from experiments.registry.teams.members import add_service, set_role
from tests.experiments.conftest import MakeMember
from tests.frontend.flat import flat

BrowserOf = Callable[[Member], Client]
NEW = {"username": "grace", "password1": "wide green river", "password2": "wide green river"}


def shown_link(page: str) -> str:
    found = re.search(r'<code\s+id="invitation-link"\s*>([^<]+)</code>', page)
    assert found
    return urlsplit(found[1]).path


def test_an_invited_person_makes_an_account_and_is_in_the_team(admin: Member, browser: Client) -> None:
    page = browser.post("/t/perf/settings/invitations", {"email": "", "role": "editor"}).content.decode()
    link = shown_link(page)
    assert link not in browser.get("/t/perf/settings/").content.decode()
    visitor = Client()
    assert "Join Performance" in visitor.get(link).content.decode()
    visitor.post("/accounts/signup/", NEW | {"email": "grace@example.org"})
    assert visitor.get("/", follow=True).request["PATH_INFO"] == "/t/perf/"
    assert Member.objects.get(user__username="grace").role == Role.EDITOR
    assert visitor.get(link).headers["Location"] == "/t/perf/"
    late = Client().get(link)
    assert (late.status_code, "does not work" in late.content.decode()) == (404, True)


def test_an_address_that_was_invited_by_mail_counts_as_verified(
    admin: Member, browser: Client, mailoutbox: list[Any]
) -> None:
    page = browser.post("/t/perf/settings/invitations", {"email": "grace@example.org", "role": "viewer"})
    assert "on its way to grace@example.org" in page.content.decode()
    assert "invitation-link" not in page.content.decode()
    found = re.search(r"http://\S+(/invitations/\S+/)", mailoutbox[0].body)
    assert found
    visitor = Client()
    assert "signup/?email=grace%40example.org" in visitor.get(found[1]).content.decode()
    visitor.post("/accounts/signup/", NEW | {"email": "grace@example.org"})
    assert User.objects.get(username="grace").emailaddress_set.get().verified  # type: ignore[attr-defined]


@pytest.mark.parametrize("mailed_to, is_told", [("", False), ("Oscar@example.org", False), ("grace@example.org", True)])
def test_who_opens_a_link_that_was_mailed_to_somebody_else_is_told_so(
    admin: Member, other_admin: Member, browser_of: BrowserOf, mailoutbox: list[Any], mailed_to: str, is_told: bool
) -> None:
    User.objects.filter(pk=other_admin.user_id).update(email="oscar@example.org")
    link = invite(admin, "viewer", mailed_to).link or re.findall(r"http://\S+/invitations/\S+/", mailoutbox[0].body)[0]
    page = browser_of(other_admin).get(urlsplit(link).path).content.decode()
    assert (f"It was mailed to {mailed_to}" in page) == is_told


def test_who_has_an_account_joins_with_it(admin: Member, other_admin: Member, browser_of: BrowserOf) -> None:
    link = urlsplit(invite(admin, "viewer").link).path
    visitor = browser_of(other_admin)
    assert "Join as oscar" in visitor.get(link).content.decode()
    assert Member.objects.filter(user=other_admin.user).count() == 1
    assert visitor.post(link).headers["Location"] == "/t/perf/"
    assert Member.objects.get(team=admin.team, user=other_admin.user).role == Role.VIEWER


def test_without_an_invitation_there_is_no_sign_up(admin: Member) -> None:
    closed = Client()
    assert "by invitation" in closed.get("/accounts/signup/").content.decode()
    visitor, asked = Client(), invite(admin, "viewer")
    visitor.get(urlsplit(asked.link).path)
    assert "Make an account" in visitor.get("/accounts/signup/").content.decode()
    Invitation.objects.filter(pk=asked.invitation.pk).delete()
    visitor.post("/accounts/signup/", NEW | {"email": "grace@example.org"})
    assert not User.objects.filter(username="grace").exists()


def test_open_invitations_are_sent_again_and_revoked(admin: Member, browser: Client) -> None:
    first = shown_link(browser.post("/t/perf/settings/invitations", {"role": "viewer"}).content.decode())
    pk = Invitation.objects.get().pk
    second = shown_link(browser.post(f"/t/perf/settings/invitations/{pk}", {"resend": "1"}).content.decode())
    assert (Client().get(first).status_code, Client().get(second).status_code) == (404, 200)
    browser.post(f"/t/perf/settings/invitations/{pk}", {"revoke": "1"})
    assert Client().get(second).status_code == 404
    again = browser.post(f"/t/perf/settings/invitations/{pk}", {"revoke": "1"}, follow=True)
    assert "revoked already" in again.content.decode()


@pytest.mark.parametrize(
    "address, given, words",
    [
        ("invitations", {"email": "nobody", "role": "viewer"}, "valid email address"),
        ("invitations", {"role": "root"}, "root is not one of"),
        ("services", {"name": "CI", "role": "viewer"}, "small letters"),
        ("team/", {"name": " "}, "This field is required"),
        ("team/", {"name": "Perf", "requires_second_factor": "on"}, "Set up a second factor for yourself first"),
    ],
)
def test_what_cannot_be_is_said_at_its_field(
    admin: Member, browser: Client, address: str, given: dict[str, str], words: str
) -> None:
    answer = browser.post(f"/t/perf/settings/{address}", given)
    assert answer.status_code == 422
    assert words in answer.content.decode()


def test_a_token_of_a_service_outlives_the_admin_who_made_it(
    admin: Member, make_member: MakeMember, browser: Client
) -> None:
    browser.post("/t/perf/settings/services", {"name": "ci", "role": "launcher"})
    service = Member.objects.get(is_service=True)
    tokens = "/t/perf/settings/tokens/"
    assert "perf:ci (launcher)" in browser.get(tokens).content.decode()
    assert re.search(r"<label[^>]*>Scopes", browser.get(tokens).content.decode())
    refused = browser.post(tokens, {"name": "x", "scopes": ["write"], "days": "9", "service": service.pk})
    assert "needs the role editor" in refused.content.decode()
    browser.post(tokens, {"name": "mine", "scopes": ["read"], "days": "9"})
    page = browser.post(tokens, {"name": "ci", "scopes": ["read"], "days": "9", "service": service.pk})
    found = re.search(r'<code id="secret">([^<]+)</code>', page.content.decode())
    assert found
    make_member(admin.team, Role.ADMIN)
    browser.post("/t/perf/settings/team/leave")
    assert list(Token.objects.values_list("name", flat=True)) == ["ci"]
    me = Client().get("/api/v1/me", headers={"Authorization": f"Bearer {found[1]}"}).json()
    assert (me["user"], me["role"]) == ("perf:ci", "launcher")


def test_only_an_admin_makes_tokens_for_a_service(
    admin: Member, make_member: MakeMember, browser_of: BrowserOf
) -> None:
    service = add_service(admin, "ci", "launcher")
    browser = browser_of(make_member(admin.team, Role.EDITOR))
    assert "perf:ci" not in browser.get("/t/perf/settings/tokens/").content.decode()
    given = {"name": "x", "scopes": ["read"], "days": "9", "service": service.pk}
    browser.post("/t/perf/settings/tokens/", given)
    assert Token.objects.get().owner.get_username() != "perf:ci"


def test_who_may_founds_a_team_from_the_switcher(admin: Member, browser: Client, settings: Settings) -> None:
    assert "/teams/new/" not in browser.get("/t/perf/").content.decode()
    assert browser.get("/teams/new/").status_code == 403
    settings.BENCHHUB_TEAM_FOUNDERS = "everyone"
    assert "/teams/new/" in browser.get("/t/perf/").content.decode()
    taken = browser.post("/teams/new/", {"name": "Again", "slug": "perf"})
    assert (taken.status_code, "taken" in taken.content.decode()) == (422, True)
    assert browser.post("/teams/new/", {"name": "Second", "slug": "second"}).headers["Location"] == "/t/second/"
    assert Member.objects.get(team__slug="second").role == Role.ADMIN


def test_the_last_admin_cannot_leave(admin: Member, browser: Client) -> None:
    answer = browser.post("/t/perf/settings/team/leave", follow=True)
    assert "needs an admin" in answer.content.decode()
    assert Member.objects.filter(pk=admin.pk).exists()


@pytest.fixture
def trail(admin: Member, make_member: MakeMember) -> Team:
    """Entries of two people: a role, a nested value, and something that a spreadsheet would compute."""
    bob = make_member(admin.team, Role.VIEWER, "bob")
    set_role(admin, bob, "admin")
    bob.refresh_from_db()
    record(bob, "host.change", "host sut-1", before={"labels": {"rack": "a"}}, after={"labels": {"rack": "=1+1"}})
    return admin.team


@pytest.mark.parametrize(
    "query, count",
    [
        ("", 2),
        ("person=bob", 1),
        ("action=member.role", 1),
        ("subject=sut", 1),
        ("subject=nothing", 0),
        ("since=2000-01-01", 2),
        ("until=2000-01-01", 0),
        ("since=nonsense", 2),
        ("person=nobody", 2),
        ("before=1&person=bob", 0),
    ],
)
def test_the_audit_page_filters(trail: Team, browser: Client, query: str, count: int) -> None:
    page = browser.get(f"/t/perf/settings/audit/?{query}").content.decode()
    assert len(re.findall(r"<td class=\"nowrap\"><code>", page)) == count


def test_the_audit_page_and_its_csv_show_before_and_after_of_each_value(trail: Team, browser: Client) -> None:
    page = browser.get("/t/perf/settings/audit/?action=host.change").content.decode()
    assert "<dt>labels.rack</dt>" in page
    assert "<del>a</del> → <ins>=1+1</ins>" in flat(page)
    answer = browser.get("/t/perf/settings/audit/csv?action=host.change")
    rows = list(csv.DictReader(io.StringIO(b"".join(answer.streaming_content).decode())))  # type: ignore[attr-defined]
    assert [(row["person"], row["value"], row["before"], row["after"]) for row in rows] == [
        ("bob", "labels.rack", "a", "'=1+1")
    ]
    assert "attachment" in answer.headers["Content-Disposition"]


def test_the_api_filters_the_trail_and_manages_the_team(trail: Team, browser: Client) -> None:
    def ask(path: str) -> Any:
        return browser.get(f"/api/v1{path}").json()

    assert [entry["action"] for entry in ask("/audit?person=bob")["items"]] == ["host.change"]
    assert ask("/audit?action=member&since=2000-01-01T00:00:00Z")["items"][0]["after"] == {"role": "admin"}
    assert browser.get("/api/v1/audit?subject=%00").status_code == 422
    assert browser.get("/api/v1/audit?since=yesterday").status_code == 422
    assert ask("/team")["requires_second_factor"] is False
    assert {"user": "bob", "role": "admin", "service": False} in ask("/members")


def test_the_api_invites_and_makes_services(admin: Member, browser: Client) -> None:
    def send(method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        csrf = browser.cookies["benchhub_csrf"].value if "benchhub_csrf" in browser.cookies else ""
        return browser.generic(
            method, f"/api/v1{path}", "" if body is None else json.dumps(body),
            content_type="application/json", headers={"X-CSRFToken": csrf},
        )  # fmt: skip

    made = send("POST", "/invitations", {"role": "viewer"})
    assert made.status_code == 201
    assert "/invitations/bh_invitation_" in made.json()["link"]
    [listed] = send("GET", "/invitations").json()
    assert "link" not in listed
    assert send("POST", f"/invitations/{listed['id']}/resend").json()["link"] != made.json()["link"]
    assert send("DELETE", f"/invitations/{listed['id']}").status_code == 200
    assert send("DELETE", f"/invitations/{listed['id']}").status_code == 409
    assert send("POST", "/services", {"name": "ci"}).json() == {"user": "perf:ci", "role": "launcher", "service": True}
    token = send("POST", "/tokens", {"name": "ci", "scopes": ["read"], "service": "perf:ci"}).json()
    assert (token["owner"], token["service"]) == ("perf:ci", True)
    assert send("POST", "/tokens", {"name": "ci", "scopes": ["read"], "service": "ada"}).status_code == 422
    assert send("PATCH", "/members/perf:ci", {"role": "viewer"}).json()["role"] == "viewer"
    assert send("DELETE", "/members/perf:ci").status_code == 200
    assert Client().get("/api/v1/me", headers={"Authorization": f"Bearer {token['text']}"}).status_code == 401
    assert send("PATCH", "/team", {"name": "Tuning"}).json()["name"] == "Tuning"
    kept = send("PATCH", "/team", {"retention_days": 90}).json()
    assert (kept["retention_days"], kept["name"], kept["quotas"][1]["unit"]) == (90, "Tuning", "runs")
    assert send("PATCH", "/team", {"retention_days": 1}).json()["field"] == "retention_days"
    assert send("PATCH", "/team", {"name": "Tuning"}).json()["retention_days"] == 90
    assert send("PATCH", "/team", {"retention_days": None}).json()["retention_days"] is None
    assert AuditEntry.objects.filter(action="team.change").count() == 1
