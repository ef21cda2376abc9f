"""The pages of Prometheus sources, and what the pages of a run and of Compare show of them, with a real Prometheus."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest
from django.test import Client

from experiments.asking.prometheus.queries import ChannelQuery
from experiments.models import Member, PrometheusReading, PrometheusSource, Role
from tests.experiments.asking.test_prometheus_reading import (  # noqa: F401 - fixtures
    loopback,
    measured_run,
    read_all,
    server,
    source_of,
)
from tests.experiments.conftest import MakeMember
from tests.prometheus_server import Server

HERE = "/t/perf/settings/prometheus/"
DISKS = ChannelQuery("disks", "count(shop_disk_busy_ratio)", "disks", step_s=1)


def typed(url: str, *rows: dict[str, Any], **more: Any) -> dict[str, Any]:
    """What the form sends: these rows, and the empty ones behind them."""
    found = {"name": "prod", "url": url, "auth": "none", "is_active": "on", **more}
    found |= {"queries-TOTAL_FORMS": str(len(rows) + 1), "queries-INITIAL_FORMS": "0"}
    for number, row in enumerate([*rows, {}]):
        given = {"channel": "", "query": "", "unit": "", "role": "sut", "step_s": "15", "label": "", **row}
        found |= {f"queries-{number}-{name}": value for name, value in given.items()}
    return found


def text_of(page: bytes) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", page.decode()).split())


@pytest.mark.django_db
def test_a_source_is_added_tried_changed_and_deleted(
    browser: Client,
    server: Server,  # noqa: F811
    admin: Member,
    stock: dict[str, Any],
) -> None:
    new = browser.get(HERE).content.decode()
    assert "No Prometheus yet" in new
    assert "keeps the stored one" not in new
    broken = {"channel": "broken", "query": "sum(shop_scrapes"}
    row = {"channel": "scrapes", "query": 'shop_scrapes{instance="{host}:9100"}', "step_s": "1"}
    given = typed(server.url, row, {}, broken, auth="bearer", secret="only-it-knows")
    made = browser.post(HERE, given)
    source = PrometheusSource.objects.get()
    assert (made.status_code, made["Location"]) == (302, f"{HERE}{source.pk}/")
    assert [one["channel"] for one in source.queries] == ["scrapes", "broken"]
    page = browser.get(made["Location"]).content.decode()
    assert "only-it-knows" not in page
    assert 'value="scrapes"' in page
    assert "keeps the stored one" in page
    tried = text_of(browser.post(f"{HERE}{source.pk}/do", {"do": "try", "host": "sut-1"}).content)
    assert re.search(r'sut prometheus.scrapes shop_scrapes\{instance="?.*sut-1:9100.*\} 1 [0-9]+ nothing', tried)
    assert "It refused the query (400): 1:17: parse error" in tried
    saved = browser.post(f"{HERE}{source.pk}/", typed(server.url, row, name="other"))
    assert saved.status_code == 302
    source.refresh_from_db()
    assert (source.name, len(source.queries), bytes(source.secret)) == ("other", 1, b"")
    assert browser.post(f"{HERE}{source.pk}/do", {"do": "delete"})["Location"] == HERE
    assert not PrometheusSource.objects.exists()


@pytest.mark.django_db
@pytest.mark.parametrize(
    "rows, more, field",
    [
        ([{}, {"channel": "Load", "query": "up"}], {}, "id_queries-1-channel"),
        ([{"channel": "a", "query": "up{i='{hots}'}"}], {}, "id_queries-0-query"),
        ([{"channel": "a", "query": "up"}], {"auth": "bearer"}, "id_secret"),
        ([{"channel": "a", "query": "up"}], {"url": "https://10.0.0.1"}, "id_url"),
        ([{"channel": "a", "query": "up", "step_s": "x"}], {}, "id_queries-0-step_s"),
    ],
)
def test_a_refusal_stands_at_its_field_and_what_was_typed_stays(
    browser: Client, rows: list[dict[str, Any]], more: dict[str, Any], field: str
) -> None:
    given = {"url": "https://prometheus.example.com", **more}
    answer = browser.post(HERE, typed(given.pop("url"), *rows, **given))
    page = answer.content.decode()
    assert answer.status_code == 422
    assert f'id="{field}_error"' in page
    assert not PrometheusSource.objects.exists()


@pytest.mark.django_db
def test_no_queries_at_all_are_refused_above_the_form(browser: Client) -> None:
    answer = browser.post(HERE, typed("https://prometheus.example.com"))
    assert answer.status_code == 422
    assert "A source has 1 to 20 queries." in answer.content.decode()


@pytest.mark.django_db
def test_members_see_sources_and_admins_change_them(
    admin: Member, make_member: MakeMember, browser_of: Any, stock: dict[str, Any]
) -> None:
    source = source_of(admin, "https://prometheus.example.com", DISKS)
    viewer = browser_of(make_member(admin.team, Role.VIEWER))
    page = viewer.get(HERE).content.decode()
    assert "sut prometheus.disks" in page
    assert "New source" not in page
    for address, data in (
        (HERE, typed("https://p.example.com", {"channel": "a", "query": "up"}, name="mine")),
        (f"{HERE}{source.pk}/", typed("https://p.example.com", {"channel": "a", "query": "up"})),
        (f"{HERE}{source.pk}/do", {"do": "delete"}),
    ):
        assert viewer.post(address, data).status_code == 403
    assert viewer.get(f"{HERE}{source.pk}/").status_code == 403
    assert PrometheusSource.objects.get().name == "prod"


@pytest.mark.django_db
def test_a_run_says_what_was_read_and_draws_it_and_compare_does(
    browser: Client,
    server: Server,  # noqa: F811
    admin: Member,
    stock: dict[str, Any],
) -> None:
    source_of(admin, server.url, DISKS, ChannelQuery("broken", "sum(shop_scrapes", "x"))
    run = measured_run(admin, stock, time.time() - 4)
    here = f"/t/perf/runs/{run.number}/"
    assert "It is asked at" in text_of(browser.get(here).content)
    (row,) = read_all(run)
    said = text_of(browser.get(here).content)
    assert "broken (sut): It refused the query (400): 1:17: parse error: unclosed left parenthesis" in said
    assert "Not asked any more, after 1 try." in said
    assert "sut prometheus.disks" in said
    assert "Prometheus, in disks" in said
    lines = browser.get(f"{here}samples?group=prometheus-0").json()["lines"]
    assert [(line["channel"], line["unit"], set(line["values"])) for line in lines] == [
        ("prometheus.disks", "disks", {2.0})
    ]
    other = measured_run(admin, stock, time.time() - 4)
    read_all(other)
    both = f"runs={run.number},{other.number}"
    assert "prometheus.disks" in browser.get(f"/t/perf/compare/?{both}").content.decode()
    drawn = browser.get(f"/t/perf/compare/overlays?{both}&channel=prometheus.disks").json()["lines"]
    assert [set(line["values"]) for line in drawn] == [{2.0}, {2.0}]
    again = browser.post(f"{here}prometheus", follow=True)
    assert "Prometheus is asked" in text_of(again.content)
    row.refresh_from_db()
    assert row.next_at is not None
    assert row.tries == 0


@pytest.mark.django_db
def test_a_run_without_sources_has_no_card_and_may_not_be_asked_about(
    browser: Client, admin: Member, stock: dict[str, Any]
) -> None:
    run = measured_run(admin, stock, time.time() - 4)
    here = f"/t/perf/runs/{run.number}/"
    assert 'id="prometheus"' not in browser.get(here).content.decode()
    refused = browser.post(f"{here}prometheus", follow=True)
    assert "The team has no Prometheus source that is switched on." in text_of(refused.content)
    assert not PrometheusReading.objects.exists()
    source_of(admin, "https://prometheus.example.com", DISKS)
    assert "Ask Prometheus about this run" in text_of(browser.get(here).content)
