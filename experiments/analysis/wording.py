"""A verdict in words: the number, its interval and what to do next, in one line."""

from __future__ import annotations

from dataclasses import dataclass

from experiments.analysis.families import Family
from experiments.analysis.limits import ALPHA, MIN_FOR_INTERVAL, MIN_FOR_VERDICT, MOST_WORTH_RUNNING
from experiments.analysis.number_text import decimal_text, decimals_for, signed_percent
from experiments.analysis.verdict import Interval, Verdict


@dataclass(frozen=True)
class Words:
    """What a metric's better and worse sides are called: throughput and latency are faster or slower."""

    better: str
    worse: str


SPEED = Words("faster", "slower")
PLAIN = Words("better", "worse")


def headline(
    verdict: Verdict, candidate: str = "B", *, words: Words = SPEED, seconds_per_repetition: float | None = None
) -> str:
    """The short form for a table or a title; it names only the candidate."""
    text = _text(verdict, "", candidate, words, seconds_per_repetition)
    return text if text.startswith(candidate) else text[0].upper() + text[1:]


def sentence(
    verdict: Verdict,
    baseline: str,
    candidate: str,
    metric_label: str,
    *,
    words: Words = SPEED,
    seconds_per_repetition: float | None = None,
) -> str:
    """The full form, with both names, the metric and a full stop.

    `seconds_per_repetition` adds how long "n more" takes.
    """
    return f"{metric_label}: {_text(verdict, baseline, candidate, words, seconds_per_repetition)}."


def with_family(said: str, verdict: Verdict, family: Family | None) -> str:
    """The sentence, and whether a difference holds once it is corrected for all comparisons of its family."""
    if family is None or verdict.outcome in ("invalid", "inconclusive", "no_practical_difference"):
        return said
    method = "Holm" if family.method == "holm" else "Benjamini\N{EN DASH}Hochberg"
    p = f"p {family.adjusted_p:.2g}" if family.adjusted_p >= 0.0001 else "p < 0.0001"
    holds = "holds" if family.stands else "does not hold"
    return f"{said.removesuffix('.')}; {holds} among {family.size} comparisons ({method}, {p})."


def with_order(said: str) -> str:
    """The sentence, and what the sequential order leaves out of its interval (bench/simulations has by how much)."""
    return f"{said.removesuffix('.')}; measured one after the other, so the interval leaves out what drifted meanwhile."


def _text(verdict: Verdict, baseline: str, candidate: str, words: Words, seconds: float | None) -> str:
    than = f" than {baseline}" if baseline else ""
    margin = f"±{verdict.margin_ratio * 100:g} %"
    if verdict.outcome == "invalid":
        return _too_early(verdict, baseline, candidate, words)
    if verdict.outcome in ("better", "worse"):
        confidence = f"{100 * (1 - verdict.alpha):.4g} %"
        text = f"{candidate} is {_change(verdict, than, words)} ({confidence}), {_counts(verdict)}"
    elif verdict.outcome in ("better_size_uncertain", "worse_size_uncertain"):
        text = f"{candidate} looks {_change(verdict, than, words)}; size not yet separated from {margin}"
    elif verdict.outcome == "no_practical_difference":
        between = f" between {baseline} and {candidate}" if baseline else ""
        decimals = decimals_for(verdict.estimate_pct or 0.0)
        text = f"no difference{between} within {margin} ({_signed_with_interval(verdict)})"
        if verdict.detectable_but_small:
            text += f"; a real change of {_signed(verdict.estimate_pct, decimals)} is detectable but below the margin"
    else:
        between = f" between {baseline} and {candidate}" if baseline else ""
        not_worse = f", not worse by more than {verdict.margin_ratio * 100:g} %" if verdict.not_worse else ""
        text = f"inconclusive{between}: {_signed_with_interval(verdict)}{not_worse}; {_advice(verdict, seconds)}"
    if verdict.alpha != ALPHA:
        text += f"; one of several looks, at α {verdict.alpha:.2g}"
    if verdict.outlier_sensitive and verdict.hodges_lehmann_ci95_pct:
        text += f"; outlier-sensitive, by ranks {_interval(verdict.hodges_lehmann_ci95_pct)}"
    return text


