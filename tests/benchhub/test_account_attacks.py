"""What somebody tries who has a password but no code, an old link, a stolen session, or only a name."""

from __future__ import annotations

import re
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP
from django.contrib.auth import get_user_model
from django.contrib.auth.hashers import get_hasher
from django.test import Client

from experiments.models import Member
from experiments.registry.teams.tokens import issue
from tests.benchhub.test_second_factor import PASSWORD, SECRET, code_for, confirmed, patient, protect, signed_in
from tests.experiments.conftest import admin, make_member, team

__all__ = ["admin", "make_member", "patient", "team"]  # fixtures

ELSEWHERE = ("https://evil.example.org/", "//evil.example.org/", "/\\evil.example.org/", "javascript:alert(1)")


def half_signed_in() -> Client:
    """A browser after the password and before the code."""
    browser = Client()
    answer = browser.post("/accounts/login/", {"login": "ada", "password": PASSWORD})
    assert answer.headers["Location"].startswith("/accounts/2fa/authenticate/")
    return browser


@pytest.mark.parametrize(
    "address",
    [
        "/t/perf/",
        "/t/perf/runs/",
        "/accounts/2fa/",
        "/accounts/2fa/recovery-codes/",
        "/accounts/2fa/totp/deactivate/",
        "/accounts/2fa/webauthn/",
        "/accounts/password/change/",
        "/accounts/email/",
        "/accounts/reauthenticate/",
        "/operator/",
    ],
)
def test_a_password_without_the_code_opens_no_page(admin: Member, address: str) -> None:
    protect(admin)
    browser = half_signed_in()
    for answer in (browser.get(address), browser.post(address, {"password": PASSWORD})):
        assert answer.status_code in (302, 403, 404, 405), address
        assert answer.headers.get("Location", "/accounts/login/").startswith("/accounts/login/")
    assert browser.get("/api/v1/me").status_code == 401
    assert Authenticator.objects.filter(type=Authenticator.Type.TOTP).exists()


def test_a_code_of_the_app_signs_in_once(admin: Member) -> None:
    protect(admin)
    code, seen = code_for(SECRET), []
    for _ in range(2):
        browser = half_signed_in()
        browser.post("/accounts/2fa/authenticate/", {"code": code})
        seen.append(browser.get("/t/perf/").status_code)
    assert seen == [200, 302]


def test_after_too_many_codes_the_right_one_does_not_sign_in_either_from_any_browser(admin: Member) -> None:
    protect(admin)
    for guess in range(6):
        half_signed_in().post("/accounts/2fa/authenticate/", {"code": f"{guess:06}"})
    browser = half_signed_in()
    browser.post("/accounts/2fa/authenticate/", {"code": code_for(SECRET)})
    assert browser.get("/t/perf/").status_code == 302


@pytest.mark.parametrize(
    "method, address",
    [
        ("get", "/accounts/2fa/recovery-codes/"),
        ("get", "/accounts/2fa/recovery-codes/download/"),
        ("post", "/accounts/2fa/recovery-codes/generate/"),
        ("get", "/accounts/2fa/totp/activate/"),
        ("post", "/accounts/2fa/totp/deactivate/"),
        ("get", "/accounts/2fa/webauthn/add/"),
        ("post", "/accounts/email/"),
    ],
)
def test_a_session_that_somebody_found_open_changes_nothing_of_the_account_without_the_password(
    admin: Member, method: str, address: str
) -> None:
    browser = signed_in()
    session = browser.session
    session["account_authentication_methods"] = [
        {**one, "at": one["at"] - 3600} for one in session["account_authentication_methods"]
    ]
    session.save()
    if "totp/activate" not in address:
        TOTP.activate(admin.user, SECRET)
        RecoveryCodes.activate(admin.user)
    answer = getattr(browser, method)(address, {"email": "eve@example.org", "action_add": ""})
    assert "/reauthenticate/" in answer.headers["Location"]


