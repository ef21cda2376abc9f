"""Every page that a person can reach, looked at by axe-core in light and dark; errors of its console fail the test."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from urllib.parse import urljoin, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.urls import Resolver404, resolve
from lxml import html
from playwright.sync_api import Page, Route, StorageState

from benchhub.embedded import PROJECT_DIR
from frontend.urls import urlpatterns
from tests.browser.conftest import LOOK_MS, Product
from tests.browser.test_main_job import LOGIN, sign_in

SERIOUS = {"serious", "critical"}
NARROW = {"width": 360, "height": 740}
SETTLED_WIDTH = """async () => {
  const root = document.documentElement, end = performance.now() + 60000;
  while (root.scrollWidth > innerWidth && performance.now() < end) await new Promise((then) => setTimeout(then, 20));
  return root.scrollWidth;
}"""
"""The width of the page once its charts have followed the window, a moment later."""
TEAM, PASSWORD_OF_VIEWER = "pictures", "a-second-long-password"
MOST_OF_A_KIND = 12
"""In the second team, so many addresses of one kind are followed for what they lead to."""
SENT_EMPTY = (
    "new_run", "new_experiment", "new_search", "new_bisection", "new_tuning", "new_schedule", "import_run",
    "add_recording", "new_document", "new_host", "tokens", "webhooks", "new_share", "team", "account_change_password",
)  # fmt: skip
"""Pages whose first form is sent with nothing in it, to see what it says then."""
OPENED = ("overview", "runs", "run", "compare", "experiment", "settings")
"""Pages whose menus are opened, all at once."""
PRINTED = ("run", "compare", "experiment_report", "shared_page")
SIGNED_IN = ("/accounts/reauthenticate/", "/accounts/2fa/totp/activate/", "/accounts/2fa/webauthn/add/")
"""Of somebody without a second factor; links lead to the other pages of the account."""
STRANGER = ("/accounts/login/", "/accounts/password/reset/", "/accounts/inactive/", "/s/nothing/", "/t/nothing/")
OF_VIEWER = (
    f"/t/{TEAM}/", f"/t/{TEAM}/runs/", f"/t/{TEAM}/runs/new/", f"/t/{TEAM}/runs/99999/", "/accounts/2fa/",
    "/accounts/2fa/recovery-codes/", "/accounts/2fa/recovery-codes/generate/", "/accounts/2fa/totp/deactivate/",
)  # fmt: skip
"""Among them a page that is not allowed, one that is not there, and those of a second factor."""


@dataclass
class Look:
    """What axe finds and what is too wide, of one page after the other."""

    page: Page
    axe: Axe = field(default_factory=Axe)
    problems: list[str] = field(default_factory=list)

    def at(self, what: str, *, narrow: bool = True) -> None:
        """All rules in light, the contrast again in dark, and no sideways scrolling at 360 px."""
        self.rules(f"light {what}")
        self.page.emulate_media(color_scheme="dark", reduced_motion="reduce")
        self.rules(f"dark {what}", only=["color-contrast"])
        if narrow and self.page.viewport_size:
            wide = self.page.viewport_size
            self.page.set_viewport_size(NARROW)  # type: ignore[arg-type]
            width_px = self.page.evaluate(SETTLED_WIDTH)
            if width_px > NARROW["width"]:
                self.problems.append(f"narrow {what}: the page is {width_px} px wide")
            self.page.set_viewport_size(wide)
        self.page.emulate_media(color_scheme="light", reduced_motion="reduce")

    def beside(self, state: StorageState | None = None) -> Look:
        """The same in another window, of a stranger or of the person with this state; its console is nobody's."""
        assert self.page.context.browser is not None
        context = self.page.context.browser.new_context(viewport=self.page.viewport_size, storage_state=state)
        context.set_default_timeout(LOOK_MS)
        return Look(context.new_page(), self.axe, self.problems)

    def rules(self, what: str, *, only: list[str] | None = None) -> None:
        options: dict[str, Any] = {"resultTypes": ["violations"]} | ({"runOnly": only} if only else {})
        if not self.page.evaluate("'axe' in window"):  # half a megabyte, once for each page
            self.page.evaluate(self.axe.axe_script)
        for one in self.page.evaluate("options => axe.run(options)", options)["violations"]:
            if one["impact"] in SERIOUS:
                self.problems.append(f"{what}: {one['id']} at {one['nodes'][0]['target']}")

    def opened(self, what: str) -> None:
        self.page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true })")
        self.at(f"{what}, everything open", narrow=False)

    def printed(self, what: str) -> None:
        self.page.emulate_media(media="print")
        self.rules(f"print {what}")
        self.page.emulate_media(media="screen")

    def sent_empty(self, what: str) -> None:
        """The form as it comes back; the browser's own checks are passed over."""
        form = self.page.locator("main form[method=post]:has(input:not([type=hidden]), select, textarea)").first
        with self.page.expect_navigation():
            form.evaluate("form => { form.noValidate = true; HTMLFormElement.prototype.submit.call(form) }")
        self.at(f"{what}, sent empty", narrow=False)


def name_of(path: str) -> str | None:
    try:
        return str(resolve(path).view_name)
    except Resolver404:
        return None


