"""Every form and every question of every page, filled in with what no browser would send."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urljoin, urlsplit

import pytest
from django.db import transaction
from django.test import Client
from django.urls import resolve, reverse
from lxml import html

from experiments.models import Member
from experiments.registry.teams.invitations import invite
from tests.benchhub.test_second_factor import PASSWORD, confirmed, protect, signed_in
from tests.frontend.test_isolation import PAGES, admin, arguments, make_member, other_admin, team

__all__ = ["admin", "arguments", "make_member", "other_admin", "team"]  # fixtures

STREAMS = {"run_events", "overview_events", "queue_events"}
VALUES = (
    "",
    "\0",
    "-1",
    "9" * 40,
    "1e999",
    "NaN",
    "{}",
    "[7]",
    "../../etc/passwd\r\nX: y",
    "[" * 2000,
    "{{ 7 }}'\"><script>alert(1)</script>\u202e",
    "x" * 70_000,
)
NOT_THEIRS = {"csrfmiddlewaretoken", "next"}


@dataclass(frozen=True)
class Form:
    """What a page lets people send: where to, how, and the names of its fields."""

    address: str
    method: str
    fields: tuple[str, ...]

    @property
    def subject(self) -> tuple[str, str, tuple[str, ...]]:
        """Forms of one view with the same fields are one form: a list has one in each line."""
        return resolve(self.address).view_name, self.method, self.fields


def forms_of(address: str, page: str) -> list[Form]:
    found = []
    for form in html.fromstring(page).iter("form"):
        action = urljoin(address, form.get("action") or address)
        if urlsplit(action).netloc:
            continue
        names = {
            str(field.get("name")) for field in form.iter("input", "select", "textarea", "button") if field.get("name")
        }
        names |= {name for name, _ in parse_qsl(urlsplit(action).query)}
        method = (form.get("method") or "get").lower()
        found.append(Form(urlsplit(action).path, method, tuple(sorted(names - NOT_THEIRS))))
    return found


def broken_by(browser: Client, addresses: Iterable[str], *, at_least: int) -> list[tuple[Form, str]]:
    """Forms of these pages and the values that made the server fail; nothing that they do stays."""
    forms: dict[Any, Form] = {}
    for address in addresses:
        answer = browser.get(address)
        if answer.status_code == 200 and b"<form" in getattr(answer, "content", b""):
            for form in forms_of(address, answer.content.decode()):
                forms.setdefault(form.subject, form)
    assert len(forms) >= at_least, sorted(forms)
    broken = []
    for form in forms.values():
        send = browser.post if form.method == "post" else browser.get
        for value in VALUES if form.method == "post" else VALUES[:-1]:  # no server takes such a long address
            with transaction.atomic():
                answer = send(form.address, dict.fromkeys(form.fields, value))
                transaction.set_rollback(True)
            if answer.status_code >= 500:
                broken.append((form, value[:40]))
    return broken


@pytest.mark.django_db
def test_no_form_of_a_team_can_be_filled_in_so_that_the_server_fails(
    arguments: dict[str, dict[str, Any]], admin: Member
) -> None:
    admin.user.is_staff = True
    admin.user.save()
    browser = Client(raise_request_exception=False)
    browser.force_login(admin.user)
    names = [str(page.name) for page in PAGES if page.name not in STREAMS]
    addresses = [reverse(name, kwargs={"team_slug": admin.team.slug, **arguments[name]}) for name in names]
    assert broken_by(browser, ["/", "/operator/", *addresses], at_least=60) == []


@pytest.mark.django_db
def test_no_form_of_sign_in_and_account_can_be_filled_in_so_that_the_server_fails(admin: Member) -> None:
    stranger = Client(raise_request_exception=False)
    link = urlsplit(invite(admin, "viewer").link).path
    stranger.get(link)
    before = ("/accounts/login/", "/accounts/signup/", "/accounts/password/reset/", link)
    assert broken_by(stranger, before, at_least=3) == []
    browser = confirmed(signed_in())
    browser.raise_request_exception = False
    parts = ("email/", "password/change/", "2fa/totp/activate/", "2fa/webauthn/add/", "3rdparty/", "reauthenticate/")
    assert broken_by(browser, [f"/accounts/{part}" for part in parts], at_least=5) == []
    protect(admin)
    half_way = Client(raise_request_exception=False)
    half_way.post("/accounts/login/", {"login": "ada", "password": PASSWORD})
    assert broken_by(half_way, ["/accounts/2fa/authenticate/"], at_least=2) == []
