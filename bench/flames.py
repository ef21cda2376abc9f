"""Measures the flame graph of a profile of 100,000 distinct stacks in Chromium, and takes pictures of its pages.

Uses the database of BENCHHUB_DATA_DIR (give it a scratch directory) or DATABASE_URL, keeps its team `bench-flames`
there. Prints Markdown: what the answer weighs, how long the server takes, and from the moment the answer is read to the
drawn frames, for the first look, callers first, a part of the time, a search. The exit status is 1 when the median of
a drawing is at its aim or above it, or when a stack or its weight is lost in one of the two directions. `--pictures` is
where PNG files go, light, dark and narrow, with what axe-core finds in each.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from axe_playwright_python.sync_playwright import Axe
from django.test import Client
from playwright.sync_api import Browser, Page, sync_playwright

from agents.profiles.base.taken import TakenProfile
from agents.profiles.call_tree import call_tree
from agents.profiles.packing import pack
from bench.made_up_profiles import made_up_slices, many_stacks
from bench.screenshot_answers import PROFILED, Answers
from bench.website import Website, session_cookie, signed_in, team_with_runs, timed_ms, website
from experiments.models import Experiment, Member, Run, RunProfile, Team
from experiments.registry.runs.run_profiles import folded, store_run_profile

SLUG = "bench-flames"
LIMIT_MS = 300.0
FIRST = "first, the answer read"
LOOKS = {"light": ("light", 1360), "dark": ("dark", 1360), "narrow": ("light", 400)}
READY = "() => document.querySelector('[data-flame]')?.dataset.drawnMs"
ACTIONS = {
    "by callers": "flame => { flame.isReversed = true; flame.arrange(); }",
    "by callers, zoomed in": "flame => flame.zoom(flame.tree.childrenOf(0)[0])",
    "by callers, a fifth of the time": "flame => { [flame.times.from, flame.times.to] = [24, 36]; flame.arrange(); }",
    "callees, that fifth": "flame => { flame.isReversed = false; flame.arrange(); }",
    "callees, all times": "flame => { [flame.times.from, flame.times.to] = [0, 60]; flame.arrange(); }",
    "search": "flame => { flame.search.value = 'class7'; flame.find(); }",
    "zoom": "flame => { flame.search.value = ''; flame.find(); flame.zoom(flame.tree.childrenOf(0)[0]); }",
    "table": "flame => flame.fillTable()",
}
BRUSH = """() => new Promise(done => {
  document.querySelector('[data-flame]').flame.times.set(24, 36);
  requestAnimationFrame(() => requestAnimationFrame(done));
})"""
AIMED = (FIRST, *(name for name in ACTIONS if "call" in name))
"""What has to take less than LIMIT_MS."""
EVERYTHING = """() => {
  const { flame } = document.querySelector('[data-flame]');
  const read = () => {
    let [stacks, weight] = [0, 0];
    const ahead = [0];
    while (ahead.length) {
      const at = ahead.pop();
      let own = flame.tree.total[0][at];
      for (const child of flame.tree.childrenOf(at)) { own -= flame.tree.total[0][child]; ahead.push(child); }
      if (own > 0.5) { stacks += 1; weight += own; }
    }
    return [stacks, Math.round(weight)];
  };
  return [false, true].map(reversed => { flame.isReversed = reversed; flame.arrange(); return read(); });
}"""
"""Stacks and weight in both directions, every node looked at as zooming in would."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stacks", type=int, default=100_000)
    parser.add_argument("--times", type=int, default=7)
    parser.add_argument("--pictures", type=Path)
    given = parser.parse_args()
    team, user = team_with_runs(SLUG, 60)
    member = Member.objects.select_related("team", "user").get(team=team, user=user)
    if not Experiment.objects.for_team(team).filter(name=PROFILED).exists():
        answers = Answers(member)
        answers.documents()
        answers.profiled()
    large = _large(team, given.stacks)
    client = signed_in(user)
    url = f"/t/{SLUG}/runs/{large.run.number}/profiles/{large.name}/"
    answer = client.get(f"{url}tree")
    tree = call_tree([[(folded(large), 1.0)]], lambda frame: frame.label)
    server_ms = [timed_ms(lambda: client.get(f"{url}tree")) for _ in range(3)]
    sizes = f"{len(answer.content) / 1e6:.1f} MB to the browser, {len(large.folded) / 1e6:.1f} MB stored"
    print(f"{large.stacks:,} distinct stacks, {len(tree):,} frames in the tree, {sizes}; ")
    print(f"the server answers in {statistics.median(server_ms):,.0f} ms.\n")
    pages = {"times": url, **_pages(team)}
    with website() as site, sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-gpu"]
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=arguments)
        drawn_ms, found = _measured(browser, site, client, url, given.times)
        if given.pictures:
            _pictures(browser, site, client, pages, given.pictures)
        browser.close()
    lost = found != [[large.stacks, round(float(tree.own.sum()))]] * 2
    print(f"\nStacks or weight that were lost in one of the directions: {'some' if lost else 'none'}.")
    late = [name for name in AIMED if drawn_ms[name] >= LIMIT_MS]
    for name in late:
        print(f"Missed: {name}, {drawn_ms[name]:,.0f} ms of {LIMIT_MS:,.0f} ms.")
    if lost or late:
        raise SystemExit(1)


