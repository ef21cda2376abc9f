"""The Overview: first steps until they are done or dismissed, pinned trends, hosts by state."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from django.utils import timezone

from experiments.models import AuditEntry, Experiment, Host, Member, PinnedTrend, Role, Series, Trend
from experiments.telling.overview.first_steps import first_steps
from frontend.pages.overview import views
from tests.experiments.conftest import MakeMember, admin, make_member, stock, team
from tests.frontend.conftest import MakeRun, make_run
from tests.frontend.flat import flat
from tests.frontend.pages.test_runs import add_runs
from tests.frontend.test_forms_access import address, signed_in

__all__ = ["admin", "make_member", "make_run", "stock", "team"]


@pytest.fixture
def trend(admin: Member) -> Trend:
    series = Series.objects.create(
        team=admin.team, fingerprint="f" * 64, application="tomcat", workload="w", tool="wrk"
    )
    trend = Trend(series=series, recipe="limits", metric="latency_p99_ms")
    trend.points = np.array([(1.0, 1, 5.0, 0), (9000.0, 2, 7.5, 0)], dtype=Trend.POINT)
    trend.save()
    return trend


def done(member: Member) -> list[bool]:
    found = first_steps(member)
    assert found is not None
    return [found.hosts, found.documents, found.run, found.experiment, found.others]


def test_the_steps_are_ticked_as_they_are_taken(admin: Member, make_member: MakeMember, request: Any) -> None:
    assert done(admin) == [False] * 5
    stock = request.getfixturevalue("stock")
    assert done(admin) == [True, True, False, False, False]
    add_runs(admin, stock, 1)
    Experiment.objects.create(team=admin.team, name="E", workload=stock["workload"])
    assert done(admin) == [True, True, True, True, False]
    page = signed_in(admin).get(address("overview", admin.team)).content.decode()
    assert ("First steps" in page, page.count('aria-label="done"')) == (True, 4)
    make_member(admin.team, Role.VIEWER)
    assert first_steps(admin) is None


def test_the_steps_are_dismissed_for_good_and_for_oneself_alone(admin: Member, make_member: MakeMember) -> None:
    other, viewer = make_member(admin.team, Role.EDITOR), make_member(admin.team, Role.VIEWER)
    client = signed_in(admin)
    client.post(address("no_first_steps", admin.team))
    assert "First steps" not in client.get(address("overview", admin.team)).content.decode()
    assert "First steps" in signed_in(other).get(address("overview", admin.team)).content.decode()
    assert "First steps" not in signed_in(viewer).get(address("overview", admin.team)).content.decode()


def test_a_trend_is_pinned_and_unpinned(admin: Member, make_member: MakeMember, trend: Trend) -> None:
    client, url = signed_in(admin), address("pin_trend", admin.team, trend.pk)
    for _ in range(2):
        client.post(url)
    page = client.get(address("overview", admin.team)).content.decode()
    assert "Pinned trends" in page
    assert re.search(r"Latency, p99</a>.*tomcat · w · limits.*7\.50? ms", page, re.S)
    assert signed_in(make_member(admin.team, Role.VIEWER)).post(url).status_code == 403
    client.post(url, {"off": ""})
    assert not PinnedTrend.objects.exists()
    assert [entry.action for entry in AuditEntry.objects.order_by("pk")] == ["trend.pin", "trend.unpin"]


def test_trends_offers_to_pin_each_line(admin: Member, trend: Trend) -> None:
    page = signed_in(admin).get(f"{address('trends', admin.team)}?series={trend.series_id}&metric=latency_p99_ms")
    assert address("pin_trend", admin.team, trend.pk) in page.content.decode()


def test_hosts_that_need_somebody_come_first_and_each_state_is_counted(admin: Member, stock: dict[str, Any]) -> None:
    Host.objects.filter(name="sut-1").update(state=Host.State.DIRTY)
    context = signed_in(admin).get(address("overview", admin.team)).context
    assert context["host_states"] == [("dirty", 1), ("ready", 1)]
    assert [host.name for host in context["hosts"]] == ["sut-1", "driver-1"]


def test_a_run_that_is_under_way_says_how_far_it_is(admin: Member, make_run: MakeRun) -> None:
    run = make_run(state="measuring", started_at=timezone.now() - timedelta(seconds=5), events=())
    page = signed_in(admin).get(address("overview", admin.team) + "?part=running")
    (running,) = page.context["running"]
    assert 0 < running.done_pct < 100
    assert f'aria-label="Run #{run.number}, by its estimate"' in page.content.decode()


def test_of_many_runs_under_way_the_first_are_shown_and_the_rest_counted(
    admin: Member, make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(views, "MOST_RUNNING", 2)
    began = timezone.now() - timedelta(seconds=5)
    shown = [make_run(state="measuring", started_at=began + timedelta(seconds=at), events=()) for at in range(3)]
    for state in ("queued", "queued", "finished"):
        make_run(state=state, events=())
    page = signed_in(admin).get(address("overview", admin.team) + "?part=running")
    assert [one.run for one in page.context["running"]] == shown[:2]
    assert [one.done_pct is not None for one in page.context["running"]] == [True, True]
    text = flat(page.content.decode())
    assert "2 waiting" in text
    assert "1 more" in text
