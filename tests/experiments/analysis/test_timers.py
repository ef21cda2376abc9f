"""Timers compared over CPU counts."""

from __future__ import annotations

import pytest

from experiments.analysis.timers import TimerColumn, Timing, compare_timers, sentence

ONE = TimerColumn("1 CPU", {"commit": Timing(100, 1744.0), "read": Timing(1000, 800.0), "gone": Timing(5, 5.0)})
FOUR = TimerColumn("4 CPUs", {"commit": Timing(300, 8292.0), "read": Timing(9000, 8100.0), "new": Timing(3, 9.0)})


def test_the_biggest_growth_comes_first_and_what_is_missing_last() -> None:
    rows = compare_timers([ONE, FOUR])
    assert [row.action for row in rows] == ["commit", "read", "gone", "new"]
    assert [row.ratio for row in rows] == [pytest.approx(1.585, abs=1e-3), pytest.approx(1.125), None, None]
    assert rows[0].added_ms == pytest.approx((27.64 - 17.44) * 300)
    assert rows[3].timings == (None, Timing(3, 9.0))


def test_the_sentence_names_what_grew_most_and_what_costs_most() -> None:
    assert sentence([ONE, FOUR], compare_timers([ONE, FOUR])) == (
        "From 1 CPU to 4 CPUs commit grew most: 17.4 → 27.6 ms per call (1.58 times)."
    )
    many = TimerColumn("4 CPUs", {**FOUR.timings, "read": Timing(90_000, 90_000.0)})
    text = sentence([ONE, many], compare_timers([ONE, many]))
    assert text.endswith("read costs most in all: 0.8 → 1 ms per call, 18.0 s more.")


@pytest.mark.parametrize("columns", [[], [ONE], [ONE, TimerColumn("none", {})]])
def test_there_is_no_sentence_without_two_columns_that_share_an_action(columns: list[TimerColumn]) -> None:
    assert sentence(columns, compare_timers(columns)) == ""


def test_timers_that_shrink_are_said_to() -> None:
    less = TimerColumn("2 CPUs", {"commit": Timing(100, 1500.0), "read": Timing(1000, 700.0)})
    assert sentence([ONE, less], compare_timers([ONE, less])) == "From 1 CPU to 2 CPUs no action takes longer per call."


def test_an_action_that_never_ran_has_no_time_per_call() -> None:
    (row,) = compare_timers([TimerColumn("a", {"x": Timing(0, 0.0)}), TimerColumn("b", {"x": Timing(1, 2.0)})])
    assert (row.ratio, row.added_ms) == (None, None)
