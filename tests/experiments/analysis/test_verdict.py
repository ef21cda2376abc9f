"""The verdict on two variants: worked examples, the order of the rules, the wording, odd input."""

from __future__ import annotations

import json
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from experiments.analysis import wording
from experiments.analysis.verdict import Arms, Verdict, judge
from experiments.analysis.wording import PLAIN

EXAMPLES: dict[str, Any] = json.loads(Path(__file__).with_name("worked_examples.json").read_text())
A1 = EXAMPLES["A1_verdict"]
QUIET = [100.0, 100.4, 99.6, 100.2, 99.8]


def times(values: list[float], ratio: float) -> list[float]:
    return [v * ratio for v in values]


def independent(
    a: list[float], b: list[float], *, higher_is_better: bool = True, margin_ratio: float = 0.03
) -> Verdict:
    return judge(a, b, higher_is_better=higher_is_better, margin_ratio=margin_ratio, design="independent")


@pytest.fixture(autouse=True)
def warnings_are_errors() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.mark.parametrize("case", A1["cases"], ids=[str(c["est"]) for c in A1["cases"]])
def test_worked_examples_come_out_to_the_printed_digit(case: dict[str, Any]) -> None:
    verdict = independent(case.get("a", A1["a"]), case["b"], margin_ratio=A1["m"])
    assert verdict.outcome == case["verdict"]
    assert verdict.estimate_pct == pytest.approx(case["est"], abs=6e-4)
    assert verdict.ci95_pct == pytest.approx(case["ci95"], abs=6e-4)
    if "ci90" in case:
        assert verdict.ci90_pct == pytest.approx(case["ci90"], abs=6e-4)
    if "hl_ci95" in case:
        assert verdict.hodges_lehmann_ci95_pct == pytest.approx(case["hl_ci95"], abs=6e-4)
    assert verdict.needed_per_arm == case.get("n_total")


def test_pairing_by_block_removes_the_drift_that_widens_the_independent_interval() -> None:
    case = EXAMPLES["A1_blocked"]
    paired = judge(case["a"], case["b"], higher_is_better=True, design="blocked")
    assert independent(case["a"], case["b"]).ci95_pct == pytest.approx(case["welch_ci95"], abs=6e-4)
    assert paired.estimate_pct == pytest.approx(case["paired_est"], abs=6e-4)
    assert paired.ci95_pct == pytest.approx(case["paired_ci95"], abs=6e-4)
    assert paired.hodges_lehmann_ci95_pct is not None


def test_intervals_and_p_values_agree_with_scipy() -> None:
    a, b = A1["a"], A1["cases"][0]["b"][:5]
    welch = stats.ttest_ind(np.log(b), np.log(a), equal_var=False)
    verdict = independent(a, b)
    assert verdict.p_value == pytest.approx(float(welch.pvalue))
    expected = [math.expm1(x) * 100 for x in welch.confidence_interval(0.95)]
    assert verdict.ci95_pct == pytest.approx(expected)
    paired = stats.ttest_rel(np.log(b), np.log(a[:5]))
    blocked = judge(a[:5], b, higher_is_better=True, design="blocked")
    assert blocked.p_value == pytest.approx(float(paired.pvalue))


@pytest.mark.parametrize(
    ("ratio", "higher_is_better", "outcome", "gate"),
    [
        (1.000, True, "no_practical_difference", "pass"),
        (1.02, True, "no_practical_difference", "pass"),
        (1.035, True, "better", "pass"),
        (1.030, True, "better_size_uncertain", "pass"),
        (0.970, True, "worse_size_uncertain", "fail"),
        (0.960, True, "worse", "fail"),
        (1.060, False, "worse", "fail"),
        (0.940, False, "better", "pass"),
        (0.970, False, "better_size_uncertain", "pass"),
        (1.030, False, "worse_size_uncertain", "fail"),
    ],
)
def test_the_first_rule_that_matches_decides(ratio: float, higher_is_better: bool, outcome: str, gate: str) -> None:
    verdict = independent(QUIET, times(QUIET, ratio), higher_is_better=higher_is_better)
    assert (verdict.outcome, verdict.gate) == (outcome, gate)


