"""The scaling page, and what the pages of experiments, runs and comparisons show of CPUs and timers."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from django.test import Client

from experiments.asking.intake.timers import import_timers
from experiments.asking.launching.choices import Choice
from experiments.asking.launching.launch import launch_run
from experiments.models import Member, Role
from tests.experiments.api.test_timers_and_scaling import TABLE
from tests.experiments.conftest import MakeMember
from tests.experiments.finished import finish_next
from tests.experiments.judging.test_scaling import sweep
from tests.frontend.conftest import MakeRun

RATES = {"0": [100.5], "0-1": [190.5], "0-3": [340.5], "0-7": [520.5]}


def data(page: str, name: str) -> dict[str, Any]:
    found = re.search(rf'<script id="{name}" type="application/json">(.*?)</script>', page)
    assert found is not None
    return dict(json.loads(found[1]))


def test_the_scaling_page_shows_points_law_and_advice(browser: Client, admin: Member, stock: dict[str, Any]) -> None:
    experiment = sweep(admin, stock, RATES)
    page = browser.get(f"/t/perf/experiments/{experiment.pk}/scaling/?total=16&node=8").content.decode()
    chart = data(page, "scaling")
    assert [(p["cpus"], p["ideal"]) for p in chart["points"]] == [(1, 100.5), (2, 201), (4, 402), (8, 804)]
    assert chart["end_cpus"] == 10
    assert chart["curve"][0]["low"] < chart["curve"][0]["rps"] < chart["curve"][0]["high"]
    assert "For 16 CPUs:" in page
    on_experiment = browser.get(f"/t/perf/experiments/{experiment.pk}/").content.decode()
    assert f"/t/perf/experiments/{experiment.pk}/scaling/" in on_experiment
    assert data(on_experiment, "scaling") == data(
        browser.get(f"/t/perf/experiments/{experiment.pk}/scaling/").content.decode(), "scaling"
    )


@pytest.mark.parametrize("query", ["", "?total=x&node=0&efficiency=1000&with=abc"])
def test_without_two_cpu_counts_the_page_says_what_is_missing(
    browser: Client, admin: Member, stock: dict[str, Any], query: str
) -> None:
    experiment = sweep(admin, stock, {"0": [100.5]})
    answer = browser.get(f"/t/perf/experiments/{experiment.pk}/scaling/{query}")
    assert answer.status_code == 200
    assert b"at least two different numbers of CPUs" in answer.content


def test_experiments_of_another_team_cannot_be_added(
    browser: Client, admin: Member, stock: dict[str, Any], other_admin: Member
) -> None:
    experiment = sweep(admin, stock, {"0": [100.5]})
    assert browser.get(f"/t/perf/experiments/{experiment.pk}/scaling/?with=999999").status_code == 404


def test_the_cpu_verdict_stands_on_the_experiment_and_on_compare(
    browser: Client, admin: Member, stock: dict[str, Any]
) -> None:
    experiment = sweep(admin, stock, {"0-1": [1000.0] * 5, "2-3": [600.0] * 5})
    page = browser.get(f"/t/perf/experiments/{experiment.pk}/").content.decode()
    assert "High CPU, low tps" in page
    assert "each request has become costlier" in page
    first, second = (experiment.runs.filter(variant__position=i).earliest("number").number for i in (0, 1))
    compared = browser.get(f"/t/perf/compare/?runs={first},{second}").content.decode()
    assert "High CPU, low tps" not in compared
    assert "Too early to say why: single runs show no noise." in compared
    assert "Throughput per core" in compared


def test_compared_runs_on_different_cpu_counts_show_their_scaling(browser: Client, make_run: MakeRun) -> None:
    runs = [
        make_run(throughput_rps=rate, events=(), labels={"cpus": cpus})
        for cpus, rate in (("1", 100.5), ("2", 190.5), ("4", 340.5), ("8", 520.5), ("", 500.5))
    ]
    numbers = ",".join(str(run.number) for run in runs)
    chart = data(browser.get(f"/t/perf/compare/?runs={numbers}").content.decode(), "scaling")
    assert [(point["cpus"], point["instances"]) for point in chart["points"]] == [(1, 1), (2, 1), (4, 1), (8, 1)]
    same = browser.get(f"/t/perf/compare/?runs={runs[0].number},{runs[4].number}").content.decode()
    assert 'id="scaling"' not in same


def test_timers_are_added_on_the_run_page_and_compared(browser: Client, admin: Member, stock: dict[str, Any]) -> None:
    launch_run(admin, Choice(**stock))
    run = finish_next()
    answer = browser.post(f"/t/perf/runs/{run.number}/timers", {"name": "container", "text": TABLE}, follow=True)
    page = answer.content.decode()
    assert "27 timers added." in page
    assert "ResourceCommit grew most" in page
    refused = browser.post(f"/t/perf/runs/{run.number}/timers", {"name": "x", "text": "no"}, follow=True)
    assert "This is not the header of a table of timers (line 1)." in refused.content.decode()
    launch_run(admin, Choice(**stock))
    other = finish_next()
    import_timers(admin, other, name="container", text=TABLE)
    compared = browser.get(f"/t/perf/compare/?runs={run.number},{other.number}").content.decode()
    assert "Timers: container" in compared
    assert f"#{run.number}, 1 CPU" in compared


def test_a_viewer_adds_no_timers(
    admin: Member, stock: dict[str, Any], make_member: MakeMember, browser_of: Any
) -> None:
    launch_run(admin, Choice(**stock))
    run = finish_next()
    viewer = browser_of(make_member(admin.team, Role.VIEWER))
    assert viewer.post(f"/t/perf/runs/{run.number}/timers", {"name": "t", "text": TABLE}).status_code == 403
    assert b"Add a table of timers" not in viewer.get(f"/t/perf/runs/{run.number}/").content


def test_the_list_of_runs_shows_throughput_per_core(browser: Client, admin: Member, stock: dict[str, Any]) -> None:
    sweep(admin, stock, {"0-1": [1000.0]})
    page = browser.get("/t/perf/runs/?columns=throughput_per_core_rps,requests_per_cpu_s").content.decode()
    assert "Requests/s per core" in page
    assert '<td class="num">500</td>' in page
