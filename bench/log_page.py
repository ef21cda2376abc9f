"""Measures the log page of a run with 100,000 lines: server time, and in Chromium the time until lines are seen.

Two such runs: every line an event of its own, and a hundred lines in each event. Uses the database of
BENCHHUB_DATA_DIR (give it a scratch directory) or DATABASE_URL, keeps its team `bench-log` there. Prints Markdown; the
exit status is 1 when the 95th percentile of opening the page in the browser is a second or more.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Callable, Iterator

import numpy as np
from django.test import Client
from playwright.sync_api import sync_playwright

from agents.events import AnyEvent, Logged, PhaseFinished, PhaseStarted
from bench.website import session_cookie, signed_in, team_with_runs, timed_ms, website, write_events
from experiments.models import Run

LINES = 100_000
SHAPES = {"100,000 events of 1 line": 1, "1,000 events of 100 lines": 100}
LIMIT_MS = 1000.0
WARM_UPS = 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=20, help="timed requests of each kind")
    given = parser.parse_args()
    team, user = team_with_runs("bench-log", 20)
    client = signed_in(user)
    newest = list(Run.objects.for_team(team).order_by("-number")[: len(SHAPES)])
    runs = dict(zip(SHAPES, newest, strict=True))
    for shape, run in runs.items():
        if run.last_seq < 100:
            write_events(run, _events(SHAPES[shape]))
    print("| request | " + " | ".join(f"{shape}, p50 / p95 ms" for shape in SHAPES) + " |")
    print("| --- |" + " ---: |" * len(SHAPES))
    for name, query in _requests().items():
        addresses = [f"/t/{team.slug}/runs/{run.number}/log{query}" for run in runs.values()]
        print(f"| {name} | " + " | ".join(_cell(_times(client, url, given.requests)) for url in addresses) + " |")
    opened = _in_a_browser(client, [f"/t/{team.slug}/runs/{run.number}/log/" for run in runs.values()], given.requests)
    print("| opened in Chromium, until lines are painted | " + " | ".join(map(_cell, opened)) + " |")
    if any(np.percentile(times, 95) >= LIMIT_MS for times in opened):
        raise SystemExit(1)


def _requests() -> dict[str, str]:
    return {
        "the page": "/",
        "the page at line 50,000": "/?line=50000",
        "1,000 lines by number, in the middle": f"/lines?after={LINES // 2}",
        "search: one line has it": "/?part=found&q=request%2077777%20",
        "search: no line has it": "/?part=found&q=nowhere",
        "raw download, whole": "",
    }


def _events(lines_each: int) -> Iterator[AnyEvent]:
    """A warning in every 5,000 lines, an error at the end of the load."""
    yield PhaseStarted("measure")
    for start in range(0, LINES, lines_each):
        lines = tuple(f"request {start + n} answered 200 in 1.3 ms, 512 bytes, keep-alive" for n in range(lines_each))
        yield Logged("server", lines, "warning" if start % 5000 == 0 else "info")
    yield Logged("runner", ("wrk ended early.",), "error")
    yield PhaseFinished("measure", 60.0)


def _times(client: Client, url: str, requests: int) -> list[float]:
    def get() -> None:
        if (status := client.get(url).status_code) != 200:
            raise SystemExit(f"{url} answered {status}")

    return _measured(get, requests)


def _in_a_browser(client: Client, paths: list[str], requests: int) -> list[list[float]]:
    """From the request until the first lines are on the screen, caches warm."""
    name, _, value = session_cookie(client).partition("=")
    with website() as site, sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-gpu"]
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=arguments)
        page = browser.new_page(viewport={"width": 1360, "height": 900})
        page.context.add_cookies([{"name": name, "value": value, "url": site.url}])

        def opened(path: str) -> Callable[[], None]:
            def open_page() -> None:
                page.goto("about:blank")
                page.goto(site.url + path, wait_until="commit")
                page.wait_for_selector(".log-line .log-text", state="visible")
                page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

            return open_page

        found = [_measured(opened(path), requests) for path in paths]
        browser.close()
    return found


def _measured(action: Callable[[], None], times: int) -> list[float]:
    for _ in range(WARM_UPS):
        action()
    return [timed_ms(action) for _ in range(times)]


def _cell(times_ms: list[float]) -> str:
    p50, p95 = np.percentile(times_ms, [50, 95])
    return f"{p50:.0f} / {p95:.0f}"


if __name__ == "__main__":
    main()
