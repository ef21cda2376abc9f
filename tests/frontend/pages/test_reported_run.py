"""The page of a run that others measured."""

from __future__ import annotations

import pytest
from django.test import Client

from experiments.asking.intake.ingest import store_results
from experiments.asking.intake.sent_results import OwnFigure, SentResult
from experiments.models import Member
from tests.experiments.api.test_ingest import result
from tests.experiments.conftest import admin, make_member, team
from tests.frontend.flat import flat

__all__ = ["admin", "make_member", "team"]  # fixtures of the use cases


@pytest.mark.django_db
def test_the_page_says_that_nobody_verified_it_and_shows_its_own_figures(admin: Member, client: Client) -> None:
    age = OwnFigure(value=12.5, unit="ms", direction="lower")
    store_results(
        admin,
        [
            SentResult(**result(history="checkout")),
            SentResult(tool="k6", failure="It fell over."),
            SentResult(tool="shop", own_metrics={"cart_age_ms": age}),
        ],
    )
    client.force_login(admin.user)
    page = client.get("/t/perf/runs/1/").content.decode()
    for text in ("Reported by others and not verified", "cart_age_ms", "5,120", "Reported, in bytes"):
        assert text in page, text
    assert "CPUs of server and load tool" not in page
    for card in ("Restore</h2>", "Tuning journal", "Log</h2>"):
        assert card not in page, card
    (line,) = client.get("/t/perf/runs/1/samples").json()["lines"]
    assert (line["channel"], line["values"]) == ("heap.used_bytes", [1e9, 1.1e9, -1])
    assert "It fell over." in client.get("/t/perf/runs/2/").content.decode()
    assert "before it had figures" in flat(client.get("/t/perf/runs/2/").content.decode())
    only_own = client.get("/t/perf/runs/3/").content.decode()
    assert '<div class="stat-value">12.5 ms</div>' in only_own
    assert "before it had figures" not in only_own
    assert "During the run</h2>" in page
    assert "During the run</h2>" not in only_own
    compared = client.get("/t/perf/compare/?runs=1,2")
    assert compared.status_code == 200
    assert compared.context["channels"] == {"heap.used_bytes": "heap.used_bytes"}
    trend = admin.team.series.get()
    assert f'?series={trend.pk}">checkout · gatling 3.14 (reported)</a>' in page
    table = client.get("/t/perf/compare/?runs=1,3&format=csv").content.decode()
    assert "cart_age_ms,ms,lower,-3.5,12.5," in table
    shown = client.get("/t/perf/compare/?runs=1,3&metric=cart_age_ms").content.decode()
    assert "+16.0 ms" in shown
    assert "| cart_age_ms | -3.50 ms | 12.5 ms |" in shown


@pytest.mark.django_db
def test_a_run_without_requests_per_second_is_headed_by_its_own_rate(admin: Member, client: Client) -> None:
    rate = OwnFigure(value=3917.4, unit="transactions/s", direction="higher")
    store_results(
        admin,
        [SentResult(tool="pgbench", metrics={"latency_mean_ms": 1.5}, own_metrics={"transactions_per_s": rate})],
    )
    client.force_login(admin.user)
    page = client.get("/t/perf/runs/1/").content.decode()
    assert '<div class="stat-value">3,917 transactions/s</div>' in page
    assert '<div class="stat-value">1.50 ms</div>' in page
    assert page.index("Transactions") < page.index('<div class="stat-value">1.50 ms</div>')
