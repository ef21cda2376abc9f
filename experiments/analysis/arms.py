"""What must be the same for both sides of a comparison, apart from what is compared."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.analysis.findings import Finding, percent, skipped
from experiments.analysis.interval import mean_of
from experiments.analysis.thresholds import DEFAULT_THRESHOLDS, Thresholds

CHECK = "frequency"


def clocks_agree(
    baseline_mhz: Sequence[float],
    candidate_mhz: Sequence[float],
    *,
    names: tuple[str, str],
    thresholds: Thresholds = DEFAULT_THRESHOLDS,
) -> Finding:
    """Whether the CPUs of both variants ran at the same mean clock; else the comparison is one of clocks."""
    source = "BenchHub's choice"
    a, b = mean_of(baseline_mhz), mean_of(candidate_mhz)
    if a is None or b is None or a.value <= 0:
        return skipped(CHECK, "the SUT does not show the clock of its CPUs in runs of both variants", source)
    limit = thresholds.frequency_between_arms_ratio
    apart = round(abs(b.value / a.value - 1), 6)
    evidence = {"baseline_mhz": round(a.value, 1), "candidate_mhz": round(b.value, 1), "apart_ratio": round(apart, 4)}
    ran = f"the server's CPUs ran at {a.value:,.0f} MHz in {names[0]} and at {b.value:,.0f} MHz in {names[1]}"
    used = {"frequency_between_arms_ratio": limit}
    if apart > limit:
        text = (
            f"Not comparable: {ran}, {percent(apart, 1)} apart (limit {percent(limit, 1)}), and no recipe asks "
            "for that. Fix the governor and turbo, then run again."
        )
        return Finding(CHECK, "invalid", text, evidence, source, used)
    return Finding(CHECK, "ok", f"Comparable clocks: {ran}.", evidence, source, used)
