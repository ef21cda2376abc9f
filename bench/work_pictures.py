"""Takes the pictures of docs/works and docs/tuning.md: pages of experiments and tuning searches that really ran.

Give it the BENCHHUB_DATA_DIR in which `bin/lab --exit --published` ran the experiments of PICTURES; it starts a web
process of its own on their database. A picture whose experiment has not run is named and left as it is.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass

from django.contrib.auth import get_user_model
from django.urls import reverse
from playwright.sync_api import sync_playwright

from bench.picture import PageError, View, take
from bench.website import session_cookie, signed_in, website
from benchhub.embedded import PROJECT_DIR
from experiments.asking.library.catalogue import template
from experiments.models import Experiment, Run, Tuning
from lab.management.commands.lab_run import TEAM, USER

Address = Callable[[], str]


@dataclass(frozen=True)
class Picture:
    """What it shows (an address), how high it is in pixels, and the heading (CSS) at its top."""

    address: Address
    height: int
    top: str = ""


def newest(name: str) -> Experiment:
    """The newest finished experiment that was made of a template of the library."""
    found = Experiment.objects.filter(team__slug=TEAM, name__startswith=template(name).title)
    experiment: Experiment = found.filter(state=Experiment.State.FINISHED).latest("pk")
    return experiment


def experiment_page(name: str) -> Address:
    return lambda: reverse("experiment", args=(TEAM, newest(name).pk))


def scaling_page(name: str) -> Address:
    return lambda: reverse("scaling", args=(TEAM, newest(name).pk))


def published_page(name: str) -> Address:
    return lambda: reverse("library_published", args=(TEAM, name))


def newest_tuning(name: str, state: str = Tuning.State.FINISHED) -> Tuning:
    """The newest tuning search that was made of a template of the library; with a gain, if it is finished."""
    found = Tuning.objects.filter(team__slug=TEAM, labels__library=name, state=state)
    if state == Tuning.State.FINISHED:
        found = found.filter(outcome=Tuning.Outcome.BETTER)
    tuning: Tuning = found.latest("pk")
    return tuning


def tuning_page(name: str, state: str = Tuning.State.FINISHED) -> Address:
    return lambda: reverse("tuning", args=(TEAM, newest_tuning(name, state).pk))


def tuning_form(name: str) -> Address:
    return lambda: reverse("new_tuning", args=(TEAM,)) + f"?from={newest_tuning(name).pk}"


def _run_of(name: str, variant: str) -> Run:
    found = Run.objects.filter(experiment=newest(name), variant__name=variant, outcome="succeeded")
    run: Run = found.latest("number")
    return run


def run_page(name: str, variant: str) -> Address:
    return lambda: reverse("run", args=(TEAM, _run_of(name, variant).number))


def pair_page(name: str, baseline: str, candidate: str) -> Address:
    return lambda: (
        reverse("compare", args=(TEAM,)) + f"?runs={_run_of(name, baseline).number},{_run_of(name, candidate).number}"
    )


PICTURES = {
    "work-1": Picture(published_page("tomcat-baseline"), 900),
    "work-1-measured": Picture(experiment_page("tomcat-baseline"), 860),
    "work-2": Picture(experiment_page("rest-two-machines"), 860),
    "work-3": Picture(run_page("linux-18-keys-50", "18 keys"), 760, "h2:text-is('Tuning journal')"),
    "work-3-kernels": Picture(published_page("linux-two-kernels"), 1000),
    "work-4": Picture(scaling_page("cpu-scaling-best-load"), 1000),
    "work-4-published": Picture(published_page("cpu-scaling"), 900),
    "work-5": Picture(experiment_page("liberty-virtual-threads"), 860),
    "work-5-difference": Picture(
        pair_page("liberty-virtual-threads", "thread pool", "virtual threads"),
        520,
        "h2:text-is('CPU beside throughput')",
    ),
    "tuning-form": Picture(tuning_form("tune-nginx"), 900, "h2:text-is('What may be tried')"),
    "tuning-live": Picture(tuning_page("tune-tomcat-jvm", Tuning.State.RUNNING), 900),
    "tuning-answer": Picture(tuning_page("tune-nginx"), 760),
    "tuning-coordinates": Picture(tuning_page("tune-nginx"), 640, "h2:text-is('Every parameter')"),
    "tuning-alone": Picture(tuning_page("tune-nginx"), 620, "h2:text-is('Each parameter alone')"),
    "work-11": Picture(experiment_page("three-tier"), 860),
    "work-11-limit": Picture(run_page("three-tier", "one process each"), 620, "h2:text-is('Validity checks')"),
}


def main() -> None:
    user = get_user_model().objects.get(username=USER)
    cookie = session_cookie(signed_in(user))
    into = PROJECT_DIR / "docs" / "img"
    addresses: dict[str, str] = {}
    problems: list[str] = []
    for name, picture in PICTURES.items():
        try:
            addresses[name] = picture.address()
        except (Experiment.DoesNotExist, Run.DoesNotExist, Tuning.DoesNotExist) as error:
            problems.append(f"{name}: {error}")
    with website() as site, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        for name, address in addresses.items():
            picture, path = PICTURES[name], into / f"{name}.png"
            try:
                take(browser, site.url + address, cookie, View(1000, picture.height), path, picture.top)
                print(f"{path.name}: {address}, {path.stat().st_size / 1000:.0f} kB")
            except PageError as error:
                problems.append(f"{name}: {error}")
        browser.close()
    for problem in problems:
        print(problem, file=sys.stderr)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
