"""A security key under the Content-Security-Policy: the browser's own virtual authenticator is the key."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page
from pytest_django.live_server_helper import LiveServer

from experiments.models import Member, Role, Team

PASSWORD = "correct horse battery"
KEY = {
    "protocol": "ctap2",
    "transport": "usb",
    "hasResidentKey": True,
    "hasUserVerification": True,
    "isUserVerified": True,
}


@pytest.fixture
def member(transactional_db: None) -> Member:

    team = Team.objects.create(slug="perf", name="Performance")
    return Member.objects.create(team=team, user=User.objects.create_user("ada", password=PASSWORD), role=Role.VIEWER)


def type_password(page: Page, base: str) -> None:
    page.goto(f"{base}/accounts/login/")
    page.fill("[name=login]", "ada")
    page.fill("[name=password]", PASSWORD)
    page.click("button:has-text('Sign in')")


@pytest.mark.browser
def test_a_security_key_is_added_and_signs_in(member: Member, live_server: LiveServer, page: Page) -> None:
    base = live_server.url.replace("127.0.0.1", "localhost")  # a key belongs to a name, not to an IP address
    browser = page.context.new_cdp_session(page)
    browser.send("WebAuthn.enable")
    browser.send("WebAuthn.addVirtualAuthenticator", {"options": KEY})

    type_password(page, base)
    page.wait_for_url(re.compile("/t/perf/"))
    page.goto(f"{base}/accounts/2fa/webauthn/add/")
    page.fill("[name=password]", PASSWORD)
    page.click("button:has-text('Confirm')")
    page.click("button:has-text('Add the key')")
    page.wait_for_url(re.compile("/recovery-codes/"))
    page.goto(f"{base}/accounts/logout/")
    page.click("button:has-text('Sign out')")

    type_password(page, base)
    page.wait_for_url(re.compile("/2fa/authenticate/"))
    page.click("button:has-text('Use a security key')")
    page.wait_for_url(re.compile("/t/perf/"))
    page.goto("about:blank")
