"""Several load tools: sums of what adds up, percentiles from histograms or none at all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest

from agents.base.errors import PlanError
from agents.drivers.reading import read_report
from agents.results.merging import NO_OWN_METRICS, merge
from agents.results.merging_course import course_of_all
from agents.results.merging_latency import NO_HISTOGRAMS, RESOLUTION_RATIO, merge_histograms, percentile_ms
from agents.results.report import Histogram, HistogramRow, LatencySummary, LoadErrors, LoadReport, OwnMetric
from agents.results.request_figures import Course
from tests.agents.recorded import cases
from tests.properties import given, st

SAMPLES = st.lists(st.integers(1, 2000).map(float), min_size=1, max_size=80)
HOSTS = st.lists(SAMPLES, min_size=1, max_size=5)


def spectrum(samples: Sequence[float], every: int = 1) -> Histogram:
    """The spectrum of samples with a row at every n-th of their values, and at the last."""
    values = sorted(set(samples))
    kept = sorted({*values[every - 1 :: every], values[-1]})
    counts = [sum(1 for sample in samples if sample <= value) for value in kept]
    rows = tuple(HistogramRow(v, n / len(samples), n) for v, n in zip(kept, counts, strict=True))
    return Histogram(rows, total_count=len(samples))


def nearest_rank(samples: Sequence[float], percentile: float) -> float:
    return sorted(samples)[max(1, math.ceil(round(percentile / 100 * len(samples), 6))) - 1]


def report_of(samples: Sequence[float], **changes: object) -> LoadReport:
    mean = sum(samples) / len(samples)
    stdev = math.sqrt(sum((sample - mean) ** 2 for sample in samples) / len(samples))
    percentiles = {name: nearest_rank(samples, float(name)) for name in ("50", "99", "100")}
    latency = LatencySummary(mean, stdev, min(samples), max(samples), None, percentiles, spectrum(samples))
    plain = LoadReport(
        "vegeta",
        "vegeta-json",
        "open",
        "response_time",
        connections=10,
        duration_s=10.0,
        requests=len(samples),
        throughput_rps=len(samples) / 10,
        errors=LoadErrors(connect=1, status=2),
        latency=latency,
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


@given(HOSTS)
def test_counts_and_rates_add_up(hosts: list[list[float]]) -> None:
    merged = merge([report_of(samples) for samples in hosts])
    count = sum(map(len, hosts))
    assert (merged.requests, merged.connections) == (count, 10 * len(hosts))
    assert merged.throughput_rps == pytest.approx(count / 10)
    assert merged.errors == LoadErrors(connect=len(hosts), status=2 * len(hosts))
    assert merged.usable


@given(HOSTS)
def test_mean_and_deviation_are_those_of_all_requests(hosts: list[list[float]]) -> None:
    latency = merge([report_of(samples) for samples in hosts]).latency
    every = [sample for samples in hosts for sample in samples]
    mean = sum(every) / len(every)
    assert latency is not None
    assert latency.mean_ms == pytest.approx(mean)
    assert latency.stdev_ms == pytest.approx(math.sqrt(sum((s - mean) ** 2 for s in every) / len(every)), abs=1e-6)
    assert (latency.min_ms, latency.max_ms) == (min(every), max(every))


@given(HOSTS, st.integers(1, 10), st.sampled_from([1.0, 50.0, 75.0, 90.0, 99.0, 99.9, 100.0]))
def test_a_percentile_is_never_too_low_and_at_most_5_percent_too_high(
    hosts: list[list[float]], every: int, percentile: float
) -> None:
    exact = nearest_rank([sample for samples in hosts for sample in samples], percentile)
    histograms = [spectrum(samples, every) for samples in hosts]
    for of_each in ((), [nearest_rank(samples, percentile) for samples in hosts]):
        found = percentile_ms(histograms, percentile, of_each)
        if found is not None:
            assert exact <= found <= exact / (1 - RESOLUTION_RATIO) + 1e-9


def test_a_percentile_of_fine_histograms_is_exact_and_not_the_mean_of_percentiles() -> None:
    fast, slow = [100 + i / 100 for i in range(900)], [1000 + i for i in range(100)]
    merged = merge([report_of(fast), report_of(slow)])
    assert merged.latency is not None
    found = merged.latency.percentiles_ms
    assert found["50"] == nearest_rank([*fast, *slow], 50)
    assert found["99"] == nearest_rank([*fast, *slow], 99)
    assert found["100"] == 1099


@given(HOSTS)
def test_the_order_of_the_hosts_does_not_matter(hosts: list[list[float]]) -> None:
    histograms = [spectrum(samples) for samples in hosts]
    assert merge_histograms(histograms) == merge_histograms(histograms[::-1])


@given(HOSTS)
def test_a_merged_spectrum_never_goes_down_and_ends_with_all_samples(hosts: list[list[float]]) -> None:
    rows = merge_histograms([spectrum(samples, 3) for samples in hosts]).rows
    counts = [row.total_count for row in rows]
    assert counts == sorted(counts)
    assert counts[-1] == sum(map(len, hosts))
    assert rows[-1].percentile == 1.0


def test_without_a_histogram_of_every_host_there_are_no_percentiles() -> None:
    one = report_of([1.0, 2.0])
    assert one.latency is not None
    other = replace(one, latency=replace(one.latency, histogram=None))
    merged = merge([one, other])
    assert merged.latency is not None
    assert merged.latency.percentiles_ms == {}
    assert merged.notes == (NO_HISTOGRAMS,)
    assert merged.latency.mean_ms == 1.5


def test_coarse_histograms_give_no_percentile_and_say_so() -> None:
    case = next(case for case in cases("oha") if case.name == "oha/basic")
    report = read_report("oha", case.text)
    assert report.latency is not None
    slower = {name: value * 2 for name, value in report.latency.percentiles_ms.items()}
    merged = merge([report, replace(report, latency=replace(report.latency, percentiles_ms=slower))])
    assert merged.latency is not None
    assert "99" not in merged.latency.percentiles_ms
    assert "no p99: the histograms of the load tools are too coarse for it" in merged.notes


def test_two_real_reports_of_wrk2_keep_their_percentiles() -> None:
    case = next(case for case in cases("wrk2") if case.name == "wrk2/steady-latency")
    report = read_report("wrk2", case.text, case.command)
    merged = merge([report, report])
    assert report.latency is not None
    assert merged.latency is not None
    assert merged.offered_rate_rps == 4000
    assert merged.throughput_rps == pytest.approx(2 * (report.throughput_rps or 0))
    for name in ("50", "75", "90"):
        assert merged.latency.percentiles_ms[name] == report.latency.percentiles_ms[name]


def test_one_report_stays_as_it_is() -> None:
    report = report_of([1.0])
    assert merge([report]) is report


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"duration_s": 5.0}, "the load tools loaded for 5 s to 10 s, so their rates do not add up"),
        ({"usable": False, "why": "no request completed"}, "1 of 2 load tools: no request completed"),
        (
            {"complete": False, "usable": False, "why": "the tool did not start: x", "error": "x"},
            "1 of 2 load tools: the tool did not start: x",
        ),
    ],
)
def test_a_host_that_did_otherwise_makes_the_whole_unusable(change: dict[str, object], why: str) -> None:
    merged = merge([report_of([1.0]), report_of([1.0], **change)])
    assert (merged.usable, merged.why) == (False, why)
    assert merged.complete is not ("complete" in change)


def test_a_figure_that_one_host_does_not_know_is_unknown() -> None:
    merged = merge([report_of([1.0]), report_of([1.0], throughput_rps=None, latency=None)])
    assert (merged.throughput_rps, merged.latency) == (None, None)


@pytest.mark.parametrize("change", [{"tool": "oha"}, {"load_model": "closed"}, {"latency_basis": "service_time"}])
def test_reports_of_different_load_are_not_put_together(change: dict[str, object]) -> None:
    with pytest.raises(PlanError, match=next(iter(change))):
        merge([report_of([1.0]), report_of([1.0], **change)])


def test_no_report_is_no_result() -> None:
    with pytest.raises(PlanError, match="no report"):
        merge([])


def test_figures_of_a_benchmarks_own_are_not_put_together_and_a_note_says_so() -> None:
    own = OwnMetric("gc_pause_ms", 3.0, "ms", "lower")
    merged = merge([report_of([1.0], own_metrics=(own,)), report_of([2.0])])
    assert merged.own_metrics == ()
    assert NO_OWN_METRICS.format("gc_pause_ms") in merged.notes


def test_rates_that_a_tool_knows_by_their_unit_add_up() -> None:
    def of(rate: float, lag_ms: float) -> LoadReport:
        rate_of_all = OwnMetric("transactions_per_s", rate, "transactions/s", "higher", adds=True)
        return report_of([1.0], own_metrics=(rate_of_all, OwnMetric("lag_ms", lag_ms, "ms", "lower")))

    merged = merge([of(100.0, 1.0), of(50.5, 9.0)])
    assert [(metric.name, metric.value) for metric in merged.own_metrics] == [("transactions_per_s", 150.5)]
    assert NO_OWN_METRICS.format("lag_ms") in merged.notes
    without = merge([of(100.0, 1.0), report_of([2.0])])
    assert without.own_metrics == ()
    assert NO_OWN_METRICS.format("transactions_per_s, lag_ms") in without.notes


@given(HOSTS)
def test_of_exact_histograms_every_percentile_is_exact_however_sparse_they_are(hosts: list[list[float]]) -> None:
    histograms = [replace(spectrum(samples), exact=True) for samples in hosts]
    everything = [sample for samples in hosts for sample in samples]
    for percentile in (50.0, 99.0, 99.9):
        assert percentile_ms(histograms, percentile) == nearest_rank(everything, percentile)
    assert merge_histograms(histograms).exact


def course(step_s: float, at_s: Sequence[float], threads: int | None = 5) -> Course:
    """Ten requests in the first step and ten more in each that follows, all of 4 ms, and the errors 0, 1, 2."""
    return Course(
        step_s,
        tuple(at_s),
        tuple(10 * (place + 1) for place in range(len(at_s))),
        tuple(range(len(at_s))),
        tuple(4.0 for _ in at_s),
        None if threads is None else tuple(threads for _ in at_s),
    )


@pytest.mark.parametrize(
    ("courses", "ahead_s", "at_s", "requests", "threads"),
    [
        ([course(1, [100, 101]), course(1, [100, 101])], (), (100, 101), (20, 40), (10, 10)),
        ([course(1, [100, 101]), course(1, [3700, 3701])], (0.0, 3600.2), (100, 101), (20, 40), (10, 10)),
        ([course(1, [100, 101]), course(1, [90, 91])], (0.0, -9.0), (99, 100, 101), (10, 30, 20), (5, 10, 5)),
        ([course(1, [100, 103]), course(1, [99, 101])], (), (99, 100, 101, 103), (10, 10, 20, 20), (5, 10, 10, 5)),
        ([course(2, [96, 98]), course(3, [96, 99, 102])], (), (96, 102), (60, 30), (10, 5)),
        ([course(1, [100]), course(1, [100], None)], (), (100,), (20,), None),
    ],
    ids=["one clock", "an hour ahead", "behind", "gaps", "other steps", "no threads"],
)
def test_courses_are_summed_each_by_the_clock_of_its_host(
    courses: list[Course], ahead_s: Sequence[float], at_s: object, requests: object, threads: object
) -> None:
    found = course_of_all(courses, ahead_s)
    assert found is not None
    assert (found.ended_unix_s, found.requests, found.active_threads) == (at_s, requests, threads)
    assert sum(found.errors) == sum(sum(one.errors) for one in courses)
    assert set(found.latency_mean_ms) == {4.0}
    assert course_of_all([*courses, None]) is None