def test_noise_makes_the_same_change_inconclusive_and_neutral_for_a_gate() -> None:
    noisy = [100.0, 108.0, 93.0, 104.0, 96.0]
    verdict = independent(noisy, times(noisy, 1.035))
    assert (verdict.outcome, verdict.gate) == ("inconclusive", "neutral")


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4])
def test_fewer_than_five_repetitions_are_no_verdict(n: int) -> None:
    verdict = independent(QUIET[:n], times(QUIET[:n], 1.1))
    assert (verdict.outcome, verdict.gate) == ("invalid", "neutral")
    assert (verdict.ci95_pct is not None) == (n >= 3)
    assert (verdict.estimate_pct is None) == (n == 0)
    assert f"Too early for a verdict: {n} of 5 repetitions" in wording.headline(verdict)


def test_the_arm_with_fewer_repetitions_counts() -> None:
    assert independent([*QUIET, 100.1], times(QUIET[:4], 1.1)).outcome == "invalid"


def test_invalid_repetitions_are_left_out_of_independent_arms() -> None:
    verdict = judge([None, *QUIET], [*times(QUIET, 1.1), None, None], higher_is_better=True, design="independent")
    assert (verdict.n_a, verdict.n_b, verdict.outcome) == (5, 5, "better")


def test_a_block_with_one_invalid_side_is_left_out_on_both() -> None:
    drifting = [100.0, 99.0, 98.1, 97.0, 96.0, 95.2]
    a: list[float | None] = [*drifting, None, 50.0]
    b: list[float | None] = [105.0, 104.0, 103.0, 101.8, 100.8, 100.0, 70.0, None]
    verdict = judge(a, b, higher_is_better=True, design="blocked")
    assert (verdict.n_a, verdict.n_b, verdict.outcome) == (6, 6, "better")
    assert verdict.estimate_pct == pytest.approx(5.0, abs=0.01)


def test_pairs_too_few_for_a_rank_interval_still_get_a_rank_estimate() -> None:
    verdict = judge(QUIET, times(QUIET, 1.1), higher_is_better=True, design="blocked")
    assert verdict.hodges_lehmann_pct == pytest.approx(10.0)
    assert verdict.hodges_lehmann_ci95_pct is None
    assert not verdict.outlier_sensitive


def test_one_wild_repetition_is_called_outlier_sensitive() -> None:
    a = [100.0, 100.1, 100.2, 100.3, 100.4, 100.5, 60.0]
    b = [106.0, 106.1, 106.2, 106.3, 106.4, 106.5, 106.6]
    verdict = independent(a, b)
    assert verdict.outcome == "inconclusive"
    assert verdict.outlier_sensitive
    assert "outlier-sensitive, by ranks [" in wording.headline(verdict)


@pytest.mark.parametrize("design", ["independent", "blocked"])
@pytest.mark.parametrize(("b", "outcome"), [(5.1, "no_practical_difference"), (6.0, "better"), (5.0, "worse")])
def test_identical_values_neither_crash_nor_warn(design: Arms, b: float, outcome: str) -> None:
    verdict = judge([5.1] * 5, [b if b != 5.0 else 4.0] * 5, higher_is_better=True, design=design)
    assert verdict.outcome == outcome
    assert verdict.cov_pct == pytest.approx(0.0, abs=1e-9)
    assert verdict.p_value == (1.0 if b == 5.1 else 0.0)


def test_identical_values_in_arms_of_unequal_size_show_no_change() -> None:
    verdict = independent([5.312] * 5, [5.312] * 7)
    assert (verdict.outcome, verdict.detectable_but_small) == ("no_practical_difference", False)
    assert wording.headline(verdict) == "No difference within ±3 % (0.0 % [0.0, 0.0])"


@pytest.mark.parametrize(
    ("a", "b", "outcome", "rounding_pct"),
    [
        ([20.0] * 5, [21.0] * 5, "inconclusive", 5.07),
        ([20.0] * 5, [20.0] * 5, "inconclusive", 5.19),
        ([20.0] * 5, [30.0] * 5, "worse", 4.3),
        ([20.12] * 5, [21.13] * 5, "worse", 0.05),
        ([200.0] * 5, [200.0] * 5, "no_practical_difference", 0.50),
        ([20.0, 23.0, 18.0, 21.0, 19.0], [29.0, 31.0, 28.0, 33.0, 30.0], "worse", 0.0),
    ],
    ids=["a step apart", "equal", "ten steps apart", "finer", "of small steps", "noise larger than a step"],
)
def test_values_that_are_printed_in_steps_are_no_surer_than_a_step(
    a: list[float], b: list[float], outcome: str, rounding_pct: float
) -> None:
    """Whole milliseconds: 20 stands for 19.5 to 20.5, and five of them say nothing more."""
    verdict = judge(a, b, higher_is_better=False, design="independent")
    assert (verdict.outcome, round(verdict.rounding_pct, 2)) == (outcome, rounding_pct)
    if outcome == "inconclusive":
        assert verdict.p_value == 1.0
        assert "the steps of the printed values alone make" in wording.headline(verdict)


