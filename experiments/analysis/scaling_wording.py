"""What a scaling measurement says, in sentences that need no statistics to be understood (docs/scaling.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from experiments.analysis.number_text import figure_text
from experiments.analysis.scaling import ENOUGH_FOR_LAW, FARTHEST_PEAK_RATIO, MIN_FOR_LAW, Parameter, ScalingLaw
from experiments.analysis.scaling_points import Efficiency, Instances, Quantised

UNDER_DRIVEN_RATIO = 0.90
FASTER_CLOCK_RATIO = 1.02
OTHERS_RATIO = 0.50
"""The kernel's network stack alone, which counts for no process, is not known to take this much beside a server."""


@dataclass(frozen=True)
class Conditions:
    """How a point was measured; None = not seen.

    How busy the SUT's CPUs were (1.0 = all of them), the share of them that the server's own process had, their clock.
    """

    cpu_ratio: float | None = None
    mhz: float | None = None
    server_ratio: float | None = None


def law_sentences(law: ScalingLaw | None, points: int) -> list[str]:
    """What the fitted law says and how far it can be trusted."""
    if law is None:
        return [f"{points} CPU counts are too few for a scaling law: measure at least {MIN_FOR_LAW}."]
    share = _interval(law.alpha, 100, " %", digits=3)
    one = _interval(law.gamma, 1, " requests/s")
    found = [f"One CPU does {one}; {share} of the work is done by one CPU at a time while the others wait."]
    limit, between = law.limit_rps, law.limit_ci95_rps
    if limit is not None and between is not None:
        interval = f"[{between[0]:,.0f}, {between[1]:,.0f}]"
        found.append(f"No number of CPUs can do more than {limit:,.0f} {interval} requests/s by this law.")
        optimum = law.optimum
        if optimum is not None and optimum.cpus <= FARTHEST_PEAK_RATIO * law.largest:
            share = f"{law.efficiency(optimum.cpus) * 100:.0f} %"
            found.append(
                f"At {optimum.cpus:.0f} CPUs each does only {share} of what one alone does: "
                f"{optimum.throughput_rps:,.0f} requests/s."
            )
    if law.peak is not None:
        found.append(
            f"The peak lies at {law.peak.cpus:.0f} CPUs with {law.peak.throughput_rps:,.0f} requests/s: beyond it, "
            "more CPUs make it slower."
        )
    elif law.computed_peak is not None:
        found.append(_no_peak(law))
    else:
        found.append("No peak is visible: keeping CPUs consistent with each other costs nothing that can be measured.")
    if points < ENOUGH_FOR_LAW:
        found.append(f"{points} CPU counts are few for a law: with fewer than {ENOUGH_FOR_LAW} take it as a sketch.")
    return found


def super_linear_sentence(point: Efficiency, base_cpus: float, base: Conditions, here: Conditions) -> str:
    """Why a point above the ideal line may be there, what is known about it first."""
    more = f"{point.cpus:g} CPUs do {point.ratio:.2f}"
    if point.ci95 is not None:
        more += f" [{point.ci95[0]:.2f}, {point.ci95[1]:.2f}]"
    unit = "one CPU" if base_cpus == 1 else f"{base_cpus:g} CPUs"
    text = f"{more} times the share of {unit}, which no machine does by itself."
    if base.cpu_ratio is not None and base.cpu_ratio < UNDER_DRIVEN_RATIO:
        busy = f"{base.cpu_ratio * 100:.0f} %"
        return f"{text} On {unit} the SUT was only {busy} busy: that point was not driven to its limit."
    if base.cpu_ratio is not None and base.server_ratio is not None:
        others = base.cpu_ratio - base.server_ratio
        if others > OTHERS_RATIO:
            its = "of it" if base_cpus == 1 else "of them"
            return (
                f"{text} On {unit} something else than the server used {others * 100:.0f} % {its}: that rate is not "
                "the server's own. The pages of these runs say what else was running."
            )
    if base.mhz and here.mhz and here.mhz > FASTER_CLOCK_RATIO * base.mhz:
        return f"{text} The clock was higher: {here.mhz:,.0f} MHz against {base.mhz:,.0f} MHz."
    if point.ci95 is None:
        text += " It is not known how sure this is: there are fewer than three repetitions."
    return f"{text} Look for caches that fit only now, another load, or rates that are cut off to whole numbers."


def quantised_sentence(found: Quantised) -> str:
    """Whether whole-number rates explain what looks super-linear."""
    if found.linear_k is None:
        return "The rates are whole numbers, but no straight line explains them: the step is real."
    low, high = found.linear_k
    return (
        "The rates are whole numbers, cut off: an artefact. A straight line of "
        f"{low:.4g} to {high:.4g} per CPU explains every point."
    )


def advice_sentence(advice: Instances, cpus: int, min_efficiency_ratio: float) -> str:
    """How many instances of how many CPUs."""
    if advice.instances == 1:
        share = f"{min_efficiency_ratio * 100:.0f} %"
        return f"One instance uses all {cpus} CPUs to at least {share}: more instances gain nothing."
    each = "1 CPU" if advice.cpus_each == 1 else f"{advice.cpus_each} CPUs"
    return (
        f"For {cpus} CPUs: {advice.instances} instances on {each} each, together about {advice.total_rps:,.0f} "
        f"requests/s, where one instance on all would do {advice.single_rps:,.0f}. This is a prediction: verify it by "
        "a run."
    )


def points_above(points: Sequence[Efficiency]) -> list[Efficiency]:
    """The points that are super-linear."""
    return [point for point in points if point.super_linear]


def _no_peak(law: ScalingLaw) -> str:
    computed = law.computed_peak
    if computed is not None and computed.cpus > FARTHEST_PEAK_RATIO * law.largest:
        return (
            f"No peak is visible: the formula puts it at {computed.cpus:,.0f} CPUs, more than twice the "
            f"{law.largest:g} that were measured, which is a guess."
        )
    return "No peak is certain: the data fit a law without one as well. Measure more CPU counts, or more repetitions."


def _interval(parameter: Parameter, factor: float, unit: str, *, digits: int = 4) -> str:
    rounding = abs(parameter.value) < 1e-9 and unit == " %"  # a fit ends at 0 only to within its last digits
    value = "0" if rounding else figure_text(parameter.value * factor, digits)
    if parameter.ci95 is None:
        return f"{value}{unit}"
    low, high = (max(0.0, end * factor) for end in parameter.ci95)
    return f"{value} [{figure_text(low, digits)}, {figure_text(high, digits)}]{unit}"
