"""Data that stop coming: one alert, which new data end."""

from __future__ import annotations

import pytest

from experiments.judging.alerts.missing import raise_missing, usual_interval_s
from experiments.judging.alerts.wording import sentence, title
from experiments.models import Alert
from tests.experiments.trend_runs import AddRun, ago, nights, the_alert, trend


@pytest.mark.parametrize(
    "hours, usual_h",
    [
        ([24.0] * 9, 24.0),
        ([24.0] * 8 + [72.0], 24.0),
        ([24.0] * 4, None),
        ([1.0, 300.0, 2.0, 50.0, 700.0, 3.0, 90.0], None),
    ],
)
def test_a_regular_interval_needs_enough_occasions_that_are_alike(hours: list[float], usual_h: float | None) -> None:
    at_s = [0.0]
    for hour in hours:
        at_s.append(at_s[-1] + hour * 3600)

    assert usual_interval_s(at_s) == (usual_h * 3600 if usual_h else None)


def test_data_that_stop_coming_raise_one_alert_and_new_data_end_it(add_run: AddRun) -> None:
    runs = nights(add_run, [1000.0] * 10, first_day=ago(14))
    assert raise_missing() == 1
    assert raise_missing() == 0
    alert = the_alert()
    assert (alert.kind, alert.run_before) == (Alert.Kind.MISSING, runs[-1])
    assert "one about every 24 hours" in sentence(alert)

    add_run(ago(0.1), 1000.0)

    assert not Alert.objects.exists()
    assert trend().due_at is not None


def test_data_that_are_late_but_not_three_times_late_raise_nothing(add_run: AddRun) -> None:
    nights(add_run, [1000.0] * 10, first_day=ago(11.5))

    assert raise_missing() == 0


def test_the_repetitions_of_one_night_are_one_occasion(add_run: AddRun) -> None:
    for night in range(8):
        for repetition in range(5):
            add_run(ago(9 - night) + repetition / 1000, 1000.0)

    assert len(trend().occasions_s) == 8
    assert raise_missing() == 0


def test_a_history_that_goes_on_in_another_series_is_not_missing(add_run: AddRun) -> None:
    nights(add_run, [1000.0] * 10, first_day=ago(14))
    add_run(ago(1), 1000.0, fingerprint="e" * 64)

    assert raise_missing() == 0


BOTH = {"throughput_rps": 1000.0, "latency_p99_ms": 8.0}


def test_all_figures_that_stop_together_are_one_alert(add_run: AddRun) -> None:
    for night in range(10):
        add_run(ago(14 - night), 1000.0, metrics=BOTH)

    assert raise_missing() == 1
    assert the_alert().trend.metric == "throughput_rps"


def test_a_figure_that_stops_while_runs_go_on_is_missed_until_it_is_back(add_run: AddRun) -> None:
    for night in range(14):
        add_run(ago(14 - night), 1000.0, **({"metrics": BOTH} if night < 9 else {}))

    assert raise_missing() == 1
    assert the_alert().trend.metric == "latency_p99_ms"
    assert title(the_alert()) == "No more data of Latency, p99: app, load"
    assert "gave no figure of Latency, p99" in sentence(the_alert())

    add_run(ago(0.1), 1000.0, metrics=BOTH)

    assert not Alert.objects.exists()


def test_a_figure_that_does_not_come_back_with_the_others_is_overdue_again(add_run: AddRun) -> None:
    for night in range(10):
        add_run(ago(20 - night), 1000.0, metrics=BOTH)
    raise_missing()

    for night in range(5):
        add_run(ago(5 - night), 1000.0)

    assert not Alert.objects.exists()
    assert raise_missing() == 1
    assert the_alert().trend.metric == "latency_p99_ms"
