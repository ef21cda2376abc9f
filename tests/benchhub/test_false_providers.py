"""What an identity provider, or whoever speaks in its name, may say without signing anybody in."""

from __future__ import annotations

import base64
import html
import re
import time
import urllib.parse
from collections.abc import Iterator
from typing import Any

import pytest
from allauth.account.models import EmailAddress
from django.contrib.auth import get_user_model
from django.test import Client
from pytest_django import Settings

from benchhub import single_sign_on
from tests.benchhub.false_provider import LEFT_OUT, FalseProvider, false_provider
from tests.benchhub.test_single_sign_on import Assertion, Signer, answered, asked, saml, signer

__all__ = ["saml", "signer"]  # fixtures


@pytest.fixture
def provider(settings: Settings) -> Iterator[FalseProvider]:
    with false_provider() as found:
        app = single_sign_on.oidc_app(found.address, "benchhub", "secret", "Example")
        settings.SOCIALACCOUNT_PROVIDERS = {"openid_connect": {"OAUTH_PKCE_ENABLED": True, "APPS": [app]}}
        yield found


def state_of(browser: Client, after: str = "") -> str:
    """Begin a sign-in; returns the state that the answer must bring back."""
    page = browser.post("/accounts/oidc/sso/login/", {"process": "login"} | ({"next": after} if after else {}))
    found = re.search(r'href="(http://127[^"]+)"', page.content.decode())
    assert found
    return urllib.parse.parse_qs(urllib.parse.urlsplit(html.unescape(found[1])).query)["state"][0]


def came_back(browser: Client, state: str) -> Any:
    return browser.get(f"/accounts/oidc/sso/login/callback/?code=c&state={state}")


@pytest.mark.django_db
def test_an_answer_signs_in_once(provider: FalseProvider) -> None:
    browser = Client()
    state = state_of(browser)
    came_back(browser, state)
    assert "_auth_user_id" in browser.session
    browser.post("/accounts/logout/")
    assert "Single sign-on failed" in came_back(browser, state).content.decode()
    assert "_auth_user_id" not in browser.session


@pytest.mark.django_db
@pytest.mark.parametrize(
    "part, changes",
    [
        ("claims", {"iss": "https://another.example.org"}),
        ("claims", {"iss": LEFT_OUT}),
        ("claims", {"aud": "another"}),
        ("claims", {"aud": LEFT_OUT}),
        ("claims", {"exp": int(time.time()) - 3600}),
        ("claims", {"exp": LEFT_OUT}),
        ("claims", {"sub": "e-1"}),
        ("userinfo", {"sub": "e-1"}),
        ("userinfo", {"sub": LEFT_OUT}),
        ("token", {"access_token": LEFT_OUT}),
        ("description", {"token_endpoint": "http://192.0.2.1/token"}),
        ("description", {"userinfo_endpoint": "http://192.0.2.1/userinfo"}),
    ],
    ids=lambda value: value if isinstance(value, str) else next(iter(value)),
)
def test_an_answer_that_does_not_fit_signs_nobody_in(
    provider: FalseProvider, part: str, changes: dict[str, Any]
) -> None:
    provider.say(part, changes)
    browser = Client()
    answer = came_back(browser, state_of(browser))
    assert "Single sign-on failed" in answer.content.decode()
    assert "_auth_user_id" not in browser.session
    assert not get_user_model().objects.exists()


@pytest.mark.django_db
def test_an_answer_without_an_id_token_signs_nobody_in(provider: FalseProvider) -> None:
    provider.sends_id_token = False
    browser = Client()
    assert "Single sign-on failed" in came_back(browser, state_of(browser)).content.decode()
    assert "_auth_user_id" not in browser.session


@pytest.mark.django_db
@pytest.mark.parametrize(
    "said, same", [(True, True), ("true", True), ("false", False), (False, False), (LEFT_OUT, False)]
)
def test_an_account_is_opened_by_an_address_only_when_the_provider_says_verified(
    provider: FalseProvider, said: Any, same: bool
) -> None:
    local = get_user_model().objects.create_user("local", email="grace@example.org", password="correct horse battery")
    EmailAddress.objects.create(user=local, email=local.email, verified=True, primary=True)
    provider.say("userinfo", {"email_verified": said})
    browser = Client()
    answer = came_back(browser, state_of(browser))
    assert answer.status_code in (200, 302)
    assert (browser.session.get("_auth_user_id") == str(local.pk)) is same


@pytest.mark.django_db
@pytest.mark.parametrize(
    "after", ["https://evil.example.org/", "//evil.example.org", "/\\evil.example.org", "javascript:x"]
)
def test_a_sign_in_leads_to_no_other_site(provider: FalseProvider, after: str) -> None:
    browser = Client()
    answer = came_back(browser, state_of(browser, after))
    assert "evil" not in answer.headers["Location"]
    assert not answer.headers["Location"].startswith("javascript")


def wrapped(answer: str, how: str) -> str:
    """The signed answer with an assertion about the admin beside, around or before what was signed."""
    whole = base64.b64decode(answer).decode()
    start, end = whole.index("<saml:Assertion"), whole.index("</samlp:Response>")
    signed = whole[start:end]
    forged = re.sub(r"<ds:Signature.*?</ds:Signature>", "", signed, flags=re.DOTALL)
    forged = forged.replace("grace", "admin").replace('ID="a1"', 'ID="a2"')
    inside = forged.replace("</saml:Assertion>", f"<saml:Advice>{signed}</saml:Advice></saml:Assertion>")
    same_id = forged.replace('ID="a2"', 'ID="a1"')
    kept = {
        "before": forged + signed,
        "after": signed + forged,
        "around": inside,
        "extensions": f"<samlp:Extensions>{signed}</samlp:Extensions>{forged}",
        "same id": same_id + signed,
        "signature moved": forged.replace("<saml:Subject>", _signature(signed) + "<saml:Subject>", 1),
    }[how]
    return base64.b64encode((whole[:start] + kept + whole[end:]).encode()).decode()


def _signature(signed: str) -> str:
    found = re.search(r"<ds:Signature.*?</ds:Signature>", signed, re.DOTALL)
    assert found
    return found[0]


@pytest.mark.django_db
@pytest.mark.parametrize("how", ["before", "after", "around", "extensions", "same id", "signature moved"])
def test_an_assertion_wrapped_around_a_signed_one_signs_nobody_in(saml: Client, signer: Signer, how: str) -> None:
    get_user_model().objects.create_user("admin", email="admin@example.org")
    answer = wrapped(signer.answer(Assertion(asked(saml))), how)
    assert "Single sign-on failed" in answered(saml, answer)
    assert "_auth_user_id" not in saml.session


@pytest.mark.django_db
def test_a_comment_in_a_signed_name_cuts_nothing_off(saml: Client, signer: Signer) -> None:
    answered(saml, signer.answer(Assertion(asked(saml), name="admin<!-- -->istrator")))
    [user] = get_user_model().objects.all()
    assert user.get_username() == "administrator"
