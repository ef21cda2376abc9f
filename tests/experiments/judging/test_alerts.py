"""Trends and their alerts: found at the end of a run, and kept with what people said."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from django.apps import apps
from django.core.management import call_command
from django.utils import timezone

from experiments.asking.launching.choices import Choice
from experiments.asking.launching.launch import launch_run
from experiments.judging.alerts import triage as alerts
from experiments.judging.alerts.limits import SeriesLimits, change_limits
from experiments.judging.alerts.trends import WATCHED, follow, line_of, rebuild
from experiments.judging.alerts.wording import sentence
from experiments.judging.evidence.thresholds import change_thresholds
from experiments.models import (
    Alert,
    AuditEntry,
    Experiment,
    Member,
    Recipe,
    Role,
    Run,
    RunEvent,
    Series,
    Trend,
    Variant,
)
from experiments.registry.errors import Conflict, Forbidden, RequestError
from experiments.registry.metrics.own_metrics import metric_named
from experiments.registry.runs.nights import nights_of
from experiments.telling.notifying.alert_mails import tell
from tests.experiments.finished import finish_next, report, whole_run
from tests.experiments.trend_runs import AddRun, nights, noise, the_alert, trend


def test_a_drop_is_suspected_at_once_and_confirmed_with_the_fifth_night(add_run: AddRun) -> None:
    runs = nights(add_run, [1000.0] * 20 + [900.0])

    assert (the_alert().state, the_alert().run_after) == (Alert.State.SUSPECTED, runs[20])
    assert "Suspected" in sentence(the_alert())

    nights(add_run, [900.0] * 4, first_day=21)

    alert = the_alert()
    assert alert.state == Alert.State.CONFIRMED
    assert (alert.run_before, alert.run_after, alert.worse) == (runs[19], runs[20], True)
    assert (alert.n_before, alert.n_after) == (20, 5)
    assert alert.change_ratio == pytest.approx(-0.1, abs=0.01)
    assert sentence(alert).startswith("Throughput fell by ")
    assert f"with run #{runs[20].number}: from " in sentence(alert)


def test_a_rise_in_throughput_is_a_change_for_the_better(add_run: AddRun) -> None:
    nights(add_run, [1000.0] * 12 + [1100.0] * 6)

    assert not the_alert().worse


def test_a_suspicion_that_the_next_runs_do_not_bear_out_is_gone(add_run: AddRun) -> None:
    nights(add_run, [1000.0] * 20 + [900.0])
    assert the_alert().state == Alert.State.SUSPECTED

    nights(add_run, [1000.0] * 4, first_day=21)

    assert not the_alert().stands
    assert alerts.open_count(the_alert().team) == 0


def test_a_suspicion_that_comes_back_is_the_same_alert(add_run: AddRun) -> None:
    nights(add_run, [1000.0] * 20 + [900.0])
    first = the_alert()
    nights(add_run, [1000.0] * 2, first_day=21)
    assert not the_alert().stands
    assert first.run_after is not None
    late = Run.objects.filter(number__gt=first.run_after.number)
    late.update(archived=True)
    rebuild(Series.objects.get())

    nights(add_run, [900.0] * 5, first_day=21)

    assert (the_alert().pk, the_alert().state, the_alert().stands) == (first.pk, Alert.State.CONFIRMED, True)


def test_an_alert_that_was_told_goes_and_is_found_again_without_being_told_twice(
    add_run: AddRun, django_capture_on_commit_callbacks: Callable[..., Any], admin: Member
) -> None:
    Member.objects.update(mails_alerts=True)
    admin.user.email = "ada@example.org"
    admin.user.save()
    runs = nights(add_run, [1000.0] * 20 + [900.0] * 6)
    first = the_alert()
    assert tell(first.pk) == 1
    Run.objects.filter(pk__in=[run.pk for run in runs[20:]]).update(archived=True)
    rebuild(Series.objects.get(), quiet=False)
    assert not the_alert().stands
    Run.objects.update(archived=False)

    rebuild(Series.objects.get(), quiet=False)

    assert (the_alert().pk, the_alert().stands) == (first.pk, True)
    assert tell(first.pk) == 0


def test_a_run_is_never_alerted_twice_even_when_what_it_began_turns_round(add_run: AddRun) -> None:
    runs = nights(add_run, [1000.0] * 20 + [900.0] * 6)
    first = the_alert()
    Run.objects.filter(pk__in=[run.pk for run in runs[:20]]).update(archived=True)
    for day in range(20):
        add_run(day + 0.5, 800.0, followed=False)

    rebuild(Series.objects.get())

    assert the_alert().pk == first.pk
    assert the_alert().rose


def test_the_repetitions_of_a_night_are_one_point(add_run: AddRun) -> None:
    for day in range(20):
        for minute in range(3):
            add_run(day + minute * 10 / 1440, 1000.0)
    for minute in range(3):
        add_run(20 + minute * 10 / 1440, 900.0)

    assert trend().length == 63
    assert len(nights_of(trend().points)) == 21
    assert (the_alert().state, the_alert().n_before, the_alert().n_after) == (Alert.State.SUSPECTED, 20, 1)
    after, before = the_alert().run_after, the_alert().run_before
    assert after is not None
    assert before is not None
    assert after.number == trend().points["number"][60]
    assert before.number == trend().points["number"][59]

    rebuild(Series.objects.get())

    assert len(nights_of(trend().points)) == 21


def test_an_experiments_repetitions_are_one_point_however_long_it_took(
    add_run: AddRun, admin: Member, stock: dict[str, Any]
) -> None:
    nights(add_run, [1000.0] * 6)
    some = Run.objects.exclude(sut=None).first()
    assert some is not None
    experiment = Experiment.objects.create(team=admin.team, name="nightly", workload=stock["workload"])
    variant = Variant.objects.create(
        experiment=experiment,
        name="A",
        position=0,
        is_baseline=True,
        application=stock["application"],
        recipe=stock["recipe"],
        sut=stock["sut"],
        drivers=some.drivers,
    )
    for hour in range(0, 12, 3):
        add_run(6 + hour / 24, 1000.0, experiment=experiment, variant=variant)

    assert len(nights_of(trend().points)) == 7
    rebuild(Series.objects.get())
    assert nights_of(trend().points).count.tolist() == [1] * 6 + [4]


@pytest.mark.parametrize("boots, points", [(("a1", "a1"), 1), (("a1", "b2"), 2)])
def test_single_runs_within_an_hour_are_one_point_when_the_server_was_not_restarted(
    add_run: AddRun, boots: tuple[str, ...], points: int
) -> None:
    for place, boot in enumerate(boots):
        run = add_run(place * 10 / 1440, 1000.0, followed=False)
        payload = {"role": "sut", "boot_id": boot}
        RunEvent.objects.create(
            run=run, seq=1, kind="facts_collected", payload=payload, fence=0, at=run.finished_at or timezone.now()
        )
        follow(run, Series.objects.get())

    assert len(nights_of(trend().points)) == points
    rebuild(Series.objects.get())
    assert len(nights_of(trend().points)) == points


def test_improvements_are_muted_for_one_series_and_losses_are_not(add_run: AddRun, admin: Member) -> None:
    nights(add_run, [1000.0] * 6)
    change_limits(admin, {"history_mutes_improvements": True}, series=Series.objects.get())

    nights(add_run, [1000.0] * 10 + [1100.0] * 8 + [900.0] * 8, first_day=6)

    better, worse = Alert.objects.order_by("after_at_s")
    assert (better.muted, better.worse, worse.muted, worse.worse) == (True, False, False, True)
    assert better.told_at is not None
    assert worse.told_at is None
    assert alerts.open_count(admin.team) == 1
    assert "muted" in sentence(alerts.find_alert(admin.team, better.pk))
    assert list(alerts.AlertFilter().alerts(admin.team)) == [worse]


def test_the_narrowest_limit_counts_and_says_where_it_comes_from(add_run: AddRun, admin: Member) -> None:
    nights(add_run, [1000.0])
    series, p99 = Series.objects.get(), metric_named(admin.team_id, "latency_p99_ms")
    margin = "history_margin_ratio"

    def found() -> tuple[object, str]:
        rows = SeriesLimits.read(Series.objects.get()).of(p99).rows
        return next((row.value, row.origin) for row in rows if row.name == margin)

    assert found() == (0.05, "metric's default")
    change_thresholds(admin, {margin: 0.06})
    assert found() == (0.06, "team")
    change_limits(admin, {margin: 0.07}, metric="latency_p99_ms")
    assert found() == (0.07, "metric")
    change_limits(admin, {margin: 0.08}, series=series)
    assert found() == (0.08, "series")
    change_limits(admin, {margin: 0.09}, series=series, metric="latency_p99_ms")
    assert found() == (0.09, "metric in series")
    change_limits(admin, {margin: None}, series=series, metric="latency_p99_ms")
    assert found() == (0.08, "series")
    with pytest.raises(RequestError, match="history_p"):
        change_limits(admin, {"error_budget_ratio": 0.1}, series=series)
    with pytest.raises(RequestError, match="twice"):
        change_limits(admin, {"history_window": 20, "history_confirmed_after": 30}, series=series)


def test_a_series_confirms_after_as_many_points_as_were_set_for_it(add_run: AddRun, admin: Member) -> None:
    nights(add_run, [1000.0] * 20)
    change_limits(admin, {"history_confirmed_after": 3}, series=Series.objects.get())

    nights(add_run, [900.0] * 3, first_day=20)

    assert the_alert().state == Alert.State.CONFIRMED


@pytest.mark.parametrize(
    "fields",
    [
        {"validity": Run.Validity.INVALID},
        {"outcome": Run.Outcome.FAILED},
        {"archived": True},
        {"metrics": {}},
    ],
)
def test_a_run_that_does_not_count_never_enters(add_run: AddRun, fields: dict[str, Any]) -> None:
    nights(add_run, [1000.0] * 12)
    for day in range(12, 20):
        add_run(day, 500.0, **fields)

    assert trend().length == 12
    assert not Alert.objects.exists()


def test_recipes_and_chosen_parameters_have_trends_of_their_own(add_run: AddRun, stock: dict[str, Any]) -> None:
    recipe = stock["recipe"]
    other = Recipe.objects.create(team=recipe.team, name="other", version=1, body=recipe.body)
    for day in range(12):
        add_run(day, 1000.0)
        add_run(day + 0.1, 700.0, recipe=other)
        add_run(day + 0.2, 400.0, spec={"recipe": {"parameters": {"nofile": 2048}}})

    expected = [("limits", "", 12), ("limits", "nofile=2048", 12), ("other", "", 12)]
    lines = Trend.objects.order_by("recipe", "variation").values_list("recipe", "variation", "length")
    assert list(lines) == expected
    assert not Alert.objects.exists()

    rebuild(Series.objects.get())

    assert list(lines.all()) == expected


def test_a_rate_of_its_own_is_no_part_of_a_history(add_run: AddRun) -> None:
    nights(add_run, [1000.0] * 6)
    add_run(7, 500.0, followed=False, spec={"workload": {"own_rate_rps": 500.0}})

    rebuild(Series.objects.get())

    assert trend().length == 6


def test_a_run_that_is_followed_twice_is_one_point(add_run: AddRun) -> None:
    nights(add_run, [1000.0] * 6)
    follow(Run.objects.get(number=trend().points["number"][2].item()), Series.objects.get())

    assert trend().length == 6
    assert sorted(trend().points["at_s"]) == trend().points["at_s"].tolist()


def test_a_run_ends_even_when_its_trend_cannot_be_read_and_a_rebuild_mends_that(add_run: AddRun) -> None:
    nights(add_run, [1000.0] * 6)
    Trend.objects.update(packed=b"broken")

    add_run(7, 1000.0)

    assert Run.objects.filter(state=Run.State.FINISHED).count() == 7
    rebuild(Series.objects.get())
    assert trend().length == 7


def test_a_default_that_changes_with_the_version_does_not_begin_another_trend(stock: dict[str, Any]) -> None:
    recipe = stock["recipe"]
    newer = Recipe(name=recipe.name, version=2, body={"parameters": {"nofile": {"default": 4096}}})

    assert line_of(recipe, {"nofile": 65535}) == line_of(newer, {"nofile": 4096})
    assert line_of(newer, {"nofile": 65535}).variation == "nofile=65535"
    assert len(line_of(newer, {"nofile": "x" * 500}).variation) <= 200


@pytest.mark.parametrize("state", [state for state in Alert.Triage if state != Alert.Triage.UNTRIAGED])
def test_what_a_person_said_is_kept_when_runs_follow(add_run: AddRun, admin: Member, state: str) -> None:
    nights(add_run, [1000.0] * 20 + [900.0] * 4)
    alerts.triage(admin, the_alert(), state=state, note="kernel update", owner=admin)

    nights(add_run, [900.0] * 8, first_day=24)

    assert (the_alert().triage, the_alert().note, the_alert().owner) == (state, "kernel update", admin.user)
    assert the_alert().n_after == 12


def test_a_late_import_that_moves_the_point_does_not_open_it_again(add_run: AddRun, admin: Member) -> None:
    nights(add_run, [1000.0] * 20 + [900.0] * 6)
    first = the_alert()
    alerts.triage(admin, first, state=Alert.Triage.ACKNOWLEDGED)

    late = add_run(19.5, 900.0)  # an older run at the new level: the jump was one run earlier

    assert the_alert().pk == first.pk
    assert (the_alert().run_after, the_alert().triage) == (late, Alert.Triage.ACKNOWLEDGED)


def test_many_old_runs_between_both_ends_are_still_the_same_change(add_run: AddRun, admin: Member) -> None:
    nights(add_run, [1000.0] * 20 + [900.0] * 6)
    first = the_alert()
    alerts.triage(admin, first, state=Alert.Triage.INFRA)

    late = [add_run(19.05 + step / 20, 900.0) for step in range(18)]

    assert the_alert().pk == first.pk
    assert (the_alert().run_after, the_alert().triage) == (late[0], Alert.Triage.INFRA)


def test_what_the_data_no_longer_show_stays_when_somebody_said_something(add_run: AddRun, admin: Member) -> None:
    before = nights(add_run, [1000.0] * 12 + [900.0] * 6)
    alerts.triage(admin, the_alert(), state=Alert.Triage.FIXED)
    Run.objects.filter(pk__in=[run.pk for run in before[12:]]).update(archived=True)

    rebuild(Series.objects.get())

    assert (the_alert().stands, the_alert().triage) == (False, Alert.Triage.FIXED)
    assert "no longer" in sentence(the_alert())

    Run.objects.update(archived=False)
    rebuild(Series.objects.get())

    assert (the_alert().stands, the_alert().triage) == (True, Alert.Triage.FIXED)


def test_deleting_the_runs_at_a_change_keeps_the_alert_and_its_triage(add_run: AddRun, admin: Member) -> None:
    runs = nights(add_run, [1000.0] * 12 + [900.0] * 8)
    first = the_alert()
    alerts.triage(admin, first, state=Alert.Triage.EXPECTED)
    Run.objects.filter(pk__in=[runs[11].pk, runs[12].pk]).delete()

    call_command("find_changes", team="perf")

    assert the_alert().pk == first.pk
    assert (the_alert().run_before, the_alert().run_after) == (runs[10], runs[13])
    assert the_alert().triage == Alert.Triage.EXPECTED


def test_runs_one_by_one_in_any_order_leave_what_a_rebuild_finds(add_run: AddRun) -> None:
    levels = [1000.0] * 40 + [930.0] * 30 + [1010.0] * 30
    days = list(range(len(levels)))
    for start in range(0, len(days), 10):  # the runs of ten days end in another order than they began
        block = days[start : start + 10]
        noise(start).shuffle(block)
        for day in block:
            add_run(day, levels[day])
    fields = ("run_before_id", "run_after_id", "n_before", "n_after", "p", "mean_after", "state")
    found, windows = list(Alert.objects.order_by("after_at_s").values_list(*fields)), trend().windows
    assert len(found) == 2

    rebuild(Series.objects.get())

    assert list(Alert.objects.order_by("after_at_s").values_list(*fields)) == found
    assert trend().windows == windows


def test_a_run_added_to_a_long_trend_reads_no_other_runs(
    add_run: AddRun, django_assert_max_num_queries: Callable[..., Any]
) -> None:
    nights(add_run, [1000.0] * 30 + [900.0] * 5)
    run = add_run(40, 900.0, followed=False)

    with django_assert_max_num_queries(11) as queries:
        follow(run, Series.objects.get())

    assert not [query["sql"] for query in queries if 'FROM "experiments_run"' in query["sql"]]


def test_the_end_of_an_executed_run_puts_it_into_its_trends(admin: Member, stock: dict[str, Any]) -> None:
    launch_run(admin, Choice(**stock))

    run = finish_next(whole_run(report(1000.0)))

    found = {trend.metric: trend.points["number"].tolist() for trend in Trend.objects.all()}
    assert found == {metric: [run.number] for metric in WATCHED}


def test_only_editors_triage_and_the_audit_trail_says_what(
    add_run: AddRun, admin: Member, make_member: Callable[..., Member], other_admin: Member
) -> None:
    nights(add_run, [1000.0] * 12 + [900.0] * 6)
    with pytest.raises(Forbidden):
        alerts.triage(make_member(admin.team, Role.LAUNCHER), the_alert(), state="fixed")
    for wrong in ({"state": "done"}, {"note": "x" * 5000}, {"owner": other_admin}):
        with pytest.raises(RequestError):
            alerts.triage(admin, the_alert(), **wrong)

    alerts.triage(make_member(admin.team, Role.EDITOR), the_alert(), state="infra", note="switch", owner=admin)
    alerts.triage(admin, the_alert(), unassign=True)

    entries = AuditEntry.objects.filter(action="alert.triage").order_by("pk")
    assert entries[0].before == {"triage": "untriaged", "owner": "", "note": ""}
    assert entries[0].after == {"triage": "infra", "owner": "ada", "note": "switch"}
    assert the_alert().owner is None


def test_an_expected_level_is_the_mean_since_the_change(add_run: AddRun, admin: Member) -> None:
    runs = nights(add_run, [1000.0] * 12 + [900.0] * 6)

    alerts.expect_level(admin, trend())

    assert the_alert().triage == Alert.Triage.EXPECTED
    assert trend().expected_value == the_alert().mean_after
    assert trend().expected_since == runs[12].number


def test_an_expected_level_without_a_change_is_the_mean_of_all(add_run: AddRun, admin: Member) -> None:
    nights(add_run, [1000.0] * 6)

    alerts.expect_level(admin, trend())

    assert trend().expected_value == pytest.approx(1000, rel=0.01)
    Run.objects.update(archived=True)
    rebuild(Series.objects.get())
    with pytest.raises(Conflict):
        alerts.expect_level(admin, trend())


def test_an_old_change_that_is_called_expected_leaves_the_expected_level_alone(add_run: AddRun, admin: Member) -> None:
    nights(add_run, [1000.0] * 12 + [900.0] * 12 + [800.0] * 8)
    first, last = Alert.objects.order_by("after_at_s")
    alerts.triage(admin, last, state="expected")
    level = trend().expected_value

    alerts.triage(admin, first, state="expected")

    assert level == last.mean_after == trend().expected_value


def test_both_runs_of_an_alert_are_compared_by_cause(add_run: AddRun, admin: Member) -> None:
    runs = nights(add_run, [1000.0] * 12 + [900.0] * 6)
    found = alerts.differences(alerts.find_alert(admin.team, the_alert().pk))
    assert found is not None
    assert list(found.runs) == [runs[11], runs[12]]

    runs[11].delete()

    assert alerts.differences(alerts.find_alert(admin.team, the_alert().pk)) is None


def test_trends_of_an_earlier_version_become_points_of_their_variants(add_run: AddRun, admin: Member) -> None:
    migration = import_module("experiments.migrations.0007_history_points")
    nights(add_run, [1000.0] * 3)
    now = trend()
    old = np.array([row[["at_s", "number", "value"]].item() for row in now.points], migration.BEFORE)
    Trend.objects.filter(pk=now.pk).update(packed=old.tobytes())

    migration.name_variants(apps, None)

    assert trend().points.tolist() == now.points.tolist()
    assert trend().windows == []
    migration.forget_variants(apps, None)
    assert np.frombuffer(Trend.objects.get(pk=now.pk).packed, migration.BEFORE).tolist() == old.tolist()
