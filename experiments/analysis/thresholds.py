"""The limits of the validity checks and of the search for change points: the default, why, and between which values.

The reasons in words: docs/validity.md, docs/history.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from experiments.analysis.changepoints import HISTORY

Unit = Literal["ratio", "s", "factor", "chance", "points", "yes or no"]
OURS = "BenchHub's choice"


def _limit(default: float, low: float, high: float, unit: Unit, why: str, source: str = OURS) -> Any:
    return Field(default, ge=low, le=high, description=why, json_schema_extra={"unit": unit, "source": source})


class Thresholds(BaseModel):
    """The limits by which runs are judged and histories searched. Ratios: 0.01 is 1 %."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    error_budget_ratio: float = _limit(
        0.0,
        0,
        0.5,
        "ratio",
        "A failed request is cheaper than a good one, so every error flatters the throughput.",
    )
    connect_error_ratio: float = _limit(
        0.01, 0, 1, "ratio", "A connection that was never made sends no load; one in a hundred hardly shows."
    )
    saturated_below_ratio: float = _limit(
        0.99,
        0.5,
        1,
        "ratio",
        "Below 99 % of the offered rate latency is the wait in the backlog and grows with the length of the run.",
        "overload arithmetic, docs/verdicts.md",
    )
    nearly_saturated_below_ratio: float = _limit(
        0.995,
        0.5,
        1,
        "ratio",
        "Between 99 % and 99.5 % a short backlog is likely: worth a look, not yet a wrong number.",
        "overload arithmetic, docs/verdicts.md",
    )
    stopped_early_ratio: float = _limit(
        0.95, 0.5, 1, "ratio", "Load that ended before 95 % of its time leaves dead time in every average."
    )
    short_duration_ratio: float = _limit(
        0.02, 0, 0.5, "ratio", "Tools end within a fraction of a second; 2 % shorter is a run that broke off.", OURS
    )
    stall_gap_ratio: float = _limit(
        1.5,
        1.05,
        10,
        "factor",
        "Healthy wrk runs have 1.0, a link that was cut for 5 of 8 s has 2.8.",
        "wrk source; the limit is BenchHub's choice",
    )
    little_tolerance_ratio: float = _limit(
        0.25,
        0.01,
        1,
        "ratio",
        "Rounding and ramps explain some percent of the gap, never a quarter.",
        "Little's law; the limit is BenchHub's choice",
    )
    driver_cpu_ratio: float = _limit(
        0.80,
        0.1,
        1,
        "ratio",
        "A driver above 80 % has queues of its own, which count as the server's.",
        "k6 documentation: keep 20 % idle",
    )
    driver_thread_ratio: float = _limit(
        0.99,
        0.5,
        1,
        "ratio",
        "A thread that never waits is the limit itself; sampling cuts its first and last tick, so not 100 %.",
    )
    driver_cpu_invalid: bool = Field(
        False,
        description="A full driver understates the server, so the figure is a lower bound: a warning, unless you need "
        "every figure to be the server's own.",
        json_schema_extra={"unit": "yes or no", "source": OURS},
    )
    sut_cpu_ratio: float = _limit(
        0.90, 0.1, 1, "ratio", "A server that gives all it can keeps its CPUs busy; idle ones mean another limit."
    )
    neighbours_warn_ratio: float = _limit(
        0.01, 0, 1, "ratio", "Below 1 % of the server's CPUs, other processes are within the noise of a run."
    )
    neighbours_invalid_ratio: float = _limit(
        0.05, 0, 1, "ratio", "Above 5 % the neighbours take more than the changes that most teams look for."
    )
    steal_warn_ratio: float = _limit(0.01, 0, 1, "ratio", "Below 1 % stolen time is within the noise of a run.")
    steal_invalid_ratio: float = _limit(
        0.05, 0, 1, "ratio", "Above 5 % other guests take more than the changes that most teams look for."
    )
    memory_available_ratio: float = _limit(
        0.05, 0, 0.9, "ratio", "With less than 5 % of the memory left the kernel works to find free pages."
    )
    network_stall_invalid_ratio: float = _limit(
        0.10, 0, 1, "ratio", "A load that stood still for a tenth of the window is not the load that was asked for."
    )
    clock_warn_s: float = _limit(0.5, 0, 60, "s", "Half a second shifts two charts by less than a sample or two.")
    clock_invalid_ratio: float = _limit(
        0.01,
        0,
        1,
        "ratio",
        "What is shifted by more than 1 % of the window cannot be laid over each other.",
        "like SPECjbb2015's offset field; the limit is BenchHub's choice",
    )
    start_spread_warn_ratio: float = _limit(
        0.01, 0, 1, "ratio", "Tools that begin 1 % of the window apart can be wrong by 1 % in their sum."
    )
    start_spread_invalid_ratio: float = _limit(
        0.05, 0, 1, "ratio", "Above 5 % the sum is further off than the changes that most teams look for."
    )
    frequency_between_arms_ratio: float = _limit(
        0.02, 0.001, 0.5, "ratio", "Two variants at clock speeds 2 % apart differ by the clock alone."
    )
    port_reuse_s: float = _limit(
        60,
        1,
        240,
        "s",
        "Linux keeps a closed connection's port for 60 s, so ports / 60 s is the highest lasting rate of new ones.",
        "Linux: TCP_TIMEWAIT_LEN",
    )
    gc_pause_ratio: float = _limit(
        0.05,
        0.001,
        1,
        "ratio",
        "The Parallel collector's own goal is 1 %; above 5 % the heap is measured, not the server.",
        "HotSpot tuning guide; the limit is BenchHub's choice",
    )
    monitor_missing_ratio: float = _limit(
        0.10, 0, 1, "ratio", "A mean over nine tenths of the window still speaks for the window."
    )
    warm_up_ratio: float = _limit(
        0.02,
        0.001,
        1,
        "ratio",
        "A first half that differs by less than 2 % from the second cannot shift the mean by more than 1 %.",
    )
    drift_ratio: float = _limit(
        0.02, 0.001, 1, "ratio", "A trend or jump below 2 % over the window is smaller than what most teams look for."
    )
    load_lost_ratio: float = _limit(
        0.10, 0.001, 1, "ratio", "A mean that is a tenth below the rate while the load was on is the rate of neither."
    )

    history_p: float = _limit(
        HISTORY.p,
        1e-12,
        0.01,
        "chance",
        "A history is looked at after every run; with this limit at most 5 % of 100 nights of independent noise alarm.",
        "simulated: python -m bench.simulations",
    )
    history_margin_ratio: float = _limit(
        0.0,
        0,
        1,
        "ratio",
        "A smaller change of level is none. 0 is the metric's own: 2 % for most, 5 % for p99, as tails are noisier.",
    )
    history_noise_floor_ratio: float = _limit(
        0.0,
        0,
        0.5,
        "ratio",
        "The noise from point to point is taken to be at least this; 0 takes what the trend shows, which suits all "
        "figures but those that hardly vary.",
    )
    history_window: int = _limit(
        HISTORY.window,
        20,
        500,
        "points",
        "Stretches of so many points are searched at once; more find smaller changes and take longer.",
        "Hunter, doi 10.1145/3578244.3583719",
    )
    history_confirmed_after: int = _limit(
        HISTORY.min_segment,
        3,
        50,
        "points",
        "Four slow nights of four happen by chance where one in ten is slow; five of five hardly do.",
        "simulated: python -m bench.simulations",
    )
    history_mutes_improvements: bool = Field(
        False,
        description="Improvements are news to most teams; where they are not, they are still drawn and listed.",
        json_schema_extra={"unit": "yes or no", "source": OURS},
    )

    @model_validator(mode="after")
    def _in_order(self) -> Thresholds:
        pairs = (
            ("saturated_below_ratio", "nearly_saturated_below_ratio"),
            ("steal_warn_ratio", "steal_invalid_ratio"),
            ("neighbours_warn_ratio", "neighbours_invalid_ratio"),
            ("start_spread_warn_ratio", "start_spread_invalid_ratio"),
        )
        for lower, upper in pairs:
            if getattr(self, lower) > getattr(self, upper):
                raise ValueError(f"{lower} must not be above {upper}")
        return self

    @model_validator(mode="after")
    def _window_holds_both_sides(self) -> Thresholds:
        if self.history_window < 2 * self.history_confirmed_after:
            raise ValueError("history_window must be at least twice history_confirmed_after")
        return self

    def changed(self) -> dict[str, float]:
        """The values that are not the defaults."""
        return {
            name: value for name, value in self.model_dump().items() if value != Thresholds.model_fields[name].default
        }


