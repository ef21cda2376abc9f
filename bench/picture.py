"""One picture of a page, small enough to be kept in the repository."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from PIL import Image
from playwright.sync_api import Browser

COLOURS = 96
SETTLED_MS = 1200
PAGE_MS = 120_000  # a busy machine


@dataclass(frozen=True)
class View:
    """A browser window: its size in pixels and its colours."""

    width: int = 1280
    height: int = 800
    dark: bool = False


class PageError(Exception):
    """The page did not answer as it should; the text says what it answered."""


def take(
    browser: Browser,
    url: str,
    cookie: str,
    view: View,
    into: Path,
    scroll_to: str = "",
    *,
    block: Literal["start", "center"] = "start",
) -> None:
    """Take a picture of what the window shows; `scroll_to` (CSS) is brought to its `block` first.

    `cookie` is name=value. Raises PageError when the page does not answer 200 or has nothing at `scroll_to`.
    """
    page = browser.new_page(
        viewport={"width": view.width, "height": view.height}, color_scheme="dark" if view.dark else "light"
    )
    try:
        name, _, value = cookie.partition("=")
        page.context.add_cookies([{"name": name, "value": value, "url": url}])
        page.set_default_timeout(PAGE_MS)
        answer = page.goto(url)
        if answer is None or answer.status != 200:
            raise PageError(f"{url} answered {answer.status if answer else 'nothing'}")
        if scroll_to:
            place = page.locator(scroll_to)
            if place.count() == 0:
                raise PageError(f"{url} has no {scroll_to}")
            place.first.evaluate("(one, block) => one.scrollIntoView({block})", block)
        page.wait_for_timeout(SETTLED_MS)
        picture = Image.open(io.BytesIO(page.screenshot()))
        picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(into, optimize=True)
    finally:
        page.context.close()
