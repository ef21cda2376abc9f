"""Takes the pictures of docs/pages.md: every page of frontend/urls.py of a team of made-up runs, in Chromium.

Uses the database of BENCHHUB_DATA_DIR (give it a scratch directory) or DATABASE_URL and seeds its team `demo-pictures`
there, once, with something of everything (bench.screenshot_data). The pictures go to docs/img/pages as PNG files of few
colours, with docs/pages.md over them. A page whose object the team lacks is named and left out.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from django.urls import URLPattern, reverse
from playwright.sync_api import sync_playwright

from bench.picture import PageError, View, take
from bench.screenshot_data import arguments_of, fill
from bench.screenshot_pages import MORE, PAGES, Look, Shot
from bench.website import session_cookie, signed_in, team_with_runs, website
from benchhub.embedded import PROJECT_DIR
from experiments.models import Member, Team
from frontend.urls import urlpatterns

SLUG = "demo-pictures"
RUNS = 600
SHOTS = PAGES | MORE
VIEWS: dict[Look, View] = {"light": View(), "dark": View(dark=True), "narrow": View(width=400)}


def page_patterns() -> dict[str, URLPattern]:
    """The pages among all addresses: those that end in a slash; the others are parts, files and actions."""
    return {str(one.name): one for one in urlpatterns if (route := str(one.pattern)).endswith("/") or not route}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--into", type=Path, default=PROJECT_DIR / "docs" / "img" / "pages")
    parser.add_argument("--only", default="", help="only pages with this text in their names; docs/pages.md is left")
    given = parser.parse_args()
    team, user = team_with_runs(SLUG, RUNS)
    user.is_staff = True  # the operator's page is for staff
    user.save(update_fields=["is_staff"])
    Team.objects.filter(pk=team.pk).update(name="Demonstration")
    member = Member.objects.select_related("team", "user").get(team__slug=SLUG, user=user)
    fill(member)
    arguments = arguments_of(member)
    wanted = {name: shot for name, shot in SHOTS.items() if given.only in name}
    cookie = session_cookie(signed_in(user))
    given.into.mkdir(parents=True, exist_ok=True)
    taken: dict[str, list[str]] = {}
    with website() as site, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        for name, shot in wanted.items():
            address = _address(name, shot, arguments)
            if address is None:
                print(f"{name}: the team has nothing to show there")
                continue
            for look in shot.looks:
                picture = given.into / (f"{name}.png" if look == "light" else f"{name}-{look}.png")
                try:
                    take(browser, site.url + address, cookie, VIEWS[look], picture, shot.scroll_to, block="center")
                except PageError as error:
                    print(f"{name}: {error}")
                    break
                taken.setdefault(name, []).append(picture.name)
        browser.close()
    size_bytes = sum(path.stat().st_size for path in given.into.glob("*.png"))
    print(f"{sum(map(len, taken.values()))} pictures of {len(taken)} pages, {size_bytes / 1e6:.1f} MB in {given.into}")
    if not given.only:
        (PROJECT_DIR / "docs" / "pages.md").write_text("\n".join(document(taken)) + "\n")


def document(taken: Mapping[str, list[str]]) -> list[str]:
    """The Markdown of docs/pages.md."""
    lines = ["# The pages in pictures", ""]
    lines += ["Made-up runs on made-up hosts. `bin/screenshots` takes them again.", ""]
    for name, pictures in taken.items():
        lines += [
            f"## {SHOTS[name].caption}",
            "",
            *(f"![{SHOTS[name].caption}](img/pages/{one})" for one in pictures),
            "",
        ]
    return lines[:-1]


def _address(name: str, shot: Shot, arguments: Mapping[str, Any]) -> str | None:
    """The page's address; None when the team has no such object."""
    given, page = {}, shot.page or name
    for word in page_patterns()[page].pattern.converters:
        value = arguments.get(word)
        given[word] = value.get(name, value.get(page)) if isinstance(value, dict) else value
    if any(value is None for value in given.values()):
        return None
    query = shot.query.format_map({key: quote(str(value)) for key, value in arguments.items()})
    return reverse(page, kwargs=given) + (f"?{query}" if query else "")


if __name__ == "__main__":
    main()
