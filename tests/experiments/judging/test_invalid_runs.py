"""Invalid runs: they enter no verdict, no history, no baseline and no gate, and can be looked at all the same."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from experiments.asking.launching.choices import Choice
from experiments.asking.launching.launch import launch_run
from experiments.judging.comparing.comparison import comparable_runs, compare
from experiments.judging.comparing.history import metric_history
from experiments.judging.gate.decision import run_gate
from experiments.models import Member, Run, Series, Trend
from frontend.shared.baseline import baseline_of
from tests.experiments.finished import finish_next, report, whole_run

INVALID = report(5000.0, errors_connect=1280)


@pytest.fixture
def runs(admin: Member, stock: dict[str, Any]) -> list[Run]:
    """A valid run, an invalid one that claims five times as much, and a valid one."""
    found = []
    for load in (report(1000.0), INVALID, report(1010.0)):
        launch_run(admin, Choice(**stock))
        found.append(finish_next(whole_run(load)))
    assert [run.validity for run in found] == ["valid", "invalid", "valid"]
    assert len({run.fingerprint for run in found}) == 1
    return found


def test_an_invalid_run_is_no_point_of_a_history(runs: list[Run]) -> None:
    history = metric_history(runs[0].team, runs[0].fingerprint, "throughput_rps")
    assert [(point.value, point.runs) for point in history.points] == [(1005.0, (runs[0].number, runs[2].number))]
    trends = Trend.objects.filter(metric="throughput_rps")
    assert [trend.points["value"].tolist() for trend in trends] == [[1000.0, 1010.0]]


def test_a_series_is_led_by_a_run_that_counts(admin: Member, stock: dict[str, Any]) -> None:
    launch_run(admin, Choice(**stock))
    finish_next(whole_run(INVALID))
    assert not Series.objects.exists()
    launch_run(admin, Choice(**stock))
    good = finish_next()
    launch_run(admin, Choice(**stock))
    finish_next(whole_run(INVALID))
    assert Series.objects.get().last_run == good


def test_an_invalid_run_is_no_baseline_and_has_none(runs: list[Run]) -> None:
    first, invalid, last = runs
    baseline = baseline_of(last)
    assert baseline is not None
    assert (baseline.numbers, baseline.figures["throughput_rps"]) == ((first.number,), 1000.0)
    assert baseline_of(invalid) is None


def test_the_gate_fails_an_invalid_run_and_says_why(runs: list[Run]) -> None:
    verdict = run_gate(runs[1])
    assert verdict.outcome == "fail"
    assert any("1,280 connect errors" in reason for reason in verdict.reasons)


def test_a_comparison_says_that_one_of_its_runs_is_invalid(runs: list[Run]) -> None:
    found = compare(comparable_runs(runs[0].team, [run.number for run in runs]))
    assert not found.comparable
    assert any(c.what == "validity" and c.values == ("valid", "invalid", "valid") for c in found.confounders)


def test_an_invalid_run_can_be_looked_at(admin: Member, runs: list[Run], client: Client) -> None:
    client.force_login(admin.user)
    invalid = runs[1]
    for address in ("", "samples?group=cpu", "log"):
        assert client.get(f"/t/perf/runs/{invalid.number}/{address}").status_code == 200
    page = client.get(f"/t/perf/runs/{invalid.number}/").content.decode()
    assert "These figures must not be used." in page
    assert "1,280 connect errors for 16 connections" in page
    assert f"#{invalid.number}" in client.get("/t/perf/runs/?validity=invalid").content.decode()
    assert invalid.samples.exists()
    assert invalid.artifacts.exists()
