"""The read side: series, comparison, and a configuration difference that names exactly what was changed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from experiments.asking.intake.imports import import_reports
from experiments.asking.launching.choices import Candidate, Choice
from experiments.asking.launching.creating import create_experiment
from experiments.asking.launching.launch import launch_run
from experiments.judging.alerts.telling_series import telling_series
from experiments.judging.comparing.comparison import comparable_runs, compare
from experiments.judging.comparing.history import metric_history, series_of, thinned_history
from experiments.judging.comparing.lines import line_names
from experiments.models import Alert, Member, Recipe, Run, Trend, Workload
from experiments.registry.documents.versions import save_version
from experiments.registry.errors import RequestError
from tests.experiments.conftest import WORKLOAD
from tests.experiments.finished import finish_next, report, whole_run
from tests.experiments.trend_runs import AddRun

CASES = Path(__file__).parents[2] / "agents/cases/wrk2"


def test_a_series_is_the_history_of_one_fingerprint(admin: Member, stock: dict[str, Any]) -> None:
    other = save_version(admin, Workload, "other", {**WORKLOAD, "path": "/other"})
    for throughput in (1000.0, 1100.0, 900.0):
        launch_run(admin, Choice(**stock))
        finish_next(whole_run(report(throughput)))
    launch_run(admin, Choice(**stock))
    finish_next(whole_run(report(5000.0, errors_connect=1280)))
    launch_run(admin, Choice(**{**stock, "workload": other}))
    elsewhere = finish_next()
    newest, first = series_of(admin.team)
    assert (newest.fingerprint, newest.workload) == (elsewhere.fingerprint, "other v1")
    assert (first.application, first.workload, first.tool) == ("tomcat v1", "home page v1", "wrk 4.2.0")
    history = metric_history(admin.team, first.fingerprint, "throughput_rps")
    (night,) = history.points
    assert (night.number, night.value, night.runs, night.spread) == (1, 1000.0, (1, 2, 3), 100.0)
    assert not history.truncated
    short = metric_history(admin.team, first.fingerprint, "latency_p99_ms", limit=2)
    assert [point.runs for point in short.points] == [(1, 2, 3)]
    assert short.truncated
    assert metric_history(admin.team, first.fingerprint, "throughput_rps", recipe="none").points == ()
    with pytest.raises(RequestError, match="no metric"):
        metric_history(admin.team, first.fingerprint, "speed")


def a_series(admin: Member, stock: dict[str, Any], count: int) -> None:
    """Finished runs #1 to #count of one fingerprint, worth their numbers; every seventh is invalid."""
    Run.objects.bulk_create(
        Run(
            team=admin.team,
            number=number,
            fingerprint="f" * 64,
            recipe=stock["recipe"] if number % 2 else None,
            state="finished",
            outcome="succeeded",
            validity="valid" if number % 7 else "invalid",
            metrics={"throughput_rps": float(number)},
            finished_at=datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=number),
        )
        for number in range(1, count + 1)
    )


def test_a_long_series_is_shown_evenly_thinned(admin: Member, stock: dict[str, Any]) -> None:
    a_series(admin, stock, 300)
    history = thinned_history(admin.team, "f" * 64, "throughput_rps", keep=[2, 7], most=20)
    found = [point.number for point in history.points]
    assert history.thinned
    assert not history.truncated
    assert found == sorted(set(found))
    assert {1, 2, 300} <= set(found)
    assert not [number for number in found if number % 7 == 0]  # #7 was asked for, but does not count
    assert 20 <= len(found) <= 22
    assert max(after - before for before, after in pairwise(found)) < 2 * 300 / 20
    assert [point.value for point in history.points] == [float(number) for number in found]


def test_a_part_of_a_long_series_shows_every_run(admin: Member, stock: dict[str, Any]) -> None:
    a_series(admin, stock, 60)
    since = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=50)
    history = thinned_history(
        admin.team, "f" * 64, "throughput_rps", since=since, until=since + timedelta(hours=4), most=20
    )
    assert [point.number for point in history.points] == [50, 51, 52, 53]
    assert not history.thinned
    of_recipe = thinned_history(admin.team, "f" * 64, "throughput_rps", recipe="limits", most=10)
    assert of_recipe.thinned
    assert all(point.number % 2 for point in of_recipe.points)


