"""The second factor: setting one up, signing in with it, and teams that let nobody in without."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import TOTP, format_hotp_value, hotp_value
from django.test import Client
from pytest_django import Settings

from experiments.models import AuditEntry, Member, Role
from experiments.registry.errors import Conflict
from experiments.registry.teams.founding import change_team
from experiments.registry.teams.members import add_service
from experiments.registry.teams.tokens import issue
from tests.experiments.conftest import MakeMember, admin, make_member, team

__all__ = ["admin", "make_member", "team"]  # fixtures

PASSWORD = "correct horse battery"
SECRET = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"


@pytest.fixture(autouse=True)
def patient(settings: Settings) -> None:
    """A code stays right for ten minutes: this machine may be slow."""
    settings.MFA_TOTP_TOLERANCE = 20


def code_for(secret: str) -> str:
    return str(format_hotp_value(hotp_value(secret, int(time.time()) // 30)))


def signed_in(username: str = "ada") -> Client:
    browser = Client()
    answer = browser.post("/accounts/login/", {"login": username, "password": PASSWORD})
    assert answer.status_code == 302
    return browser


def confirmed(browser: Client) -> Client:
    """The password once more, as before anything that guards the account."""
    assert browser.post("/accounts/reauthenticate/", {"password": PASSWORD}).status_code == 302
    return browser


def protect(member: Member) -> None:
    TOTP.activate(member.user, SECRET)


def test_an_authenticator_app_is_set_up_and_asked_for_from_then_on(admin: Member) -> None:
    browser = confirmed(signed_in())
    page = browser.get("/accounts/2fa/totp/activate/").content.decode()
    found = re.search(r'<code class="break">([A-Z2-7]+)</code>', page)
    assert found
    assert 'src="data:image/svg+xml' in page
    wrong = browser.post("/accounts/2fa/totp/activate/", {"code": "000000"})
    assert "Incorrect code" in wrong.content.decode()
    browser.post("/accounts/2fa/totp/activate/", {"code": code_for(found[1])})
    kept = Authenticator.objects.get(type=Authenticator.Type.TOTP)
    assert found[1] not in str(kept.data)  # encrypted with the key file
    assert f"On since {kept.created_at:%Y-%m-%d}." in browser.get("/accounts/2fa/").content.decode()

    second = Client()
    first_step = second.post("/accounts/login/", {"login": "ada", "password": PASSWORD})
    assert first_step.headers["Location"] == "/accounts/2fa/authenticate/"
    assert second.get("/t/perf/").status_code == 302
    assert second.get("/api/v1/me").status_code == 401
    assert "Incorrect code" in second.post("/accounts/2fa/authenticate/", {"code": "000000"}).content.decode()
    second.post("/accounts/2fa/authenticate/", {"code": code_for(found[1])})
    assert second.get("/t/perf/").status_code == 200


def test_a_recovery_code_works_once(admin: Member) -> None:
    browser = confirmed(signed_in())
    protect(admin)
    browser.post("/accounts/2fa/recovery-codes/generate/")
    page = browser.get("/accounts/2fa/recovery-codes/").content.decode()
    codes = re.findall(r"<li>(\d+)</li>", page)
    assert len(codes) == 10
    outcomes = []
    for _ in range(2):
        other = Client()
        other.post("/accounts/login/", {"login": "ada", "password": PASSWORD})
        other.post("/accounts/2fa/authenticate/", {"code": codes[0]})
        outcomes.append(other.get("/t/perf/").status_code)
    assert outcomes == [200, 302]


def test_guessing_codes_is_throttled(admin: Member, settings: Settings) -> None:
    settings.MFA_TOTP_TOLERANCE = 0  # or one of the guesses might be right
    protect(admin)
    browser = Client()
    browser.post("/accounts/login/", {"login": "ada", "password": PASSWORD})
    answers = [
        browser.post("/accounts/2fa/authenticate/", {"code": f"{guess:06}"}).content.decode() for guess in range(8)
    ]
    assert "Incorrect code" in answers[0]
    assert "Too many failed login attempts" in answers[-1]


def test_a_team_that_asks_for_it_opens_to_who_has_one(admin: Member, make_member: MakeMember) -> None:
    viewer = make_member(admin.team, Role.VIEWER, "vera")
    with pytest.raises(Conflict, match="yourself first"):
        change_team(admin, requires_second_factor=True)
    protect(admin)
    change_team(admin, requires_second_factor=True)
    assert AuditEntry.objects.get(action="team.change").after == {"name": "Performance", "requires_second_factor": True}

    browser = Client()
    browser.force_login(viewer.user)
    for address in ("/t/perf/", "/t/perf/settings/team/", "/t/perf/runs/1/events"):
        assert browser.get(address).headers["Location"] == "/accounts/2fa/", address
    assert browser.get("/t/perf/", follow=True).status_code == 200
    assert "asks its members for a second factor" in browser.get("/t/perf/", follow=True).content.decode()
    assert browser.get("/api/v1/me").status_code == 403
    protect(viewer)
    assert browser.get("/t/perf/").status_code == 200
    assert browser.get("/api/v1/me").status_code == 200


def test_tokens_of_people_without_it_rest_and_those_of_services_go_on(admin: Member, make_member: MakeMember) -> None:
    viewer, service = make_member(admin.team, Role.VIEWER), add_service(admin, "ci", "viewer")
    _, personal = issue(viewer, name="mine", scopes=["read"])
    _, of_team = issue(admin, name="ci", scopes=["read"], service=service)
    protect(admin)
    change_team(admin, requires_second_factor=True)

    def asked(text: str) -> int:
        return Client().get("/api/v1/me", headers={"Authorization": f"Bearer {text}"}).status_code

    assert (asked(personal), asked(of_team)) == (403, 200)
    protect(viewer)
    assert asked(personal) == 200


PAGES: tuple[tuple[str, Callable[[Member], Any]], ...] = (
    ("/accounts/2fa/", lambda member: None),
    ("/accounts/2fa/", protect),
    ("/accounts/2fa/totp/activate/", lambda member: None),
    ("/accounts/2fa/totp/deactivate/", protect),
    ("/accounts/2fa/recovery-codes/generate/", protect),
    ("/accounts/2fa/webauthn/", lambda member: None),
    ("/accounts/2fa/webauthn/add/", lambda member: None),
    ("/accounts/2fa/reauthenticate/", protect),
    ("/accounts/email/", lambda member: None),
    ("/accounts/password/change/", lambda member: None),
    ("/accounts/3rdparty/", lambda member: None),
    ("/accounts/logout/", lambda member: None),
    ("/accounts/reauthenticate/", lambda member: None),
)


@pytest.mark.parametrize("address, before", PAGES, ids=lambda value: value if isinstance(value, str) else "")
def test_every_page_of_the_account_is_ours_and_needs_no_exception_of_the_policy(
    admin: Member, address: str, before: Callable[[Member], Any]
) -> None:
    browser = confirmed(signed_in())
    before(admin)
    answer = browser.get(address)
    page = answer.content.decode()
    assert answer.status_code == 200
    assert 'class="plain-page"' in page
    assert "unsafe" not in answer.headers["Content-Security-Policy"]
    assert not re.search(r"<script(?![^>]*(src=|type=\"application/json\"))", page)
    assert not re.search(r"\sstyle=|\son[a-z]+=", page)


def test_the_password_is_asked_for_again_before_a_second_factor_is_switched_off(admin: Member) -> None:
    browser = signed_in()
    protect(admin)
    answer = browser.post("/accounts/2fa/totp/deactivate/")
    assert "/reauthenticate/" in answer.headers["Location"]
    assert Authenticator.objects.exists()


def test_an_address_changes_once_its_link_was_opened(admin: Member, mailoutbox: list[Any]) -> None:
    browser = confirmed(signed_in())
    browser.post("/accounts/email/", {"email": "ada@example.org", "action_add": ""})
    [sent] = mailoutbox
    link = re.search(r"http://\S+(/accounts/confirm-email/\S+/)", sent.body)
    assert link
    assert sent.to == ["ada@example.org"]
    assert "Confirm the address" in browser.get(link[1]).content.decode()
    admin.user.refresh_from_db()
    browser.post(link[1])
    admin.user.refresh_from_db()
    assert admin.user.email == "ada@example.org"
