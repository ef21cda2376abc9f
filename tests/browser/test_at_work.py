"""A team member in the browser: a newcomer's first run, and the day's work with the keyboard alone."""

from __future__ import annotations

import re
import subprocess
import sys
import time

import pytest
from playwright.sync_api import Page, expect

from benchhub.embedded import PROJECT_DIR
from tests.browser.conftest import Product
from tests.browser.test_main_job import sign_in

FIRST_RUN_S = 60.0
PASSWORD = "a-long-first-password"
NEWCOMER = f"""
from django.contrib.auth import get_user_model
from experiments.models import Host, HostGrant, Member, Team
team = Team.objects.get(slug="demo")
user = get_user_model().objects.create_user("newcomer", password="{PASSWORD}")
member = Member.objects.create(team=team, user=user, role="launcher")
for host in Host.objects.filter(team=team):
    HostGrant.objects.create(host=host, member=member)
"""


def manage(product: Product, *words: str) -> None:
    """A command of the operator in the product's own installation."""
    argv = [sys.executable, "manage.py", *words]
    subprocess.run(argv, cwd=PROJECT_DIR, env=product.environment, check=True, timeout=600)


@pytest.mark.browser
@pytest.mark.slow
def test_a_newcomer_launches_a_first_run_within_a_minute_of_the_first_sign_in(page: Page, product: Product) -> None:
    manage(product, "shell", "-v0", "-c", NEWCOMER)
    page.goto(f"{product.url}/")
    page.locator("input[name=login]").fill("newcomer")
    page.locator("input[name=password]").fill(PASSWORD)
    started_s = time.monotonic()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    page.get_by_role("link", name="New run").first.click()
    page.get_by_label("Application").select_option(index=1)
    page.get_by_label("Workload").select_option(index=1)
    page.get_by_label("Recipe").select_option(index=1)
    page.get_by_label("SUT").select_option(label="sut")
    page.get_by_label("Driver hosts").select_option(label="driver")
    page.get_by_role("button", name="Launch").click()
    page.wait_for_url(re.compile(r"/runs/\d+/$"))
    expect(page.locator("#state h1")).to_contain_text(re.compile(r"Run #\d+"))
    assert time.monotonic() - started_s < FIRST_RUN_S  # the one promise about time that a person's clock keeps


@pytest.mark.browser
@pytest.mark.slow
def test_the_keyboard_finds_selects_compares_and_never_traps(page: Page, product: Product) -> None:
    manage(product, "seed_runs", "30", "--team", "keys", "--admin", "demo")
    sign_in(page, product)
    runs = f"{product.url}/t/keys/runs/"
    focused = page.locator(":focus")

    page.goto(runs)
    page.keyboard.press("?")
    sheet = page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(sheet).to_be_visible()
    page.keyboard.press("Escape")
    expect(sheet).to_be_hidden()

    # Rows: next, previous, tick two of them; the status says how many, and c compares them.
    for key in ("j", "j", "k", "x", "j", "x"):
        page.keyboard.press(key)
    expect(focused).to_have_text("#29")
    expect(page.locator("[data-selected]")).to_have_text("2 selected")
    page.keyboard.press("c")
    page.wait_for_url(re.compile(r"/compare/\?runs=29,30"))

    # Bulk work says what it did, and undoes it.
    page.goto(runs)
    page.get_by_label("Select run #28").check()
    page.locator(".run-bar summary", has_text="Tags").click()
    page.get_by_label("Tags").fill("odd")
    page.get_by_label("Tags").press("Enter")
    expect(page.locator("#messages")).to_contain_text("Run #28 tagged odd.")
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("#messages")).to_contain_text("Run #28 freed of the tag odd.")

    # A view is saved, and opens from its chip.
    page.goto(f"{runs}?validity=valid&sort=-throughput_rps")
    page.get_by_text("Save view").first.click()
    page.get_by_label("Name").first.fill("Fastest")
    page.get_by_label("Name").first.press("Enter")
    expect(page.get_by_role("link", name="Fastest")).to_have_attribute("aria-current", "true")
    page.wait_for_load_state()  # the keys' script comes last

    # Search: a number leads to the run, letters typed into the field are no keys, and Tab leaves it.
    page.keyboard.press("/")
    expect(focused).to_have_attribute("id", "search")
    page.keyboard.type("#29 njk?")
    expect(focused).to_have_value("#29 njk?")
    expect(sheet).to_be_hidden()
    page.keyboard.press("Tab")
    expect(page.locator("#search")).not_to_be_focused()
    page.keyboard.press("/")
    page.keyboard.type("#29")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/runs/29/$"))

    # b opens the form of the baseline with the field ready; Escape leads back; Enter pins the run.
    page.keyboard.press("b")
    expect(focused).to_have_attribute("id", "baseline-name")
    page.keyboard.press("Escape")
    expect(page.locator("#baseline-name")).to_be_hidden()
    page.keyboard.press("b")
    page.keyboard.type("release 11")
    page.keyboard.press("Enter")
    expect(page.locator("#notes").get_by_role("link", name="release 11")).to_be_visible()
    page.wait_for_load_state()

    # Whoever does not want keys switches them off; the button still opens the sheet.
    page.get_by_role("button", name="Keyboard shortcuts").first.click()
    page.get_by_label("Keys are on in this browser").uncheck()
    page.keyboard.press("Escape")
    page.reload()
    page.keyboard.press("?")
    expect(sheet).to_be_hidden()
    page.keyboard.press("g")
    page.keyboard.press("r")
    expect(page).to_have_url(re.compile(r"/runs/29/$"))