def test_tied_values_get_a_rank_interval_that_holds_zero() -> None:
    verdict = independent([100.0, 100.0, 101.0, 101.0, 102.0], [100.0, 101.0, 101.0, 102.0, 102.0])
    assert verdict.hodges_lehmann_ci95_pct is not None
    assert verdict.hodges_lehmann_ci95_pct[0] <= 0 <= verdict.hodges_lehmann_ci95_pct[1]


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
@pytest.mark.parametrize("design", ["independent", "blocked"])
def test_a_value_that_is_not_a_positive_number_is_refused(bad: float, design: Arms) -> None:
    with pytest.raises(ValueError, match=r"repetition 2 of the candidate is .*; only positive numbers"):
        judge(QUIET, [100.0, bad, 100.0, 100.0, 100.0], higher_is_better=True, design=design)


def test_blocks_of_unequal_number_are_refused() -> None:
    with pytest.raises(ValueError, match="one value per block on both sides: 5 and 4"):
        judge(QUIET, QUIET[:4], higher_is_better=True, design="blocked")


@pytest.mark.parametrize("margin_ratio", [0.0, -0.03, math.nan, math.inf])
def test_a_margin_that_is_not_positive_is_refused(margin_ratio: float) -> None:
    with pytest.raises(ValueError, match="margin_ratio must be positive"):
        independent(QUIET, QUIET, margin_ratio=margin_ratio)


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0, math.nan])
def test_an_alpha_that_is_no_chance_is_refused(alpha: float) -> None:
    with pytest.raises(ValueError, match="alpha must lie between 0 and"):
        judge(QUIET, QUIET, higher_is_better=True, design="independent", alpha=alpha)


def test_a_smaller_alpha_needs_a_clearer_difference_and_says_so() -> None:
    usual = judge(QUIET, times(QUIET, 1.0352), higher_is_better=True, design="independent")
    strict = judge(QUIET, times(QUIET, 1.0352), higher_is_better=True, design="independent", alpha=0.016)
    assert (usual.outcome, strict.outcome) == ("better", "better_size_uncertain")
    assert (strict.ci95_pct, strict.p_value) == (usual.ci95_pct, usual.p_value)
    assert strict.deciding_pct is not None
    expected = stats.ttest_ind(np.log(times(QUIET, 1.0352)), np.log(QUIET), equal_var=False).confidence_interval(0.984)
    assert strict.deciding_pct == pytest.approx([math.expm1(x) * 100 for x in expected])
    assert wording.headline(strict).endswith("; one of several looks, at α 0.016")


def test_equivalence_at_a_smaller_alpha_asks_for_a_narrower_interval() -> None:
    values = [100.0, 101.5, 98.6, 101.2, 98.9]
    b = times(values, 1.0095)
    assert judge(values, b, higher_is_better=True, design="independent").outcome == "no_practical_difference"
    assert judge(values, b, higher_is_better=True, design="independent", alpha=0.016).outcome == "inconclusive"


@pytest.mark.parametrize(
    ("position", "headline"),
    [
        (0, "B is faster by 6.3 % [5.5, 7.2] (95 %), n=6+6"),
        (1, "No difference within ±3 % (+0.2 % [\N{MINUS SIGN}0.6, 1.0])"),
        (
            2,
            "No difference within ±3 % (+2.2 % [1.4, 2.9]); a real change of +2.2 % is detectable but below the margin",
        ),
        (
            3,
            (
                "Inconclusive: +2.1 % [\N{MINUS SIGN}2.5, 6.9], not worse by more than 3 %; "
                "run at least 67 more per arm (≈6 h 08)"
            ),
        ),
    ],
)
def test_headlines_read_as_designed(position: int, headline: str) -> None:
    case = A1["cases"][position]
    assert wording.headline(independent(case.get("a", A1["a"]), case["b"]), seconds_per_repetition=165) == headline


