"""The pages of searches."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from experiments.asking.launching.choices import Choice
from experiments.models import CapacitySearch, Member, Role, Run, Workload
from experiments.registry.documents.versions import save_version
from tests.experiments.asking.test_searches import RATED, load, play, server, start
from tests.experiments.conftest import WORKLOAD, MakeMember
from tests.experiments.finished import finish_next, whole_run
from tests.frontend.flat import flat

HERE = "/t/perf/experiments/searches/"


@pytest.fixture
def choice(admin: Member, stock: dict[str, Any]) -> Choice:
    return Choice(**stock | {"workload": save_version(admin, Workload, "rated", WORKLOAD | RATED)})


def form_of(choice: Choice, **more: Any) -> dict[str, Any]:
    parts = {name: getattr(choice, name).pk for name in ("application", "recipe", "workload", "sut")}
    parts["drivers"] = [host.pk for host in choice.drivers]
    given = {"objective_metric": "latency_p99_ms", "objective_ms": "50", "low_rps": "1000", "high_rps": "4000"}
    return {"name": "How much?", "width_pct": "10", "priority": "normal", **parts, **given, **more}


def test_the_form_starts_a_search(browser: Client, choice: Choice) -> None:
    assert browser.get(f"{HERE}new/").status_code == 200
    answer = browser.post(f"{HERE}new/", form_of(choice, labels="commit=abc"))
    search = CapacitySearch.objects.get()
    assert (answer.status_code, answer.headers["Location"]) == (302, f"{HERE}{search.pk}/")
    assert search.width_ratio == pytest.approx(0.1)
    assert search.labels == {"commit": "abc"}
    assert Run.objects.get().labels["offered_rate_rps"] == "1000"


def test_the_form_shows_the_same_as_an_api_call(browser: Client, choice: Choice) -> None:
    answer = browser.post(f"{HERE}new/", form_of(choice, show="1"))
    assert b"/api/v1/searches" in answer.content
    assert b"About 17 trials" in answer.content
    assert b"&quot;rated@1&quot;" in answer.content
    assert not CapacitySearch.objects.exists()


def test_a_refusal_stands_at_its_field(browser: Client, choice: Choice, stock: dict[str, Any]) -> None:
    closed = browser.post(f"{HERE}new/", form_of(choice, workload=stock["workload"].pk))
    assert closed.status_code == 422
    assert b"wrk cannot offer a rate of requests" in closed.content
    missing = browser.post(f"{HERE}new/", form_of(choice, objective_ms=""))
    assert (missing.status_code, CapacitySearch.objects.exists()) == (422, False)


def test_a_running_search_shows_its_bounds_and_asks_for_more(browser: Client, admin: Member, choice: Choice) -> None:
    search = start(admin, choice)
    finish_next(whole_run(load(1000)))
    page = flat(browser.get(f"{HERE}{search.pk}/").content.decode())
    assert "1,000 requests/s are sustained; a rate that is not is being looked for. Now 4,000 requests/s." in page
    assert 'hx-get="?part=answer"' in page
    part = browser.get(f"{HERE}{search.pk}/?part=answer")
    assert part.headers["HX-Trigger"] == "charts-changed"
    assert b"Latency p99 20 ms, objective 50 ms" in part.content
    chart = browser.get(f"{HERE}{search.pk}/chart").json()
    assert (chart["low_rps"], chart["high_rps"], chart["over"]) == (1000, None, False)
    assert [(t["rate_rps"], t["result"]) for t in chart["trials"]] == [(1000, "pass"), (4000, "")]
    assert chart["points"] == [{"x": 1000.0, "y": 20.0, "offered": 1000.0, "name": "#1", "line": ""}]


def test_a_finished_search_says_its_interval_and_can_be_made_again(
    browser: Client, admin: Member, choice: Choice
) -> None:
    search = play(start(admin, choice), server(2300))
    page = browser.get(f"{HERE}{search.pk}/").content.decode()
    assert search.sentence in page
    assert f"/t/perf/share/?kind=search&amp;search={search.pk}" in page
    assert "hx-get=" not in page.partition('id="answer"')[2].partition(">")[0]
    assert browser.get(f"{HERE}{search.pk}/chart").json()["high_rps"] == search.high_rps
    assert f"{search.low_rps:,.0f}" in browser.get(HERE).content.decode()
    copied = browser.get(f"{HERE}new/?from={search.pk}").content.decode()
    assert f'value="{search.low_rps}"' in copied


def test_a_search_is_cancelled_from_its_page(browser: Client, admin: Member, choice: Choice) -> None:
    search = start(admin, choice)
    assert browser.post(f"{HERE}{search.pk}/cancel").status_code == 302
    search.refresh_from_db()
    assert search.state == "cancelled"
    again = browser.post(f"{HERE}{search.pk}/cancel", follow=True).content.decode()
    assert "This rate search is over already." in again


def test_a_viewer_sees_searches_and_starts_none(
    admin: Member, choice: Choice, make_member: MakeMember, browser_of: Any
) -> None:
    search = start(admin, choice)
    viewer = browser_of(make_member(admin.team, Role.VIEWER))
    page = viewer.get(f"{HERE}{search.pk}/")
    assert page.status_code == 200
    assert b"Search again" not in page.content
    assert viewer.get(f"{HERE}new/").status_code == 403
    assert viewer.post(f"{HERE}{search.pk}/cancel").status_code == 403


def test_the_list_needs_the_same_number_of_queries_for_any_number_of_searches(
    browser: Client, admin: Member, choice: Choice, django_assert_num_queries: Any
) -> None:
    start(admin, choice)
    browser.get(HERE)
    with CaptureQueriesContext(connection) as one:
        browser.get(HERE)
    for _ in range(5):
        start(admin, choice)
    with django_assert_num_queries(len(one)):
        browser.get(HERE)
