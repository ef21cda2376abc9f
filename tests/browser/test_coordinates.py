"""Axes of a tuning search are brushed with the mouse, a finger or keys; the table shows the trials that are left."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from django.conf import settings
from django.test import Client
from playwright.sync_api import Locator, Page, expect
from pytest_django.live_server_helper import LiveServer

from experiments.models import Member
from tests.browser.test_accessibility import Look
from tests.experiments.conftest import admin, make_member, stock, team  # noqa: F401 - fixtures
from tests.frontend.tuned import tuned

TRIALS = 300


@dataclass(frozen=True)
class Shown:
    """The address of a search, and the cookie of who may see it."""

    place: str
    cookie: dict[str, str]


@pytest.fixture
def shown(transactional_db: None, admin: Member, stock: dict[str, object], live_server: LiveServer) -> Shown:  # noqa: F811
    """Stored before there is a `page`, whose event loop keeps Django from its database."""
    tuning = tuned(admin, stock, TRIALS)
    client = Client()
    client.force_login(admin.user)
    cookie = client.cookies[settings.SESSION_COOKIE_NAME]
    said = {"name": cookie.key, "value": cookie.value, "url": live_server.url}
    place = f"{live_server.url}/t/perf/experiments/tunings/{tuning.pk}/"
    return Shown(place, said)


def opened(page: Page, shown: Shown) -> Locator:
    """Go to the page; the words on what is left."""
    page.context.add_cookies([shown.cookie])  # type: ignore[list-item]
    page.goto(shown.place)
    said = page.locator("[data-coords-said]")
    expect(said).to_contain_text(f"{TRIALS} trials.")
    return said


def edge(page: Page, axis: str, name: str) -> Locator:
    return page.locator(f"[data-axis='{axis}'] [data-coords-edge='{name}']")


def left(page: Page) -> int:
    return page.locator("tr[data-trial]:not([hidden])").count()


@pytest.mark.browser
def test_the_table_shows_only_what_the_brushes_of_mouse_and_keys_leave(shown: Shown, page: Page) -> None:
    said = opened(page, shown)
    assert page.locator(".coords-axis").count() == 13
    assert page.locator(".coords-lines polyline").count() == TRIALS
    strip = page.locator("[data-axis='workers'] .coords-strip")
    strip.scroll_into_view_if_needed()
    box = strip.bounding_box()
    assert box is not None
    across = box["x"] + box["width"] / 2
    page.mouse.move(across, box["y"] + 0.12 * box["height"])  # from below its upper edge down to the middle
    page.mouse.down()
    page.mouse.move(across, box["y"] + 0.45 * box["height"], steps=4)
    page.mouse.up()
    low = int(edge(page, "workers", "from").get_attribute("aria-valuetext") or 0)
    assert 3 <= low <= 6
    expect(said).to_contain_text(f"workers from {low} to 7")
    many = left(page)
    assert 0 < many < TRIALS
    expect(page.locator("[data-coords-left]")).to_have_text(f"; {many} of {TRIALS} trials, as brushed above")

    region = edge(page, "region_mb", "from")
    region.focus()
    page.keyboard.press("ArrowUp")  # leaves out where it is not used
    expect(region).to_have_attribute("aria-valuetext", "1")
    expect(said).to_contain_text("region_mb from 1 to 32")
    assert left(page) < many
    rows = page.locator("tr[data-trial]:not([hidden]) td:nth-child(3)", has_not_text="collector=G1")
    expect(rows).to_have_count(0)
    page.keyboard.press("Escape")
    expect(said).not_to_contain_text("region_mb")
    assert left(page) == many

    collector = edge(page, "collector", "to")
    collector.press("ArrowDown")
    expect(collector).to_have_attribute("aria-valuetext", "G1")
    collector.press("ArrowDown")
    expect(collector).to_have_attribute("aria-valuetext", "Serial")
    page.click("[data-coords-clear]")
    expect(said).to_contain_text(f"{TRIALS} trials.")
    assert left(page) == TRIALS


@pytest.mark.browser
def test_an_axis_moves_or_is_hidden_and_then_leaves_out_nothing(shown: Shown, page: Page) -> None:
    said = opened(page, shown)
    page.get_by_role("button", name="Move heap_mb to the left").click()
    assert page.locator(".coords-axis").first.get_attribute("data-axis") == "heap_mb"
    edge(page, "workers", "from").press("PageUp")
    expect(said).to_contain_text("workers from")
    page.get_by_role("button", name="Hide workers").click()
    expect(said).to_contain_text(f"{TRIALS} trials.")
    expect(page.locator(".coords-axis")).to_have_count(12)
    page.click("[data-coords-all]")
    expect(page.locator(".coords-axis")).to_have_count(13)


@pytest.mark.browser
def test_a_finger_brushes_an_axis_in_its_own_box_on_a_phone(shown: Shown, page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    device = page.context.new_cdp_session(page)
    device.send("Emulation.setTouchEmulationEnabled", {"enabled": True})
    said = opened(page, shown)
    assert page.evaluate("() => document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    strip = page.locator("[data-axis='workers'] .coords-strip")
    strip.scroll_into_view_if_needed()
    box = strip.bounding_box()
    assert box is not None

    def touch(kind: str, ratio: float | None = None) -> None:
        across = box["x"] + box["width"] / 2
        points = [] if ratio is None else [{"x": across, "y": box["y"] + ratio * box["height"]}]
        device.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    touch("touchStart", 0.1)
    for ratio in (0.2, 0.3, 0.4):
        touch("touchMove", ratio)
    touch("touchEnd")
    expect(said).to_contain_text("workers from")


@pytest.mark.browser
def test_axe_finds_nothing_on_brushed_axes_in_light_dark_and_narrow(shown: Shown, page: Page) -> None:
    opened(page, shown)
    edge(page, "workers", "from").press("PageUp")
    look = Look(page)
    look.at("brushed axes")
    assert look.problems == []