def test_a_thinned_series_costs_the_same_queries_whatever_its_length(
    admin: Member, stock: dict[str, Any], django_assert_num_queries: Any
) -> None:
    a_series(admin, stock, 100)
    for most in (10, 100):
        with django_assert_num_queries(3):
            thinned_history(admin.team, "f" * 64, "throughput_rps", most=most)


def test_the_repetitions_of_a_night_are_one_point_of_the_chart(
    admin: Member, add_run: AddRun, django_assert_num_queries: Any
) -> None:
    runs = [add_run(day + minute / 1440, 1000.0) for day in range(30) for minute in (0, 10, 20)]
    suspect = Run.objects.filter(pk=runs[4].pk)
    suspect.update(validity="suspect", metrics={"throughput_rps": 1060.0, "sut_cpu_ratio": 0.5})

    for most in (10, 30):
        with django_assert_num_queries(4):
            thinned_history(admin.team, "f" * 64, "throughput_rps", most=most)
    history = thinned_history(admin.team, "f" * 64, "throughput_rps")
    assert [point.runs for point in history.points] == [
        tuple(run.number for run in runs[place : place + 3]) for place in range(0, 90, 3)
    ]
    second = history.points[1]
    assert (second.validity, second.number) == ("suspect", runs[3].number)
    assert second.spread is not None
    assert second.spread > 10
    thinned = thinned_history(admin.team, "f" * 64, "throughput_rps", most=10)
    assert all(len(point.runs) == 3 for point in thinned.points)
    assert thinned.points[0].value == history.points[0].value


def line_of(admin: Member, metric: str = "throughput_rps") -> list[str]:
    return line_names(thinned_history(admin.team, "f" * 64, metric).points, unnamed="none")


def test_other_parameters_are_another_line_and_the_defaults_none_of_their_own(admin: Member, add_run: AddRun) -> None:
    spec = Run.objects.filter(spec__isnull=False)[0].spec
    assert spec is not None
    for day in range(2):
        for nofile in (1024, 2048):
            changed = {**spec, "recipe": {**spec["recipe"], "parameters": {"nofile": nofile}}}
            add_run(
                day + nofile / 1e5, 1000.0 + nofile, spec=changed, metrics={"throughput_rps": 1.0, "sut_cpu_ratio": 1}
            )
    assert line_of(admin) == ["limits · nofile=1024", "limits · nofile=2048"] * 2
    assert line_of(admin, "sut_cpu_ratio") == line_of(admin)  # a figure that is in no trend


def test_variants_of_one_experiment_are_lines_of_their_own(
    admin: Member, add_run: AddRun, stock: dict[str, Any]
) -> None:
    hosts = {"sut": stock["sut"], "drivers": stock["drivers"]}
    same = [Candidate(name, stock["application"], stock["recipe"], **hosts) for name in ("old JVM", "new JVM")]
    for night in range(2):
        made = create_experiment(admin, name="nightly", workload=stock["workload"], candidates=same)
        for block in range(2):
            for variant in made.variants.order_by("position"):
                add_run(night + block / 1000, 1000.0, experiment=made, variant=variant)
    add_run(5, 1000.0)
    assert line_of(admin) == ["limits · old JVM", "limits · new JVM"] * 2 + ["limits"]


def test_the_series_to_open_is_the_one_that_tells_something(admin: Member, add_run: AddRun) -> None:
    def opened() -> str:
        found = telling_series(admin.team, series_of(admin.team))
        return found.fingerprint[0] if found else ""

    assert opened() == ""
    for day in range(3):
        add_run(day, 1000.0, fingerprint="a" * 64)
    add_run(10, 1000.0, fingerprint="b" * 64)
    add_run(11, 1000.0, fingerprint="c" * 64, validity=Run.Validity.INVALID)
    assert [one.fingerprint[0] for one in series_of(admin.team)] == ["c", "b", "a"]
    assert opened() == "a"  # three nights are a history; one run is none, and of an invalid one nothing is shown
    for day in range(3):
        add_run(20 + day, 1000.0, fingerprint="b" * 64)
    assert opened() == "b"  # both have one: the newest
    trend = Trend.objects.get(series__fingerprint="a" * 64, metric="throughput_rps")
    change = Alert.objects.create(team=admin.team, trend=trend, state="confirmed", before_at_s=0.0)
    assert opened() == "a"
    Alert.objects.filter(pk=change.pk).update(triage=Alert.Triage.EXPECTED)
    assert opened() == "b"