def test_a_changed_password_ends_every_other_session_and_leaves_tokens_alone(admin: Member) -> None:
    mine, stolen = confirmed(signed_in()), signed_in()
    _, token = issue(admin, name="ci", scopes=["read"])
    new = "another horse battery"
    mine.post("/accounts/password/change/", {"oldpassword": PASSWORD, "password1": new, "password2": new})
    assert mine.get("/t/perf/").status_code == 200
    assert stolen.get("/t/perf/").status_code == 302
    assert Client().get("/api/v1/me", headers={"Authorization": f"Bearer {token}"}).status_code == 200


def reset_link(mail: Any) -> str:
    found = re.search(r"http://\S+(/accounts/password/reset/key/\S+/)", mail.body)
    assert found
    return found[1]


def test_a_link_for_a_forgotten_password_works_once_ends_sessions_and_asks_for_the_code(
    admin: Member, mailoutbox: list[Any]
) -> None:
    admin.user.email = "ada@example.org"
    admin.user.save()
    stolen = signed_in()
    protect(admin)
    browser, new = Client(), "another horse battery"
    browser.post("/accounts/password/reset/", {"email": "ada@example.org"})
    link = reset_link(mailoutbox[0])
    form = browser.get(link).headers["Location"]
    browser.post(form, {"password1": new, "password2": new})
    assert browser.get("/t/perf/").status_code == 302
    assert stolen.get("/t/perf/").status_code == 302
    answer = browser.post("/accounts/login/", {"login": "ada", "password": new})
    assert answer.headers["Location"].startswith("/accounts/2fa/authenticate/")
    again = Client()
    assert "used already" in again.get(link, follow=True).content.decode()
    again.post(form, {"password1": "a third horse battery", "password2": "a third horse battery"})
    assert Client().login(username="ada", password=new)


def test_names_are_not_told_apart_by_answers_mails_or_work(
    admin: Member, mailoutbox: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    admin.user.email = "ada@example.org"
    admin.user.save()
    hashed: list[str] = []
    hasher = type(get_hasher())
    plain = hasher.encode

    def counted(self: Any, password: str, salt: str) -> str:
        hashed.append(password)
        return str(plain(self, password, salt))

    monkeypatch.setattr(hasher, "encode", counted)
    seen = []
    for name in ("ada", "nobody", "ada@example.org", "nobody@example.org"):
        hashed.clear()
        page = Client().post("/accounts/login/", {"login": name, "password": "wrong"}).content.decode()
        seen.append((re.findall(r"<p>([^<]* not right\.)</p>", page), list(hashed)))
    assert seen == [(["User name, mail address or password are not right."], ["wrong"])] * 4
    answers = [
        Client().post("/accounts/password/reset/", {"email": f"{name}@example.org"}) for name in ("ada", "nobody")
    ]
    assert answers[0].headers["Location"] == answers[1].headers["Location"]
    assert [mail.to for mail in mailoutbox] == [["ada@example.org"]]


@pytest.mark.parametrize("after", ELSEWHERE)
def test_no_address_of_the_account_leads_to_another_site(admin: Member, after: str) -> None:
    browser = Client()
    answers = [browser.post("/accounts/login/", {"login": "ada", "password": PASSWORD, "next": after})]
    answers.append(browser.post("/accounts/reauthenticate/", {"password": PASSWORD, "next": after}))
    answers.append(browser.post("/accounts/logout/", {"next": after}))
    protect(admin)
    browser.post("/accounts/login/", {"login": "ada", "password": PASSWORD, "next": after})
    answers.append(browser.post("/accounts/2fa/authenticate/", {"code": code_for(SECRET), "next": after}))
    for answer in answers:
        assert answer.status_code == 302
        assert re.fullmatch(r"/(?![/\\]).*", answer.headers["Location"])


def test_a_person_who_was_switched_off_is_out_at_once(admin: Member) -> None:
    browser = signed_in()
    _, token = issue(admin, name="ci", scopes=["read"])
    get_user_model().objects.filter(pk=admin.user_id).update(is_active=False)
    assert browser.get("/t/perf/").status_code == 302
    assert Client().get("/api/v1/me", headers={"Authorization": f"Bearer {token}"}).status_code in (401, 403)
