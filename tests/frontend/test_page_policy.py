"""Every page of the product keeps to the Content-Security-Policy, which knows no exceptions."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.http import HttpResponseBase
from django.test import Client
from django.urls import reverse

from benchhub.security_headers import POLICY
from experiments.models import Member, Run
from experiments.registry.teams.invitations import invite
from tests.frontend.test_isolation import PAGES, admin, arguments, make_member, other_admin, team

__all__ = ["admin", "arguments", "make_member", "other_admin", "team"]  # fixtures

# Streams end with the run; the rest of them is one line each in their own tests.
STREAMS = {"run_events", "overview_events", "queue_events"}
INLINE = re.compile(
    r"<script(?![^>]*\b(?:src=|type=\"application/json\"))|<style\b|\s(?:style|on[a-z]+)=\"|\bjavascript:",
    re.IGNORECASE,
)


def problems_of(answer: HttpResponseBase) -> list[str]:
    """What the policy would forbid, or what is missing of it."""
    policy = answer.headers.get("Content-Security-Policy", "")
    found = [] if re.sub(r"nonce-[\w-]+", "nonce-{nonce}", policy) == POLICY else [f"policy: {policy}"]
    if "text/html" in answer.headers.get("Content-Type", "") and not answer.streaming:
        found += [match[0] for match in INLINE.finditer(answer.content.decode())]  # type: ignore[attr-defined]
    if answer.headers.get("X-Content-Type-Options") != "nosniff":
        found.append("sniffing is not forbidden")
    return found


def test_the_policy_allows_nothing_but_our_own() -> None:
    assert "unsafe" not in POLICY
    assert "*" not in POLICY
    assert "default-src 'self'" in POLICY


@pytest.mark.django_db
def test_no_page_of_a_team_needs_an_exception(arguments: dict[str, dict[str, Any]], admin: Member) -> None:
    admin.user.is_staff = True
    admin.user.save()
    browser = Client()
    browser.force_login(admin.user)
    found, shown = {}, 0
    for page in PAGES:
        name = str(page.name)
        if name in STREAMS:
            continue
        answer = browser.get(reverse(name, kwargs={"team_slug": admin.team.slug, **arguments[name]}))
        shown += answer.status_code == 200
        if problems := problems_of(answer):
            found[name] = problems
    assert found == {}
    assert shown > len(PAGES) / 3  # the rest are actions


@pytest.mark.django_db
@pytest.mark.parametrize(
    "address",
    [
        "/accounts/login/",
        "/accounts/signup/",
        "/accounts/password/reset/",
        "/accounts/password/reset/done/",
        "/accounts/password/reset/key/done/",
        "/accounts/password/reset/key/1-x/",
        "/accounts/confirm-email/",
        "/accounts/confirm-email/x/",
        "/accounts/inactive/",
        "/accounts/3rdparty/login/error/",
        "/accounts/3rdparty/login/cancelled/",
        "/invitations/gone/",
        "/api/v1/docs",
        "/nothing-is-here/",
    ],
)
def test_no_page_before_the_sign_in_needs_an_exception(address: str) -> None:
    answer = Client().get(address)
    assert b"BenchHub" in answer.content
    assert problems_of(answer) == []


@pytest.mark.django_db
def test_the_page_of_an_invitation_needs_no_exception(admin: Member) -> None:
    link = invite(admin, "viewer").link
    assert problems_of(Client().get(link[link.index("/invitations/") :])) == []


@pytest.mark.django_db
@pytest.mark.parametrize("media_type", ["image/svg+xml", "text/html", "application/xhtml+xml", "text/xml"])
def test_a_file_of_a_run_is_never_shown_by_the_browser(
    arguments: dict[str, dict[str, Any]], admin: Member, media_type: str
) -> None:
    content = b'<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>'
    run = Run.objects.get(number=arguments["artifact"]["number"])
    stored = run.artifacts.create(name="a.svg", sha256="1" * 64, content=content, media_type=media_type)
    browser = Client()
    browser.force_login(admin.user)
    addresses = (
        reverse("artifact", kwargs={"team_slug": "perf", "number": run.number, "artifact_id": stored.pk}),
        f"/api/v1/runs/{run.number}/artifacts/a.svg",
    )
    for address in addresses:
        answer = browser.get(address)
        assert answer.headers["Content-Disposition"].startswith("attachment"), address
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert "script-src 'self'" in answer.headers["Content-Security-Policy"]