def test_another_team_sees_nothing_of_it(admin: Member, other_admin: Member, stock: dict[str, Any]) -> None:
    launch_run(admin, Choice(**stock))
    run = finish_next()
    assert series_of(other_admin.team) == []
    assert metric_history(other_admin.team, run.fingerprint, "throughput_rps").points == ()
    with pytest.raises(RequestError, match="There is no run #1"):
        comparable_runs(other_admin.team, [1])


BASE = {"process.limits.nofile": "1024", "sysctl.vm.swappiness": "60", "cpu.0.mhz": "2400", "jvm.version": "17"}


def test_a_comparison_names_the_change_that_was_made_and_the_one_that_was_not(
    admin: Member, stock: dict[str, Any]
) -> None:
    sides = [(1024, 1000.0, BASE), (4096, 1200.0, {**BASE, "process.limits.nofile": "4096", "cpu.0.mhz": "2500"})]
    drifted = {**BASE, "jvm.version": "17.0.1"}
    for nofile, throughput, configuration in [*sides, (1024, 990.0, drifted)]:
        launch_run(admin, Choice(**stock, parameters={"nofile": nofile}))
        finish_next(whole_run(report(throughput), configuration=configuration))
    found = compare(comparable_runs(admin.team, [1, 2]))
    assert found.comparable
    assert found.confounders == ()
    assert [d.path for d in found.configuration.asked] == ["process.limits.nofile"]
    assert found.configuration.asked[0].values == ("1024", "4096")
    assert found.configuration.drift == ()
    assert [d.path for d in found.configuration.noise] == ["cpu.0.mhz"]
    throughput_row = next(row for row in found.rows if row.metric.name == "throughput_rps")
    assert throughput_row.values == (1000.0, 1200.0)
    assert [change and round(change, 6) for change in throughput_row.changes_pct] == [None, 20.0]
    same_recipe = compare(comparable_runs(admin.team, [1, 3]))
    assert same_recipe.configuration.asked == ()
    assert [d.path for d in same_recipe.configuration.drift] == ["jvm.version"]


def test_a_comparison_first_says_what_else_differs(admin: Member, stock: dict[str, Any]) -> None:
    other = save_version(admin, Workload, "other", WORKLOAD)
    recipe = save_version(admin, Recipe, "nothing", {"steps": []})
    for choice in (Choice(**stock), Choice(**{**stock, "workload": other, "recipe": recipe})):
        launch_run(admin, choice)
        finish_next()
    found = compare(comparable_runs(admin.team, [2, 1]))
    assert [run.number for run in found.runs] == [2, 1]
    assert not found.comparable
    assert [(c.what, c.values) for c in found.confounders] == [("workload", ("other v1", "home page v1"))]


@pytest.mark.parametrize("numbers", [[1], list(range(1, 12))])
def test_two_to_ten_runs_are_compared(admin: Member, numbers: list[int]) -> None:
    for number in numbers:
        Run.objects.create(team=admin.team, number=number, state="finished")
    with pytest.raises(RequestError, match="between 2 and 10"):
        compare(comparable_runs(admin.team, numbers))


def test_the_published_runs_with_connect_errors_come_out_invalid_with_the_reason(admin: Member) -> None:
    runs = {
        name: import_reports(admin, kind="wrk2", text=(CASES / f"published-{name}.txt").read_text())[0]
        for name in ("default", "no-access-log", "seven-threads")
    }
    assert {name: round(run.throughput_rps or 0) for name, run in runs.items()} == {
        "default": 50517,
        "no-access-log": 59452,
        "seven-threads": 154479,
    }
    for name in ("default", "no-access-log"):
        run = runs[name]
        assert (run.validity, run.outcome, run.errors_total) == ("invalid", "succeeded", run.metrics["errors_total"])
        sentences = [finding["sentence"] for finding in run.findings if finding["level"] == "invalid"]
        assert any("1280" in sentence or "1,280" in sentence for sentence in sentences), sentences
    assert runs["seven-threads"].validity != "invalid"
    found = compare(comparable_runs(admin.team, [1, 3]))
    assert "validity" in [confounder.what for confounder in found.confounders]
    series = series_of(admin.team)
    assert len(series) == 1
    points = metric_history(admin.team, series[0].fingerprint, "throughput_rps").points
    assert [point.number for point in points] == [3]