def _too_early(verdict: Verdict, baseline: str, candidate: str, words: Words) -> str:
    """Why there is no verdict yet, and what the repetitions so far look like."""
    pair = f" on {candidate} against {baseline}" if baseline else ""
    text = f"too early for a verdict{pair}: {_so_many(verdict)}"
    if verdict.estimate_pct is None:
        return text
    than = f" than {baseline}" if baseline else ""
    if verdict.ci95_pct is None:
        return (
            f"{text}. So far {_signed(verdict.estimate_pct)}, an interval needs {MIN_FOR_INTERVAL} {_repeated(verdict)}"
        )
    if verdict.deciding_pct and (verdict.deciding_pct[0] > 0 or verdict.deciding_pct[1] < 0):
        return f"{text}. So far {candidate} is {_change(verdict, than, words)}"
    return f"{text}. So far {_signed_with_interval(verdict)}"


def _repeated(verdict: Verdict) -> str:
    return "sessions" if verdict.design == "sessions" else "repetitions"


def _counts(verdict: Verdict) -> str:
    if verdict.design == "sessions":
        return f"{verdict.n_b} runs against the noise of {verdict.n_a} sessions"
    return f"n={verdict.n_a}+{verdict.n_b}"


def _so_many(verdict: Verdict) -> str:
    if verdict.design == "sessions":
        return f"{verdict.n_a} of {MIN_FOR_VERDICT} earlier sessions that show how much sessions differ"
    return f"{min(verdict.n_a, verdict.n_b)} of {MIN_FOR_VERDICT} repetitions"


def _change(verdict: Verdict, than: str, words: Words) -> str:
    """ "faster by 6.3 % [5.5, 7.2]"; where less is better it says "faster, lower by ..." so that nobody misreads it."""
    estimate = verdict.estimate_pct or 0.0
    low, high = verdict.deciding_pct or (estimate, estimate)
    up = estimate > 0
    word = words.better if up == verdict.higher_is_better else words.worse
    decimals = decimals_for(estimate)
    size = f"{abs(estimate):.{decimals}f} % {_interval((low, high) if up else (-high, -low), decimals)}"
    if verdict.higher_is_better:
        return f"{word}{than} by {size}"
    return f"{word}{than}, {'higher' if up else 'lower'} by {size}"


def _advice(verdict: Verdict, seconds_per_repetition: float | None) -> str:
    more, needed = verdict.more_per_arm, verdict.needed_per_arm
    if verdict.design == "sessions":
        return f"sessions differ by {verdict.cov_pct or 0.0:.1f} % (CoV), a baseline in the same experiment does not"
    if more is None and 2 * verdict.rounding_pct >= 100 * verdict.margin_ratio:
        return f"the steps of the printed values alone make ±{verdict.rounding_pct:.1f} %: take a finer figure"
    if more is None or needed is None or needed - min(verdict.n_a, verdict.n_b) > MOST_WORTH_RUNNING:
        return f"reduce noise first (CoV {verdict.cov_pct or 0.0:.1f} %)"
    if seconds_per_repetition is None:
        return f"run at least {more} more per arm"
    return f"run at least {more} more per arm (≈{duration(2 * more * seconds_per_repetition)})"


def duration(seconds: float) -> str:
    """ "40 min" or "3 h 40": how long something is expected to take."""
    minutes = max(1, round(seconds / 60))
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d}"


def _signed_with_interval(verdict: Verdict) -> str:
    decimals = decimals_for(verdict.estimate_pct or 0.0) if verdict.detectable_but_small else 1
    interval = f" {_interval(verdict.deciding_pct, decimals)}" if verdict.deciding_pct else ""
    return f"{_signed(verdict.estimate_pct, decimals)}{interval}"


def _signed(value_pct: float | None, decimals: int = 1) -> str:
    if decimals == 1:
        return signed_percent(value_pct or 0.0)
    return f"{'+' if (value_pct or 0.0) > 0 else ''}{decimal_text(value_pct or 0.0, decimals)} %"


def _interval(interval: Interval, decimals: int = 1) -> str:
    return f"[{decimal_text(interval[0], decimals)}, {decimal_text(interval[1], decimals)}]"