@pytest.mark.parametrize(
    ("ratio", "higher_is_better", "sentence"),
    [
        (1.06, True, "Throughput: new is faster than old by 6.0 % [5.5, 6.5] (95 %), n=5+5."),
        (0.94, True, "Throughput: new is slower than old by 6.0 % [5.6, 6.4] (95 %), n=5+5."),
        (0.94, False, "Throughput: new is faster than old, lower by 6.0 % [5.6, 6.4] (95 %), n=5+5."),
        (1.06, False, "Throughput: new is slower than old, higher by 6.0 % [5.5, 6.5] (95 %), n=5+5."),
        (1.03, True, "Throughput: new looks faster than old by 3.0 % [2.5, 3.5]; size not yet separated from ±3 %."),
        (
            0.97,
            False,
            "Throughput: new looks faster than old, lower by 3.0 % [2.6, 3.4]; size not yet separated from ±3 %.",
        ),
        (1.00, True, "Throughput: no difference between old and new within ±3 % (0.0 % [\N{MINUS SIGN}0.5, 0.5])."),
    ],
)
def test_sentences_name_both_variants_and_the_direction(ratio: float, higher_is_better: bool, sentence: str) -> None:
    verdict = independent(QUIET, times(QUIET, ratio), higher_is_better=higher_is_better)
    assert wording.sentence(verdict, "old", "new", "Throughput") == sentence


def test_a_metric_that_is_no_speed_gets_other_words() -> None:
    verdict = independent(QUIET, times(QUIET, 0.9), higher_is_better=False)
    assert wording.sentence(verdict, "old", "new", "Memory", words=PLAIN).startswith(
        "Memory: new is better than old, lower by"
    )


@pytest.mark.parametrize(
    ("a", "b", "headline"),
    [
        (QUIET[:3], times(QUIET[:3], 1.063), "3 of 5 repetitions. So far B is faster by 6.3 % [5.3, 7.3]"),
        (QUIET[:3], times(QUIET[:3], 1.002), "3 of 5 repetitions. So far +0.2 % [\N{MINUS SIGN}0.7, 1.1]"),
        (
            QUIET[:2],
            times(QUIET[:2], 0.9),
            "2 of 5 repetitions. So far \N{MINUS SIGN}10.0 %, an interval needs 3 repetitions",
        ),
        ([], QUIET, "0 of 5 repetitions"),
    ],
)
def test_too_early_says_what_is_known_so_far(a: list[float], b: list[float], headline: str) -> None:
    assert wording.headline(independent(a, b)) == f"Too early for a verdict: {headline}"


def test_a_small_change_that_is_real_is_not_said_to_be_none() -> None:
    even = [100.0, 100.0, 100.0, 100.0, 100.0]
    assert wording.headline(independent(even, times(even, 1.0002))).endswith(
        "(+0.020 % [0.010, 0.030]); a real change of +0.020 % is detectable but below the margin"
    )


def test_hopeless_noise_asks_for_less_noise_and_not_for_more_repetitions() -> None:
    noisy = [100.0, 160.0, 70.0, 130.0, 80.0]
    verdict = independent(noisy, times(noisy, 1.01))
    assert verdict.needed_per_arm is not None
    assert verdict.needed_per_arm > 55
    assert wording.headline(verdict).endswith(f"reduce noise first (CoV {verdict.cov_pct:.1f} %)")


def test_the_number_still_needed_is_never_zero() -> None:
    # Unequal arms: the pooled estimate says enough, the interval of the small noisy arm says not yet.
    a = [100.0 + 0.01 * i for i in range(60)]
    b = [100.5, 104.0, 97.0, 101.0, 105.0]
    verdict = independent(a, b)
    assert verdict.outcome == "inconclusive"
    assert verdict.more_per_arm is not None
    assert verdict.more_per_arm >= 1


@pytest.mark.parametrize(("seconds", "text"), [(30, "1 h 07"), (45.5, "1 h 42"), (90, "3 h 21"), (0.1, "1 min")])
def test_the_time_still_needed_covers_both_arms(seconds: float, text: str) -> None:
    case = A1["cases"][3]
    assert wording.headline(independent(case["a"], case["b"]), seconds_per_repetition=seconds).endswith(
        f"per arm (≈{text})"
    )