DEFAULT_THRESHOLDS = Thresholds()

OF_HISTORY = "history_"
"""What the names of the limits begin with that can be set for a series and a metric alone."""

LIMITS_OF: Mapping[str, tuple[str, ...]] = {
    "report": (),
    "errors": ("error_budget_ratio",),
    "connect_errors": ("connect_error_ratio",),
    "load_lasted": ("stopped_early_ratio",),
    "offered_rate": ("saturated_below_ratio", "nearly_saturated_below_ratio"),
    "window": (),
    "dropped": ("saturated_below_ratio",),
    "tool_thresholds": (),
    "duration": ("short_duration_ratio",),
    "stall": ("stall_gap_ratio",),
    "latency_complete": (),
    "latency_basis": ("nearly_saturated_below_ratio",),
    "littles_law": ("little_tolerance_ratio",),
    "steady_state": ("warm_up_ratio", "drift_ratio", "load_lost_ratio", "network_stall_invalid_ratio"),
    "hosts": (),
    "exit_status": (),
    "boot_id": (),
    "driver_cpu": ("driver_cpu_ratio", "driver_thread_ratio", "driver_cpu_invalid"),
    "sut_cpu": ("sut_cpu_ratio", "saturated_below_ratio"),
    "shared_cpus": (),
    "neighbours": ("neighbours_warn_ratio", "neighbours_invalid_ratio"),
    "steal": ("steal_warn_ratio", "steal_invalid_ratio"),
    "swap": (),
    "memory": ("memory_available_ratio",),
    "governor": (),
    "frequency": ("frequency_between_arms_ratio",),
    "throttle": (),
    "cpu_quota": (),
    "numa": (),
    "ports": ("port_reuse_s",),
    "gc": ("gc_pause_ratio",),
    "threads": (),
    "network_stall": ("network_stall_invalid_ratio",),
    "clocks": ("clock_warn_s", "clock_invalid_ratio"),
    "start_together": ("start_spread_warn_ratio", "start_spread_invalid_ratio"),
    "monitors": ("monitor_missing_ratio",),
    "recorders": (),
    "system_limit": (),
}
"""Every check by its name, with the thresholds it looks at. docs/validity.md has a paragraph on each."""


@dataclass(frozen=True)
class Limit:
    """One threshold as people see it. `low` and `high` are the bounds within which a team may set it."""

    name: str
    default: float
    unit: Unit
    low: float
    high: float
    reason: str
    source: str
    checks: tuple[str, ...]


def limits() -> Iterator[Limit]:
    """Every threshold with its default and the reason for it, in the order of the settings page.

    What each rests on is its `source`. TypeError: a threshold was defined without a unit.
    """
    for name, field in Thresholds.model_fields.items():
        extra = field.json_schema_extra
        if not isinstance(extra, dict):
            raise TypeError(f"the threshold {name} has no unit")
        bounds = {kind: getattr(rule, kind) for rule in field.metadata for kind in ("ge", "le") if hasattr(rule, kind)}
        yield Limit(
            name=name,
            default=field.default,
            unit=extra["unit"],  # type: ignore[arg-type]
            low=bounds.get("ge", 0),
            high=bounds.get("le", 1),
            reason=field.description or "",
            source=str(extra["source"]),
            checks=tuple(check for check, names in LIMITS_OF.items() if name in names),
        )
