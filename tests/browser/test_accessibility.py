"""Every page that a person can reach, looked at by axe-core in light and dark; errors of its console fail the test."""

from __future__ import annotations

import re
from collections import deque
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.urls import Resolver404, resolve
from playwright.sync_api import Page

from frontend.urls import urlpatterns
from tests.browser.conftest import Product
from tests.browser.test_main_job import sign_in

SERIOUS = {"serious", "critical"}
NOT_REACHED = {
    "invitation": "its link is handed over, once",
    "bisection": "the demonstration has none",
    "search": "the demonstration has none",
    "schedule": "the demonstration has none",
    "edit_schedule": "the demonstration has none",
    "webhook": "the demonstration has none",
    "scaling": "no variant of the demonstration has another number of CPUs",
    "add_recording": "only a run that has been measured leads there; the one that is looked at may still go on",
    "document_diff": "each document has one version",
    "profile_diff": "each host has one hardware profile",
    "shared_page": "nothing is shared; tests/browser/test_pipeline_and_link.py opens one",
    "shared_embed": "nothing is shared",
}
"""Pages that no link of the demonstration leads to, and why."""


def name_of(path: str) -> str | None:
    try:
        return str(resolve(path).view_name)
    except Resolver404:
        return None


def findings(page: Page, axe: Axe, scheme: str) -> list[str]:
    """What axe calls serious or critical, with the first element of each."""
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light", reduced_motion="reduce")
    found = axe.run(page, options={"resultTypes": ["violations"]}).response["violations"]
    return [
        f"{scheme} {urlsplit(page.url).path}: {one['id']} at {one['nodes'][0]['target']}"
        for one in found
        if one["impact"] in SERIOUS
    ]


@pytest.mark.browser
@pytest.mark.slow
def test_no_page_has_a_serious_finding_and_every_page_can_be_reached_by_links(page: Page, product: Product) -> None:
    """One address of each kind of page is looked at: the first that a link leads to."""
    sign_in(page, product)
    axe, problems = Axe(), list[str]()
    waiting, seen, looked_at = deque(["/t/demo/"]), set[str](), set[str]()
    while waiting:
        path = waiting.popleft()
        name = name_of(path.partition("?")[0])
        if name is None or name in looked_at:
            continue
        answer = page.request.get(product.url + path)
        if answer.status != 200 or "text/html" not in answer.headers["content-type"] or "<html" not in answer.text():
            continue
        looked_at.add(name)
        page.goto(product.url + path)
        for scheme in ("light", "dark"):
            problems += findings(page, axe, scheme)
        links = page.eval_on_selector_all("a[href]", "links => links.map(link => link.href)")
        for link in links:
            parts = urlsplit(link)
            address = parts.path + (f"?{parts.query}" if parts.query else "")
            if link.startswith(product.url) and address not in seen:
                seen.add(address)
                waiting.append(address)
    assert problems == []
    expected = {str(one.name) for one in urlpatterns if re.search(r"/$", str(one.pattern))} - NOT_REACHED.keys()
    assert expected - looked_at == set()
