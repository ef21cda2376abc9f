"""The course of a load: shapes that harm a figure are named, noise and short dips are left alone."""

from __future__ import annotations

import numpy as np
import pytest

from bench.simulations.loads import HARMLESS, courses, healthy, judged
from experiments.analysis.findings import RECORDED, Course
from experiments.analysis.load_shape import steps_of
from experiments.analysis.steady_state import load_was_steady
from experiments.analysis.thresholds import Thresholds
from experiments.judging.evidence.judgement import stalled_s

LIMITS = Thresholds()
SECONDS = np.arange(60)
NOISY = 1000 * np.random.default_rng(4).normal(1, 0.02, 60)


@pytest.mark.parametrize(
    ("share", "level", "words"),
    [
        (np.where(SECONDS < 20, 0.5, 1.0), "invalid", "The warm-up was not over: in the first 20 s of 60 s"),
        (np.where(SECONDS < 25, 1.0, 0.0), "invalid", "The load was dead from 25 s on, for 35 s of 60 s."),
        (np.where(SECONDS < 25, 0.0, 1.0), "invalid", "The load began only after 25 s of 60 s."),
        ((SECONDS + 0.5) / 60, "invalid", "it rose all along the 60 s, by 100 % of its highest rate"),
        (1 - SECONDS / 65, "invalid", "it fell all along the 60 s"),
        (np.where((SECONDS > 19) & (SECONDS < 24), 0.0, 1.0), "warn", "stood still for 4 s of 60 s: from 20 to 24 s"),
        (np.where((SECONDS > 9) & (SECONDS < 26), 0.0, 1.0), "invalid", "stood still for 16 s of 60 s: from 10"),
        (np.where(SECONDS >= 50, 0.9, 1.0), "warn", "The load jumped at 50 s: from then on it was 10 % below"),
        (np.where(SECONDS >= 42, 2.0, 1.0), "invalid", "The load jumped at 42 s: it came to its level only then"),
        (np.where((SECONDS > 19) & (SECONDS < 30), 0.6, 1.0), "warn", "From 20 s to 30 s the load was 40 % below"),
        (np.where(SECONDS % 12 < 6, 1.0, 0.6), "invalid", "it went up and down, 10 times in 60 s"),
        (np.where(SECONDS % 10 == 4, 0.3, 1.0), "warn", "The load dipped 6 times in 60 s"),
        (np.where(SECONDS % 30 == 4, 0.6, 1.0), "ok", "The load was steady"),
        (np.ones(60), "ok", "The load was steady"),
    ],
    ids=[
        "half rate for 20 s", "dead after 25 s", "dead until 25 s", "a rise from nothing", "a fall", "a gap",
        "a long gap",
        "a drop at the end", "twice as much at the end", "lower for a while", "two levels", "many pauses",
        "a short pause now and then", "noise alone",
    ],
)  # fmt: skip
def test_a_course_is_named_for_what_it_is(share: np.ndarray, level: str, words: str) -> None:
    values = (NOISY * share).tolist()
    found = load_was_steady(Course(RECORDED, (SECONDS + 0.5).tolist(), values, 1.0, complete=True), 60.0, LIMITS)
    assert (found.level, words in found.sentence) == (level, True), found.sentence


def test_a_drift_that_is_within_the_noise_is_not_told_as_one() -> None:
    values = 1000 * np.random.default_rng(8).normal(1, 0.15, 60)
    found = load_was_steady(
        Course(RECORDED, (SECONDS + 0.5).tolist(), values.tolist(), 1.0, complete=True), 60.0, LIMITS
    )
    assert found.level == "ok"
    assert "it drifted by" not in found.sentence


def test_seconds_without_a_request_are_dead_time_where_every_request_is_recorded() -> None:
    at_s = [at for at in (SECONDS + 0.5).tolist() if not 20 <= at < 36]
    for complete, level in ((True, "invalid"), (False, "ok")):
        found = load_was_steady(Course(RECORDED, at_s, [1000.0] * len(at_s), 1.0, complete=complete), 60.0, LIMITS)
        assert found.level == level, found.sentence


def test_the_seconds_in_which_a_tool_starts_and_ends_are_no_dead_time_of_packets() -> None:
    packets = [0.0, 0.0, 400.0, *[1000.0] * 56, 0.0]
    assert load_was_steady(Course("packets", (SECONDS + 0.5).tolist(), packets, 1.0), 60.0, LIMITS).level == "ok"


def test_answers_that_come_all_at_once_are_no_gaps() -> None:
    """Ten users with answers of 5 s: nothing arrives in four of five seconds."""
    bursts = np.where(np.arange(300) % 5 == 0, 500.0, 0.0)
    course = Course(RECORDED, (np.arange(300) + 0.5).tolist(), bursts.tolist(), 1.0, complete=True)
    assert load_was_steady(course, 300.0, LIMITS).level == "invalid"
    assert load_was_steady(course, 300.0, LIMITS, least_step_s=10.0).level == "ok"


def test_a_slow_load_is_looked_at_in_steps_that_chance_leaves_none_of_empty() -> None:
    counts = np.random.default_rng(2).poisson(2.0, 300).astype(float)
    course = Course(RECORDED, (np.arange(300) + 0.5).tolist(), counts.tolist(), 1.0, complete=True)
    assert steps_of(course, 300.0).step_s >= 5
    assert load_was_steady(course, 300.0, LIMITS).level == "ok"


@pytest.mark.parametrize(
    ("rates", "stalled"),
    [([1000.0] * 60, 0.0), ([1000.0] * 25 + [0.0] * 35, 35.0), ([1000.0] * 2 + [1.0] * 58, 58.0), ([0.0] * 60, None)],
)
def test_a_load_that_was_off_for_most_of_the_window_stood_still(rates: list[float], stalled: float | None) -> None:
    assert stalled_s((SECONDS + 0.5).tolist(), rates, 60.0) == stalled


@pytest.mark.parametrize(("first_s", "stalled"), [(0.02, 0.0), (0.4, 0.0), (0.9, 1.0)])
def test_a_sample_of_the_time_before_the_load_is_no_stall(first_s: float, stalled: float) -> None:
    """A window of 6 s, a sample a second: of the first one `first_s` lie in the window, the rest was quiet."""
    assert stalled_s((SECONDS[:8] + first_s).tolist(), [0.0] + [1000.0] * 7, 6.0) == pytest.approx(stalled)


def test_the_simulated_shapes_are_told_from_noise() -> None:
    aims = {aim.what: aim.ours for aim in courses(np.random.default_rng(1), 30)}
    shapes = {what: ours for what, ours in aims.items() if not what.startswith(("healthy", "all"))}
    assert len(shapes) >= 10
    assert min(shapes.values()) > 0.97


def test_noise_is_left_alone() -> None:
    random = np.random.default_rng(6)
    flagged = sum(
        judged(healthy(60, "white", 0.03, random), "packets each second", random).level not in HARMLESS
        for _ in range(200)
    )
    assert flagged <= 4