def _large(team: Team, stacks: int) -> RunProfile:
    run = Run.objects.for_team(team).counted().earliest("number")
    name = f"timed-{stacks}"
    found: RunProfile | None = run.profiles.filter(name=name).first()
    if found is None:
        taken = TakenProfile("async-profiler", event="cpu", engine="perf_events", name=name)
        found = store_run_profile(run, many_stacks(np.random.default_rng(7), stacks), taken)
        profile = folded(found)
        found.folded = pack(replace(profile, slices=made_up_slices(np.random.default_rng(8), profile)))
        found.start_s, found.end_s = 5.0, 65.0
        found.save()
    return found


def _page(browser: Browser, site: Website, client: Client, look: str = "light", width: int = 1360) -> Page:
    name, _, value = session_cookie(client).partition("=")
    context: Any = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=look)  # type: ignore[arg-type]
    context.add_cookies([{"name": name, "value": value, "url": site.url}])
    page: Page = context.new_page()
    page.on("console", lambda said: print(f"console {said.type}: {said.text}") if said.type == "error" else None)
    page.on("pageerror", lambda error: print(f"page error: {error}"))
    return page


def _measured(
    browser: Browser, site: Website, client: Client, url: str, times: int
) -> tuple[dict[str, float], list[list[int]]]:
    """The median of each drawing in ms, and the stacks and the weight of each direction as the page has them."""
    page = _page(browser, site, client)
    first: list[float] = []
    others: dict[str, list[float]] = {name: [] for name in ACTIONS}
    for _ in range(times):
        page.goto(site.url + url)
        first.append(float(page.wait_for_function(READY, timeout=60_000).json_value()))
        for name, act in ACTIONS.items():
            took = page.evaluate(
                "act => { const flame = document.querySelector('[data-flame]').flame, began = performance.now(); "
                "act(flame); return performance.now() - began; }".replace("act(flame)", f"({act})(flame)"),
                None,
            )
            others[name].append(float(took))
    print("| drawn | median ms | longest ms |\n| --- | ---: | ---: |")
    measured = {FIRST: first, **others}
    for name, found in measured.items():
        print(f"| {name} | {statistics.median(found):,.0f} | {max(found):,.0f} |")
    return {name: statistics.median(found) for name, found in measured.items()}, page.evaluate(EVERYTHING)


def _pages(team: Team) -> dict[str, str]:
    """The addresses of the pages that are taken, by name."""
    experiment = Experiment.objects.for_team(team).get(name=PROFILED)
    run = experiment.runs.filter(variant__is_baseline=False).latest("number")
    return {
        "run_profile": f"/t/{SLUG}/runs/{run.number}/profiles/{run.profiles.latest('pk').name}/",
        "functions": f"/t/{SLUG}/compare/functions/?experiment={experiment.pk}",
        "experiment": f"/t/{SLUG}/experiments/{experiment.pk}/",
        "run": f"/t/{SLUG}/runs/{run.number}/",
    }


def _pictures(browser: Browser, site: Website, client: Client, pages: dict[str, str], into: Path) -> None:
    into.mkdir(parents=True, exist_ok=True)
    for look, (scheme, width) in LOOKS.items():
        page = _page(browser, site, client, scheme, width)
        for title, path in pages.items():
            page.goto(site.url + path, wait_until="networkidle")
            if title == "times":
                page.evaluate(BRUSH)
            page.screenshot(path=into / f"{title}-{look}.png", full_page=True)
            wide = page.evaluate("() => document.documentElement.scrollWidth")
            if wide > width:
                print(f"{title} {look}: {wide} px wide")
            for one in Axe().run(page).response["violations"]:
                print(f"{title} {look}: {one['impact']} {one['id']} at {one['nodes'][0]['target']}")
        page.close()


if __name__ == "__main__":
    main()
