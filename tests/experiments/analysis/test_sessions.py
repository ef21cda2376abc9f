"""A candidate against sessions: how sessions differ is the noise, however many runs each has."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.analysis.sessions import judge_session, noise_of
from experiments.analysis.verdict import judge
from experiments.analysis.wording import headline


def sessions(
    count: int, runs: int, share: float, source: np.random.Generator, noise: float = 0.02
) -> list[list[float]]:
    """`share` of the variance of a run is its session's."""
    own = source.normal(0, noise * np.sqrt(share), (count, 1))
    values = 1000 * np.exp(own + source.normal(0, noise * np.sqrt(1 - share), (count, runs)))
    return [[float(value) for value in session] for session in values]


@pytest.mark.parametrize("runs, of_candidate", [(5, 5), (1, 5), (3, 1)])
@pytest.mark.parametrize("share", [0.0, 0.5, 0.9])
def test_identical_builds_differ_in_no_more_than_one_case_of_twenty(share: float, runs: int, of_candidate: int) -> None:
    source, wrong, trials = np.random.default_rng(5), 0, 300
    for _ in range(trials):
        reference = sessions(8, runs, share, source)
        (candidate,) = sessions(1, of_candidate, share, source)
        found = judge_session(reference, candidate, earlier=reference, higher_is_better=True)
        wrong += found.ci95_pct is not None and not found.ci95_pct[0] <= 0 <= found.ci95_pct[1]

    assert wrong / trials <= 0.09


def test_the_two_levels_of_noise_are_told_apart() -> None:
    source = np.random.default_rng(2)
    found = noise_of(sessions(400, 5, 0.75, source), [1000.0, 1001.0])

    assert found.own == pytest.approx(0.75 * 0.02**2, rel=0.2)
    assert found.within == pytest.approx(0.25 * 0.02**2, rel=0.2)
    assert found.between == pytest.approx(found.own + found.within / 5, rel=1e-6)


def test_single_runs_night_by_night_are_compared_like_one_more_of_them() -> None:
    reference = [[value] for value in (1000.0, 1020.0, 985.0, 1010.0, 990.0, 1005.0)]

    found = judge_session(reference, [900.0], earlier=reference, higher_is_better=True)

    assert found.outcome == "worse_size_uncertain" or found.outcome == "worse"
    logs = np.log([value for (value,) in reference])
    assert found.cov_pct == pytest.approx(100 * logs.std(ddof=1), rel=0.01)


def test_a_pinned_session_alone_is_judged_by_the_noise_of_its_history() -> None:
    history = sessions(12, 5, 0.5, np.random.default_rng(8))

    alone = judge_session(history[-1:], [950.0] * 5, earlier=history, higher_is_better=True)
    of_all = judge_session(history, [950.0] * 5, earlier=history, higher_is_better=True)

    assert alone.ci95_pct is not None
    assert of_all.ci95_pct is not None
    assert np.ptp(alone.ci95_pct) > np.ptp(of_all.ci95_pct)


def test_a_few_sessions_give_no_verdict_and_the_sentence_says_what_is_missing() -> None:
    history = sessions(4, 5, 0.5, np.random.default_rng(8))

    found = judge_session(history, [900.0] * 5, earlier=history, higher_is_better=True)

    assert found.outcome == "invalid"
    assert "4 of 5 earlier sessions" in headline(found)
    assert judge_session([], [900.0], earlier=[], higher_is_better=True).outcome == "invalid"


def test_more_runs_of_one_session_do_not_make_two_sessions_certain() -> None:
    source = np.random.default_rng(4)
    history = sessions(6, 50, 0.5, source)
    (candidate,) = sessions(1, 50, 0.5, source)
    together = judge(history[0], candidate, higher_is_better=True, design="independent")

    found = judge_session(history, candidate, earlier=history, higher_is_better=True)

    assert together.ci95_pct is not None
    assert found.ci95_pct is not None
    assert np.ptp(found.ci95_pct) > 3 * np.ptp(together.ci95_pct)


def test_a_figure_that_has_no_logarithm_is_refused() -> None:
    with pytest.raises(ValueError, match="positive"):
        judge_session([[1.0], [0.0], [2.0]], [1.0], earlier=[[1.0], [0.0], [2.0]], higher_is_better=True)
    with pytest.raises(ValueError, match="one session"):
        noise_of([[1.0]], [1.0])
