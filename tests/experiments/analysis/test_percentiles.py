"""Percentile curves: counts are added, and only what so many samples support is said."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from experiments.analysis.percentiles import CountedValues, PercentilePoint, curve_of, is_supported


def exact(samples: NDArray[np.float64]) -> CountedValues:
    values, counts = np.unique(samples, return_counts=True)
    return CountedValues(values.tolist(), np.cumsum(counts).tolist(), exact=True)


def test_two_histograms_are_added_not_averaged() -> None:
    a = CountedValues([1.0, 2.0], [9_000, 10_000], exact=True)
    b = CountedValues([1.0, 50.0], [500, 1_000], exact=True)
    points = {point.percentile: point.value_ms for point in curve_of([a, b]).points}
    assert points[50.0] == 1.0
    assert points[90.0] == 2.0
    assert points[99.0] == 50.0  # the mean of both would be 26


@pytest.mark.parametrize(
    "percentile, samples, supported",
    [(99, 999, False), (99, 1_000, True), (99.9, 9_999, False), (99.9, 10_000, True), (50, 20, True), (50, 19, False)],
)
def test_a_percentile_needs_ten_samples_beyond_it(percentile: float, samples: int, supported: bool) -> None:
    assert is_supported(percentile, samples) is supported


@pytest.mark.parametrize("parts", [1, 2, 7])
def test_the_parts_of_a_sample_give_the_percentiles_of_the_whole(parts: int) -> None:
    random = np.random.default_rng(5)
    samples: NDArray[np.float64] = np.round(np.exp(random.normal(2, 1, 20_000)), 2).astype(np.float64)
    curve = curve_of([exact(part) for part in np.array_split(samples, parts)])
    assert curve.samples == 20_000
    assert curve.points[-1].percentile == 99.95
    assert not curve.too_coarse
    for point in curve.points:
        rank = math.ceil(round(point.percentile * 200, 6))  # of 20,000
        assert point.value_ms == np.sort(samples)[rank - 1]


def bars(*values_ms: float, exact: bool = False) -> CountedValues:
    return CountedValues(values_ms, [900, 1_000], exact)


@pytest.mark.parametrize(
    "histograms, value_ms",
    [
        ([bars(1.0, 100.0)], None),
        ([bars(99.0, 100.0)], 100.0),
        ([bars(1.0, 100.0, exact=True)], 100.0),
        ([bars(1.0, 100.0), bars(1.0, 100.0, exact=True)], None),
    ],
    ids=["open between 1 and 100 ms", "narrow enough", "exact values", "one of two is open"],
)
def test_a_percentile_that_the_rows_leave_open_is_left_out(
    histograms: list[CountedValues], value_ms: float | None
) -> None:
    curve = curve_of(histograms, marks=(95.0,))
    assert curve.points == (() if value_ms is None else (PercentilePoint(95.0, value_ms),))
    assert curve.too_coarse is (value_ms is None)


@pytest.mark.parametrize("histograms", [[], [CountedValues([], [])]])
def test_no_samples_no_curve(histograms: list[CountedValues]) -> None:
    curve = curve_of(histograms)
    assert (curve.points, curve.samples) == ((), 0)
