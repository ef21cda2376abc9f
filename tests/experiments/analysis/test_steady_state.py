"""Warm-up and steady state: the published example, made-up courses with a known answer, and false alarms in noise."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from experiments.analysis.findings import Course
from experiments.analysis.steady_state import Verdict, batch_means, examine, load_was_steady, warm_up_of
from experiments.analysis.thresholds import Thresholds

EXAMPLES = json.loads((Path(__file__).parent / "worked_examples.json").read_text())["A14_steady"]
LIMITS = Thresholds()


def noise(count: int, cov: float = 0.01, seed: int = 7) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.random.default_rng(seed).normal(1.0, cov, count)


def course(values: Sequence[float], step_s: float = 1.0) -> Course:
    return Course("requests/s as JMeter saw them", [i * step_s for i in range(len(values))], list(values))


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_worked_example_comes_out_to_the_printed_digit(example: dict[str, object]) -> None:
    z = example["z"]
    assert isinstance(z, list)
    seen = examine(z)
    assert seen.warm_up_batches == example["d"]
    assert round(seen.mean, 1) == example["mean"]
    assert list(seen.changes) == example["cps"]
    assert round(seen.drift_ratio, 4) == example["rel_drift"]
    assert seen.ok == example["ok"]


EXPONENTIAL = 1 - 0.5 * np.exp(-np.arange(24) / 20)


@pytest.mark.parametrize(
    ("batches", "verdict"),
    [
        (noise(24), "steady"),
        (noise(60), "steady"),
        ([5.0] * 12, "steady"),
        ([0.0] * 12, "steady"),
        (EXPONENTIAL * noise(24, 0.002), "warming_up"),
        ([0.5] * 12 + [1.0] * 12, "warming_up"),
        (np.concatenate([np.ones(16), 0.9 * np.ones(8)]) * noise(24, 0.003), "unsteady"),
        (np.concatenate([np.ones(20), 0.9 * np.ones(6), np.ones(10)]) * noise(36, 0.003), "unsteady"),
        (np.linspace(0.95, 1.0, 30) * noise(30, 0.004), "unsteady"),
        (np.concatenate([np.ones(14), np.linspace(1.0, 0.97, 14)]) * noise(28, 0.002), "unsteady"),
        (np.linspace(1.0, 0.99, 30) * noise(30, 0.002), "steady"),
        (noise(5), "too_short"),
        ([], "too_short"),
    ],
    ids=[
        "noise", "long noise", "constant", "nothing", "exponential warm-up", "half of it slow", "a drop late", "a dip",
        "a rise all along", "a decline in the end", "a trend too small to matter", "five batches", "no batch",
    ],
)  # fmt: skip
def test_a_course_with_a_known_answer(batches: Sequence[float], verdict: Verdict) -> None:
    assert examine(list(batches)).verdict == verdict


def test_the_change_finder_is_passed_in_and_its_places_count_from_the_first_batch() -> None:
    z = [0.2, 0.3, *([1.0, 1.01, 0.99] * 5)]
    seen = examine(z, find=lambda rest, ratio: [4])
    assert (seen.verdict, seen.warm_up_batches, seen.changes) == ("unsteady", 2, (6,))


@pytest.mark.parametrize("m", [12, 24])
def test_noise_alone_is_hardly_ever_called_a_warm_up(m: int) -> None:
    random = np.random.default_rng(20250811)
    windows = [random.normal(1.0, 0.02, m).tolist() for _ in range(400)]
    by_mser_alone = sum(warm_up_of(z) >= m // 2 for z in windows)
    by_us = sum(examine(z, find=lambda rest, ratio: []).verdict == "warming_up" for z in windows)
    assert by_us <= 4  # 1 %
    assert by_us <= by_mser_alone


def test_batches_are_whole_and_have_samples() -> None:
    at_s = [-2.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.5, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0]
    values = [99.0, 1, 1, 1, 1, 1, 7, 7, 3, 3, 3, 3, 3, 9, 9]
    # The second batch has 2 of 5 samples, the fourth one is beyond the last whole batch.
    assert batch_means(at_s, values, 17.0) == [1.0, 3.0]


@pytest.mark.parametrize(
    ("given", "window_s", "level", "words"),
    [
        (None, 60.0, "skipped", "no series of the load"),
        (course((noise(60) * 1000).tolist()), None, "skipped", "no series of the load"),
        (course((noise(30) * 1000).tolist()), 25.0, "skipped", "the window has 5 batches of 5 s"),
        (course((noise(120, 0.01) * 1000).tolist()), 120.0, "ok", "(requests/s as JMeter saw them)"),
        (
            course([500.0] * 60 + [1000.0] * 60),
            120.0,
            "invalid",
            "The warm-up was not over: in the first 60 s of 120 s",
        ),
        (course([1000.0] * 80 + [900.0] * 40), 120.0, "warn", "The load jumped at 80 s"),
    ],
)
def test_the_finding_says_what_was_looked_at(
    given: Course | None, window_s: float | None, level: str, words: str
) -> None:
    found = load_was_steady(given, window_s, LIMITS)
    assert (found.level, words in found.sentence) == (level, True), found.sentence
    assert found.sentence.endswith(".")


def test_a_team_may_tolerate_more() -> None:
    drop, slow_start = course([1000.0] * 80 + [970.0] * 40), course([970.0] * 60 + [1000.0] * 60)
    assert load_was_steady(drop, 120.0, LIMITS).level == "warn"
    assert load_was_steady(drop, 120.0, Thresholds(drift_ratio=0.05)).level == "ok"
    assert load_was_steady(slow_start, 120.0, LIMITS).level == "invalid"
    assert load_was_steady(slow_start, 120.0, Thresholds(warm_up_ratio=0.05)).level == "ok"
