"""What functions cost per request, and which of them changed: from runs, never from samples."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from experiments.analysis.families import AdjustedFamily, benjamini_hochberg, holm
from experiments.analysis.function_costs import (
    MOST_UNKNOWN_RATIO,
    Correction,
    ProfiledRun,
    compare_functions,
    why_incomparable,
)
from tests.properties import given, st


def run(block: int | None = None, cpu_s: float = 20.0, samples: int | None = None, /, **ratios: float) -> ProfiledRun:
    """A run of 100,000 requests: 200 microseconds each. What is not named is `other`."""
    shares = {**ratios, "other": 1 - math.fsum(ratios.values())}
    return ProfiledRun(block, "cpu", "perf", cpu_s, 100_000, samples, 0.0, shares, shares)


def arm(shares: list[float], cpu_s: list[float], blocks: bool = True, **same: float) -> list[ProfiledRun]:
    return [
        run(block if blocks else None, cpu, None, parse=share, **same)
        for block, (share, cpu) in enumerate(zip(shares, cpu_s, strict=True))
    ]


A = arm([0.10, 0.11, 0.09, 0.10, 0.12], [20.0, 20.4, 19.8, 20.2, 20.1], render=0.3)
B = arm([0.14, 0.16, 0.13, 0.15, 0.15], [20.9, 21.5, 20.6, 21.2, 21.0], render=0.29)
PARSE_A = np.array([one.cost_us * one.self_ratio["parse"] for one in A])
PARSE_B = np.array([one.cost_us * one.self_ratio["parse"] for one in B])


def test_a_function_costs_its_share_of_the_cpu_time_for_each_request() -> None:
    changes = compare_functions(A[:1], B[:1])
    parse = next(row for row in changes.own if row.name == "parse")
    assert parse.baseline_us == pytest.approx(20.0)  # 10 % of 20 s over 100,000 requests
    assert parse.candidate_us == pytest.approx(0.14 * 209)
    assert (parse.ci95_us, parse.p_value, parse.verdict) == (None, None, "too_few")


def test_blocks_are_compared_in_pairs_as_the_paired_t_test_does() -> None:
    changes = compare_functions(A, B)
    parse = next(row for row in changes.own if row.name == "parse")
    expected = stats.ttest_rel(PARSE_B, PARSE_A)
    interval = expected.confidence_interval(0.95)
    assert changes.paired
    assert changes.n == 5
    assert parse.change_us == pytest.approx(float((PARSE_B - PARSE_A).mean()))
    assert parse.p_value == pytest.approx(expected.pvalue)
    assert parse.ci95_us == pytest.approx((interval.low, interval.high))


def test_runs_without_blocks_are_compared_as_welch_does() -> None:
    changes = compare_functions(
        [replace(one, block=None) for one in A], [replace(one, block=None) for one in reversed(B)]
    )
    parse = next(row for row in changes.own if row.name == "parse")
    expected = stats.ttest_ind(PARSE_B, PARSE_A, equal_var=False)
    assert not changes.paired
    assert parse.p_value == pytest.approx(expected.pvalue)


def test_a_block_that_lacks_a_run_is_left_out() -> None:
    changes = compare_functions(A, B[:4])
    assert (changes.n, changes.paired) == (4, True)
    assert changes.whole.baseline_us == pytest.approx(np.mean([one.cost_us for one in A[:4]]))


def test_verdicts_are_those_of_the_corrected_p_values() -> None:
    corrections: tuple[tuple[Correction, Callable[[Sequence[float]], AdjustedFamily]], ...] = (
        ("holm", holm),
        ("benjamini_hochberg", benjamini_hochberg),
    )
    for correction, adjust in corrections:
        changes = compare_functions(A, B, correction=correction)
        family = adjust([row.p_value or 0.0 for row in changes.own])
        assert [row.adjusted_p for row in changes.own] == pytest.approx(list(family.adjusted_p))
        for row in changes.own:
            expected = ("more" if row.change_us > 0 else "less") if (row.adjusted_p or 0) <= 0.05 else "not_separated"
            assert row.verdict == expected
    assert changes.own[0].name == "parse"
    assert changes.own[0].verdict == "more"


def test_too_few_runs_give_an_interval_from_three_and_a_verdict_from_five() -> None:
    three = compare_functions(A[:3], B[:3]).own[0]
    assert three.ci95_us is not None
    assert (three.adjusted_p, three.verdict) == (None, "too_few")
    assert compare_functions(A, B).own[0].adjusted_p is not None


def test_functions_that_appeared_or_vanished_have_a_change_as_any_other() -> None:
    before = [run(block, 20.0 + block / 10, gone=0.05 + block / 1000) for block in range(6)]
    after = [run(block, 20.1 + block / 10, new=0.04 + block / 900) for block in range(6)]
    rows = {row.name: row for row in compare_functions(before, after).own}
    assert (rows["gone"].candidate_us, rows["gone"].verdict) == (0, "less")
    assert (rows["new"].baseline_us, rows["new"].verdict) == (0, "more")


def test_functions_below_the_threshold_in_both_variants_are_one_row() -> None:
    small = {f"small{number}": 0.004 for number in range(50)}
    before = [run(block, 20.0, **small) for block in range(5)]
    after = [run(block, 20.0 + block / 10, **small, grown=0.006) for block in range(5)]
    changes = compare_functions(before, after)
    assert {row.name for row in changes.own} == {"other", "grown"}
    assert changes.rest.baseline_us == pytest.approx(200 * 0.2)
    assert {row.name for row in compare_functions(before, after, min_ratio=0.001).own} == {"other", "grown", *small}


SHARES = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(1, 1000), min_size=1)


@st.composite
def runs(draw: st.DrawFn) -> list[ProfiledRun]:
    found = []
    for block in range(draw(st.integers(1, 6))):
        weights = draw(SHARES)
        whole = sum(weights.values())
        shares = {name: weight / whole for name, weight in weights.items()}
        cpu_s, requests = draw(st.floats(0.1, 1e4)), draw(st.integers(1, 10**9))
        samples = draw(st.integers(1, 10**6))
        found.append(ProfiledRun(block, "cpu", "perf", cpu_s, requests, samples, 0.1, shares, shares))
    return found


@given(runs(), runs())
def test_the_rows_and_the_rest_add_up_to_the_change_of_cpu_per_request(
    baseline: list[ProfiledRun], candidate: list[ProfiledRun]
) -> None:
    changes = compare_functions(baseline, candidate, min_ratio=0.1)
    largest = max(one.cost_us for one in (*baseline, *candidate))
    assert changes.explained_us == pytest.approx(changes.whole.change_us, abs=1e-9 * largest)
    for row in (*changes.own, changes.rest, changes.whole):
        assert row.candidate_us - row.baseline_us == pytest.approx(row.change_us, abs=1e-9 * largest)
        if row.ci95_us is not None:
            assert row.ci95_us[0] - 1e-9 * largest <= row.change_us <= row.ci95_us[1] + 1e-9 * largest


def test_counts_that_are_equal_by_chance_do_not_make_a_function_certain() -> None:
    """Three samples more in each of five blocks: without the error of counting that would be a noise of nothing."""
    before = [run(block, 20.0, 1000, rare=0.006) for block in range(5)]
    after = [run(block, 20.0, 1000, rare=0.009) for block in range(5)]
    rare = next(row for row in compare_functions(before, after).own if row.name == "rare")
    assert rare.verdict == "not_separated"
    assert rare.ci95_us is not None
    assert rare.ci95_us[0] < 0 < rare.ci95_us[1]
    many = [[replace(one, samples=10**7) for one in side] for side in (before, after)]
    assert next(row for row in compare_functions(*many).own if row.name == "rare").verdict == "more"


REFUSED: tuple[tuple[list[ProfiledRun], list[ProfiledRun], str], ...] = (
    ([], B, "no profiled run"),
    (A, [replace(B[0], event="wall"), *B[1:]], "different events: cpu and wall"),
    (A, [replace(B[0], engine="ctimer"), *B[1:]], "different engines: ctimer and perf"),
    (A, [replace(B[0], engine=None), *B[1:]], "one that is not known and perf"),
    (A, [replace(B[0], unknown_ratio=MOST_UNKNOWN_RATIO + 0.05), *B[1:]], "25% of the CPU time"),
    (A, [replace(B[0], requests=0), *B[1:]], "are not known"),
    (A, [replace(B[0], cpu_s=math.nan), *B[1:]], "are not known"),
)


@pytest.mark.parametrize("baseline, candidate, why", REFUSED, ids=lambda value: value if isinstance(value, str) else "")
def test_profiles_that_cannot_be_compared_have_no_difference(
    baseline: list[ProfiledRun], candidate: list[ProfiledRun], why: str
) -> None:
    assert why in why_incomparable(baseline, candidate)
    with pytest.raises(ValueError, match=re.escape(why)):
        compare_functions(baseline, candidate)
    assert why_incomparable(A, B) == ""