def links_in(text: str, site: str, address: str) -> list[str]:
    """The addresses of this site that a page leads to, with their queries."""
    places = [str(place) for one in html.fromstring(text).iter("a") if (place := one.get("href"))]
    links = [urljoin(site + address, place) for place in places]
    parts = [urlsplit(link) for link in links if link.startswith(f"{site}/")]
    return [one.path + (f"?{one.query}" if one.query else "") for one in parts if one.path.endswith("/")]


def walk(look: Look, url: str, start: str, seen: dict[str, str], wanted: set[str]) -> None:
    """Follow the links of a team's pages until all that is wanted was seen.

    The first page of each kind is looked at; others are only read for where they lead to, after the first team's.
    """
    waiting, known, of_a_kind = deque([start]), {start}, Counter[str]()
    most = MOST_OF_A_KIND if seen else 1
    while waiting and wanted - seen.keys():
        address = waiting.popleft()
        path = address.partition("?")[0]
        name = name_of(path)
        of_a_kind[name or ""] += 1
        if name is None or of_a_kind[name] > most:
            continue
        if name not in seen:
            answer = look.page.goto(url + address)
            assert answer is not None
            assert answer.status == 200, address
            seen[name] = address
            text = look.page.content()
            look.at(address)
        else:
            text = look.page.request.get(url + address).text()
        for link in links_in(text, url, address):
            if link not in known and (link.startswith(start) or not link.startswith("/t/")):
                known.add(link)
                waiting.append(link)


def handed_over(product: Product) -> dict[str, Any]:
    """A second team with one of everything; the addresses and pages that no link leads to."""
    argv = [sys.executable, "-m", "bench.one_of_each", "--team", TEAM, "--user", LOGIN]
    argv += ["--password", PASSWORD_OF_VIEWER]
    done = subprocess.run(
        argv, cwd=PROJECT_DIR, env=product.environment, timeout=600, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout.splitlines()[-1]))


def look_at_states(look: Look, url: str, seen: Mapping[str, str]) -> None:
    """Menus, the sheet of keys, paper, and forms that come back with what is wrong."""
    look.page.goto(url + seen["overview"])
    look.page.keyboard.press("?")
    look.at("the sheet of keys")
    for name in OPENED:
        look.page.goto(url + seen[name])
        look.opened(name)
    for name in PRINTED:
        look.page.goto(url + seen[name])
        look.printed(name)
    sent = look.beside(look.page.context.storage_state())  # its console tells of 422, as it should
    for name in SENT_EMPTY:
        sent.page.goto(url + seen[name])
        sent.sent_empty(name)
    for address in SIGNED_IN:
        look.page.goto(url + address)
        look.at(address)


def look_at_a_stranger_s_pages(look: Look, url: str, handed_over: Mapping[str, Any]) -> None:
    """Sign-in with a second factor, an account by invitation, and refusals."""
    for address in (*STRANGER, urlsplit(handed_over["invitation"]).path, "/accounts/signup/"):
        look.page.goto(url + address)
        look.at(f"{address} of a stranger")
    look.sent_empty("the new account")
    look.page.goto(url + "/accounts/login/")
    look.sent_empty("the sign-in")
    look.page.locator("input[name=login]").fill(handed_over["viewer"])
    look.page.locator("input[name=password]").fill(PASSWORD_OF_VIEWER)
    look.page.keyboard.press("Enter")
    look.page.wait_for_url("**/2fa/authenticate/")
    look.at("the second factor")
    look.page.locator("input[name=code]").first.fill(handed_over["recovery_code"])
    look.page.keyboard.press("Enter")
    look.page.wait_for_url(f"**/t/{TEAM}/")
    for address in OF_VIEWER:
        look.page.goto(url + address)
        look.at(f"{address} of a viewer")
    for name, body in handed_over["broken"].items():
        look.page.route("**/broken/", partial(_fulfill, body))
        look.page.goto(f"{url}/broken/")
        look.at(f"the page of {name}")
        look.page.unroute("**/broken/")


def _fulfill(body: str, route: Route) -> None:
    route.fulfill(body=body, content_type="text/html; charset=utf-8")


@pytest.mark.browser
@pytest.mark.slow
def test_no_page_has_a_serious_finding_and_every_page_can_be_reached_by_links(page: Page, product: Product) -> None:
    """One address of each kind of page is looked at: the first that a link leads to."""
    told = handed_over(product)
    sign_in(page, product)
    look, seen = Look(page), dict[str, str]()
    by_address = {"invitation": urlsplit(told["invitation"]).path, "shared_page": told["shared"]}
    by_address["shared_embed"] = f"{told['shared']}embed/"
    pages = {str(one.name) for one in urlpatterns if re.search(r"/$", str(one.pattern))}
    for team in ("demo", TEAM):
        walk(look, product.url, f"/t/{team}/", seen, pages - by_address.keys())
    for name, address in by_address.items():
        page.goto(product.url + address)
        look.at(address)
        seen[name] = address
    assert pages - seen.keys() == set()

    look_at_states(look, product.url, seen)
    look_at_a_stranger_s_pages(look.beside(), product.url, told)
    assert look.problems == []
