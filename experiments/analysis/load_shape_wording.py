"""What is said of the course of a load, and how much it weighs."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.analysis.findings import Course, Finding, Level, Thresholds, percent
from experiments.analysis.load_shape import Shape, Stretch

CHECK = "steady_state"
SOURCE = "scan statistic (Olshen et al., doi 10.1093/biostatistics/kxh008); the limits are BenchHub's choice"
MAX_NAMED = 3


def finding_of(shape: Shape, course: Course, window_s: float, limits: Thresholds) -> Finding | None:
    """The finding for a course that is not even; None for one that is, or that is too short to tell."""
    if shape.kind in ("even", "too_short") or (_warms_up(shape) and shape.shift_ratio < limits.warm_up_ratio / 2):
        return None
    told = {
        "dead": _dead,
        "beginning": _beginning,
        "end": _end,
        "stretch": _stretch,
        "slope": _slope,
        "waves": _waves,
        "dips": _dips,
    }[shape.kind](shape, window_s)
    text = f"{told}{_lost(shape)} ({course.source})."
    return Finding(CHECK, _level(shape, window_s, limits), text, _evidence(shape, course), SOURCE)


def _level(shape: Shape, window_s: float, limits: Thresholds) -> Level:
    """Invalid when the mean is not that of the load that was on, or when the warm-up lies in the window."""
    if shape.dead_s > limits.network_stall_invalid_ratio * window_s:
        return "invalid"
    return "invalid" if _warms_up(shape) or shape.lost_ratio > limits.load_lost_ratio else "warn"


def _warms_up(shape: Shape) -> bool:
    return shape.kind == "beginning" and shape.stretches[0].ratio < 0


def _dead(shape: Shape, window_s: float) -> str:
    first, last = shape.stretches[0], shape.stretches[-1]
    if len(shape.stretches) == 1 and last.end_s >= window_s - 1.5 * shape.step_s:
        return f"The load was dead from {_seconds(last.begin_s)} on, for {_seconds(shape.dead_s)} of {window_s:.0f} s"
    if len(shape.stretches) == 1 and first.begin_s < shape.step_s:
        return f"The load began only after {_seconds(first.end_s)} of {window_s:.0f} s"
    return (
        f"The load stood still for {_seconds(shape.dead_s)} of {window_s:.0f} s: "
        f"{_places(shape.stretches, window_s, shape.step_s)}"
    )


def _beginning(shape: Shape, window_s: float) -> str:
    one = shape.stretches[0]
    if one.ratio < 0:
        return (
            f"The warm-up was not over: in the first {one.end_s:.0f} s of {window_s:.0f} s the load was "
            f"{percent(-one.ratio)} below that of the rest; warm up for longer"
        )
    return f"The load jumped at {one.end_s:.0f} s: before that it was {percent(one.ratio)} above the rest"


def _end(shape: Shape, window_s: float) -> str:
    one = shape.stretches[0]
    if one.ratio > 0 and one.begin_s >= window_s / 2:
        return (
            f"The load jumped at {one.begin_s:.0f} s: it came to its level only then, {percent(one.ratio)} above "
            "what it was before"
        )
    return f"The load jumped at {one.begin_s:.0f} s: from then on it was {_compared(one.ratio)} before"


def _stretch(shape: Shape, window_s: float) -> str:
    one = shape.stretches[0]
    return f"From {one.begin_s:.0f} s to {one.end_s:.0f} s the load was {_compared(one.ratio)} in the rest"


def _slope(shape: Shape, window_s: float) -> str:
    way = "rose" if shape.slope_ratio > 0 else "fell"
    return (
        f"The load came to no steady state: it {way} all along the {window_s:.0f} s, by "
        f"{percent(abs(shape.slope_ratio))} of its highest rate"
    )


def _waves(shape: Shape, window_s: float) -> str:
    return (
        f"The load came to no steady state: it went up and down, {shape.crossings + 1} times in {window_s:.0f} s "
        "between levels that are at least 10 % apart"
    )


def _dips(shape: Shape, window_s: float) -> str:
    return (
        f"The load dipped {shape.dips} times in {window_s:.0f} s, for one or two steps of {shape.step_s:g} s each; "
        f"that took {percent(shape.dips_ratio, 1)} of it"
    )


def _compared(ratio: float) -> str:
    return f"{percent(abs(ratio))} {'above' if ratio > 0 else 'below'} what it was"


def _places(stretches: Sequence[Stretch], window_s: float, step_s: float) -> str:
    said = []
    for one in stretches[:MAX_NAMED]:
        if one.begin_s < step_s:
            said.append(f"until {_seconds(one.end_s)}")
        elif one.end_s >= window_s - 1.5 * step_s:
            said.append(f"from {_seconds(one.begin_s)} on")
        else:
            said.append(f"from {one.begin_s:g} to {_seconds(one.end_s)}")
    more = len(stretches) - MAX_NAMED
    return ", ".join(said) + (f" and {more} more times" if more > 0 else "")


def _lost(shape: Shape) -> str:
    if shape.lost_ratio < 0.01:
        return ""
    return f". Its mean is {percent(shape.lost_ratio)} below the rate while it was on, {shape.active:,.4g} per second"


def _seconds(seconds: float) -> str:
    return f"{seconds:g} s"


def _evidence(shape: Shape, course: Course) -> dict[str, float | str]:
    evidence: dict[str, float | str] = {
        "series": course.source,
        "shape": shape.kind,
        "steps": shape.steps,
        "step_s": shape.step_s,
        "mean": round(shape.mean, 3),
        "active_rate": round(shape.active, 3),
        "lost_ratio": round(shape.lost_ratio, 4),
    }
    if shape.dead_s:
        evidence["dead_s"] = shape.dead_s
    if shape.stretches:
        spans = [f"{one.begin_s:g} to {one.end_s:g}" for one in shape.stretches[:MAX_NAMED]]
        evidence["stretches_s"] = ", ".join(spans)
    if shape.slope_ratio:
        evidence["slope_ratio"] = round(shape.slope_ratio, 4)
    if shape.dips:
        evidence |= {"dips": shape.dips, "dips_ratio": round(shape.dips_ratio, 4)}
    return evidence
