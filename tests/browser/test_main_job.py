"""The main job as a team member does it: sign in, stop what runs, launch, watch, compare."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Product

RUN_MS = 120_000
LOGIN, PASSWORD = "demo", "benchhub-demo"


def sign_in(page: Page, product: Product) -> None:
    page.goto(f"{product.url}/")
    page.locator("input[name=login]").fill(LOGIN)
    page.locator("input[name=password]").fill(PASSWORD)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()


def launch(page: Page, product: Product, recipe: str) -> int:
    """Launch one run of the recipe through the form and return its number; the plan is seen before."""
    page.goto(f"{product.url}/t/demo/")
    page.keyboard.press("n")
    expect(page.get_by_role("heading", name="New run")).to_be_visible()
    page.get_by_label("Application").select_option(label="Tomcat 11 examples v1")
    page.get_by_label("Workload").select_option(label="HelloWorld servlet, wrk v1")
    page.get_by_label("Recipe").select_option(label=f"{recipe} v1")
    page.get_by_label("SUT").select_option(label="sut")
    page.get_by_label("Driver hosts").select_option(label="driver")
    beside = page.get_by_label("Before the launch")
    expect(beside.get_by_role("heading", name="Plan")).to_be_visible()
    expect(beside).to_contain_text("wrk -t1 -c32 -d8s")
    page.get_by_role("button", name="Launch").click()
    page.wait_for_url(re.compile(r"/runs/\d+/$"))
    return int(page.url.rstrip("/").rpartition("/")[2])


@pytest.mark.browser
@pytest.mark.slow
def test_a_member_signs_in_launches_watches_the_live_chart_and_compares(page: Page, product: Product) -> None:
    sign_in(page, product)
    # The demonstration's experiment runs by itself; a person may end it, and its host comes back.
    page.get_by_role("link", name="Experiments").first.click()
    page.get_by_role("link", name="Tomcat baseline").first.click()
    expect(page.get_by_text("Running").first).to_be_visible()
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_text("Cancelled").first).to_be_visible(timeout=RUN_MS)

    # Watched live: nobody reloads the page; state, chart and log come by themselves.
    first = launch(page, product, "Tomcat default")
    expect(page.locator("#state").get_by_text("Measuring").first).to_be_visible(timeout=RUN_MS)
    expect(page.locator("#live-chart [data-chart-summary]")).to_contain_text("SUT CPUs busy")
    expect(page.locator("#log")).to_contain_text("wrk -t1 -c32 -d8s")
    expect(page.get_by_text("Restored, verified").first).to_be_visible(timeout=RUN_MS)
    expect(page.locator("#state")).to_contain_text("Succeeded")

    second = launch(page, product, "Request threads = CPUs")
    expect(page.get_by_text("Restored, verified").first).to_be_visible(timeout=RUN_MS)

    page.goto(f"{product.url}/t/demo/runs/")
    page.get_by_label(f"Select run #{first}").check()
    page.get_by_label(f"Select run #{second}").check()
    page.get_by_role("button", name="Compare selected").click()
    asked = page.locator("tr", has_text="Server/Service/Connector@maxThreads")
    expect(asked).to_be_visible()
    expect(page.get_by_text(re.compile("Asked"))).to_be_visible()
    expect(page.locator("tr", has_text="Throughput").first).to_contain_text("%")
