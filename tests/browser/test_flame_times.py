"""A part of a profile's time is brushed with the mouse, a finger or keys; graph and table show that part alone."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from django.conf import settings
from django.test import Client
from playwright.sync_api import Locator, Page, expect
from pytest_django.live_server_helper import LiveServer

from agents.profiles.base.taken import TakenProfile
from experiments.models import Member
from experiments.registry.runs.run_profiles import store_run_profile
from tests.experiments.conftest import admin, make_member, stock, team  # noqa: F401 - fixtures
from tests.frontend.conftest import MakeRun, make_run  # noqa: F401 - a fixture

SAMPLES = [*((at / 10, "early") for at in range(300)), *((at / 10, "late") for at in range(300, 601))]
PERF = "".join(f"busy 7 {100 + at:.1f}: 5 cycles:\n\t 11 {name} (x)\n\t 12 main (x)\n\n" for at, name in SAMPLES)
SHARES = """() => {
  const { tree } = document.querySelector('[data-flame]').flame;
  const main = tree.childrenOf(tree.childrenOf(0)[0])[0];
  const found = {};
  for (const at of tree.childrenOf(main)) {
    if (tree.width[at] > 0) found[tree.names[tree.name[at]]] = tree.width[at] / tree.width[0];
  }
  return found;
}"""


@dataclass(frozen=True)
class Shown:
    """The addresses of two profiles, one with its window on the load's clock, and the cookie of who may see them."""

    with_window: str
    without_window: str
    cookie: dict[str, str]


@pytest.fixture
def shown(transactional_db: None, make_run: MakeRun, admin: Member, live_server: LiveServer) -> Shown:  # noqa: F811
    """Stored before there is a `page`, whose event loop keeps Django from its database."""
    run = make_run(throughput_rps=1000.0)
    taken = TakenProfile("perf", name="plain")
    windowed = replace(taken, name="windowed", window_s=(5.0, 65.0), cpu_time_s=30.0, requests=60_000)
    for one in (taken, windowed):
        store_run_profile(run, PERF.encode(), one)
    place = f"{live_server.url}/t/perf/runs/{run.number}/profiles"
    client = Client()
    client.force_login(admin.user)
    cookie = client.cookies[settings.SESSION_COOKIE_NAME]
    said = {"name": cookie.key, "value": cookie.value, "url": live_server.url}
    return Shown(f"{place}/windowed/", f"{place}/plain/", said)


def opened(page: Page, cookie: dict[str, str], place: str) -> Locator:
    """Go to the page of a profile; the words on the part of its time."""
    page.context.add_cookies([cookie])  # type: ignore[list-item]
    page.goto(place)
    return page.locator("[data-flame-part]")


@pytest.mark.browser
def test_a_brushed_part_of_the_time_is_all_that_graph_and_table_show(shown: Shown, page: Page) -> None:
    part = opened(page, shown.cookie, shown.with_window)
    strip = page.locator("[data-flame-strip]")
    expect(part).to_have_text("5 s to 65 s of the load")
    expect(page.locator("[data-flame-timeless]")).to_be_hidden()
    page.click("[data-flame-table]")
    expect(page.locator("[data-flame-rows]")).to_contain_text("µs per request")
    box = strip.bounding_box()
    assert box is not None

    def across(ratio: float) -> float:
        return box["x"] + ratio * box["width"]

    middle = box["y"] + box["height"] / 2
    page.mouse.move(across(0.2), middle)  # from the 12 s of the slice that lies there
    page.mouse.down()
    page.mouse.move(across(0.4) - 3, middle, steps=4)
    page.mouse.up()
    expect(part).to_contain_text("17 s to 29 s of the load, ")
    rows = page.locator("[data-flame-rows]")
    expect(rows).not_to_contain_text("late")
    expect(rows).to_contain_text("early")
    expect(rows).not_to_contain_text("µs per request")  # its requests are not known
    assert page.evaluate(SHARES) == {"early (x)": 1}

    until = page.locator("[data-flame-to]")
    until.focus()
    page.keyboard.press("End")
    expect(part).to_contain_text("17 s to 65 s of the load, ")
    expect(until).to_have_attribute("aria-valuetext", "65 s")
    expect(rows).to_contain_text("late")
    page.locator("[data-flame-from]").press("PageUp")
    expect(part).to_contain_text("22 s to 65 s of the load, ")
    page.locator("[data-flame-from]").press("Escape")
    expect(part).to_have_text("5 s to 65 s of the load")

    page.evaluate("() => document.querySelector('[data-flame]').flame.show('late (x)')")
    expect(page.locator("[data-flame-text]")).to_contain_text("late (x): 50.1 %")
    page.mouse.click(across(0.75), middle)  # one slice, and the frame that was zoomed to stays
    expect(part).to_contain_text("50 s to 51 s of the load, ")
    expect(page.locator("[data-flame-text]")).to_have_text("late (x): 100.0 %; 100.0 % in itself")
    page.click("[data-flame-reverse]")
    expect(page.locator("[data-flame-text]")).to_contain_text("all, by the function that ran: 100.0 %")
    page.click("[data-flame-always]")
    expect(part).to_have_text("5 s to 65 s of the load")


@pytest.mark.browser
def test_a_finger_brushes_a_part_of_the_time(shown: Shown, page: Page) -> None:
    page.set_viewport_size({"width": 400, "height": 800})
    device = page.context.new_cdp_session(page)
    device.send("Emulation.setTouchEmulationEnabled", {"enabled": True})
    part = opened(page, shown.cookie, shown.without_window)
    expect(part).to_have_text("0 s to 60 s from its first sample")
    box = page.locator("[data-flame-strip]").bounding_box()
    assert box is not None

    def touch(kind: str, ratio: float | None = None) -> None:
        points = [] if ratio is None else [{"x": box["x"] + ratio * box["width"], "y": box["y"] + 20}]
        device.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    touch("touchStart", 0.505)
    for ratio in (0.55, 0.65, 0.745):
        touch("touchMove", ratio)
    touch("touchEnd")
    expect(part).to_contain_text("30 s to 45 s from its first sample, ")
    assert page.evaluate(SHARES) == {"late (x)": 1}
