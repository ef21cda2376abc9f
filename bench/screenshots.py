"""Takes the pictures of docs/pages.md: every page of frontend/urls.py of a team of made-up runs, in Chromium.

Uses the database of BENCHHUB_DATA_DIR (give it a scratch directory) or DATABASE_URL and seeds its team `demo-pictures`
there; the pictures go to docs/img/pages as PNG files of few colours, with docs/pages.md over them. A page whose object
the team lacks is named and left out.
"""

from __future__ import annotations

import argparse
import io
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from django.urls import URLPattern, reverse
from PIL import Image
from playwright.sync_api import Browser, sync_playwright

from agents.events import AnyEvent, LoadStarted, Logged, PhaseFinished, PhaseStarted
from agents.events import PhaseName as Phase
from bench.screenshot_pages import PAGES, Look, Shot
from bench.website import Website, session_cookie, signed_in, team_with_runs, website, write_events
from benchhub.embedded import PROJECT_DIR
from experiments.alerts.trends import rebuild
from experiments.models import Alert, Application, Experiment, Host, Recipe, Run, Series, Team, Workload
from frontend.urls import urlpatterns

SLUG = "demo-pictures"
RUNS = 600
COLOURS = 96
SIZES: dict[Look, tuple[int, int]] = {"light": (1200, 800), "dark": (1200, 800), "narrow": (400, 800)}
SETTLED_MS = 1200
STORY: tuple[tuple[Phase, float], ...] = (
    ("connect", 0.8), ("facts", 2.5), ("snapshot", 1.9), ("tune", 4.2), ("start", 7.5), ("warm_up", 15.0),
    ("measure", 60.0), ("collect", 3.1), ("stop", 2.2), ("restore", 3.9), ("verify", 2.4),
)  # fmt: skip


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
    arguments = _arguments(team)
    wanted = {name: shot for name, shot in PAGES.items() if given.only in name}
    client = signed_in(user)
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
                if (problem := _take(browser, site, session_cookie(client), address, shot, look, picture)) != "":
                    print(f"{name}: {problem}")
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
            f"## {PAGES[name].caption}",
            "",
            *(f"![{PAGES[name].caption}](img/pages/{one})" for one in pictures),
            "",
        ]
    return lines[:-1]


def _arguments(team: Team) -> dict[str, Any]:
    """What stands for the words in the addresses: the newest of everything."""
    run = Run.objects.for_team(team).filter(outcome="succeeded", validity="valid").order_by("-number")[0]
    if run.last_seq == 0:
        write_events(run, iter(_story(run)))
    series = Series.objects.for_team(team).order_by("-last_run_id")[0]
    if not Alert.objects.for_team(team).exists():
        for one in Series.objects.for_team(team):
            rebuild(one)
    same = Run.objects.for_team(team).counted().filter(fingerprint=run.fingerprint).order_by("-number")[:2]
    pks = {
        "host": Host.objects.for_team(team),
        "edit_host": Host.objects.for_team(team),
        "alert": Alert.objects.for_team(team),
        "application": Application.objects.for_team(team),
        "workload": Workload.objects.for_team(team),
        **dict.fromkeys(("recipe", "edit_document", "document_diff"), Recipe.objects.for_team(team)),
    }
    experiment = Experiment.objects.for_team(team).order_by("-id").first()
    return {
        "team_slug": team.slug,
        "number": run.number,
        "experiment_id": experiment.pk if experiment else None,
        "kind": "recipes",
        "name": "tomcat-baseline",
        "topic": "validity",
        "pk": {name: found.pk for name, rows in pks.items() if (found := rows.order_by("-id").first())},
        "pair": ",".join(str(one.number) for one in same),
        "series": series.pk,
    }


def _story(run: Run) -> list[AnyEvent]:
    """The phases of a run as the timeline and the log show them."""
    events: list[AnyEvent] = []
    at_unix_s = run.finished_at.timestamp() - sum(took for _, took in STORY) if run.finished_at else 0.0
    for phase, took_s in STORY:
        events += [PhaseStarted(phase, at_unix_s), Logged("runner", (f"{phase.replace('_', ' ').capitalize()}.",))]
        if phase in ("warm_up", "measure"):
            events.append(LoadStarted(int(phase == "measure"), phase == "measure", int(took_s), at_unix_s))
        events.append(PhaseFinished(phase, took_s))
        at_unix_s += took_s
    return events


def _address(name: str, shot: Shot, arguments: Mapping[str, Any]) -> str | None:
    """The page's address; None when the team has no such object."""
    given = {}
    for word in page_patterns()[name].pattern.converters:
        value = arguments.get(word)
        given[word] = value.get(name) if isinstance(value, dict) else value
    if any(value is None for value in given.values()):
        return None
    query = shot.query.format_map({key: quote(str(value)) for key, value in arguments.items()})
    return reverse(name, kwargs=given) + (f"?{query}" if query else "")


def _take(browser: Browser, site: Website, cookie: str, address: str, shot: Shot, look: Look, into: Path) -> str:
    """Take one picture; says what was wrong with the page, "" when nothing."""
    width, height = SIZES[look]
    page = browser.new_page(
        viewport={"width": width, "height": height}, color_scheme="dark" if look == "dark" else "light"
    )
    try:
        name, _, value = cookie.partition("=")
        page.context.add_cookies([{"name": name, "value": value, "url": site.url}])
        answer = page.goto(site.url + address)
        if answer is None or answer.status != 200:
            return f"{address} answered {answer.status if answer else 'nothing'}"
        if shot.scroll_to:
            page.locator(shot.scroll_to).first.scroll_into_view_if_needed()
        page.wait_for_timeout(SETTLED_MS)
        picture = Image.open(io.BytesIO(page.screenshot()))
        picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(into, optimize=True)
    finally:
        page.context.close()
    return ""


if __name__ == "__main__":
    main()
