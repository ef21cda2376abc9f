"""The main job as a team member does it: sign in, stop what runs, launch, watch, compare."""

from __future__ import annotations

import re
from ipaddress import ip_address

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Product
from tests.listening import listening, marked

RUN_MS = 600_000
MEASURED = re.compile("Measuring|Collecting|Restoring|Succeeded")
"""It measures for 6 s; a browser that stood still for as long sees what comes after."""
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
    expect(beside).to_contain_text("wrk -t1 -c32 -d6s")
    page.get_by_role("button", name="Launch").click()
    page.wait_for_url(re.compile(r"/runs/\d+/$"))
    return int(page.url.rstrip("/").rpartition("/")[2])


@pytest.mark.browser
@pytest.mark.slow
def test_a_member_launches_watches_compares_shares_notes_and_triages(page: Page, product: Product) -> None:
    sign_in(page, product)
    # The demonstration's experiment runs by itself; a person may end it, if it has not ended, and its host comes back.
    page.get_by_role("link", name="Experiments").first.click()
    page.get_by_role("link", name="Tomcat compression").first.click()
    expect(page.get_by_text(re.compile("Running|Finished")).first).to_be_visible()
    page.on("dialog", lambda dialog: dialog.accept())
    if (cancel := page.get_by_role("button", name="Cancel")).is_visible():
        cancel.click()
        expect(page.get_by_text(re.compile("Cancelled|Finished")).first).to_be_visible(timeout=RUN_MS)

    # Watched live: nobody reloads the page; state, chart and log come by themselves.
    first = launch(page, product, "Tomcat default")
    expect(page.locator("#state").get_by_text(MEASURED).first).to_be_visible(timeout=RUN_MS)
    page.locator("summary", has_text="All that was recorded on the hosts").click()
    expect(page.locator("#live-chart [data-chart-summary]")).to_contain_text("SUT CPUs busy")
    expect(page.locator("#log")).to_contain_text("wrk -t1 -c32 -d6s")
    places = listening(marked(str(product.data_dir)))
    assert places, "the pages at least"
    assert [place for place in places if not ip_address(place[0]).is_loopback] == []
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

    # What was found is sent to somebody, written down, and kept as a file.
    page.get_by_role("link", name="Share").click()
    expect(page.get_by_text("This is what everybody who has the link sees")).to_be_visible()
    page.get_by_role("button", name="Share").click()
    expect(page.locator("#share-url")).to_contain_text("/s/")
    page.goto(f"{product.url}/t/demo/runs/{second}/")
    page.get_by_text("Write a note or a tag").click()
    page.get_by_label("Notes").fill("**Fewer threads**, same application")
    page.locator("#notes").get_by_role("button", name="Save").click()
    expect(page.locator("#notes strong")).to_have_text("Fewer threads")
    page.locator("summary.button", has_text="More").click()
    with page.expect_download() as download:
        page.get_by_role("link", name="Report as PDF").click()
    assert download.value.suggested_filename == f"run-{second}.pdf"
    assert download.value.path().read_bytes().startswith(b"%PDF-")

    # The alert of the nightly history is looked at, and says afterwards what it was.
    page.get_by_role("link", name="Alerts").first.click()
    page.locator("tbody a").first.click()
    expect(page.get_by_role("heading", name="What changed in the configuration at this point")).to_be_visible()
    page.get_by_label("What it is").select_option("infra")
    page.get_by_label("Note").fill("The new kernel")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".page-title")).to_contain_text("Infra")
    expect(page.get_by_label("Note")).to_have_value("The new kernel")
