"""Overload arithmetic of an open load model: what latency a driver must report when the server cannot keep up."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

Flag = Literal[
    "SATURATED",
    "NEARLY_SATURATED",
    "INVALID_CONNECT_ERRORS",
    "SOCKET_TIMEOUTS",
    "LOAD_STOPPED_EARLY",
]

# wrk2 forgets its first latencies: it resets the histogram after 10 s + 5 ms per connection of a thread.
CALIBRATION_BASE_S = 10.0
CALIBRATION_PER_CONNECTION_S = 0.005


@dataclass(frozen=True)
class Saturation:
    """How the reported load compares with the offered one.

    `t_last_s` estimates when load really stopped, counted from its start, and `active_rate_rps` the throughput until
    then. The predicted latencies are those of a server that works at a steady rate below the offered one; they are
    None when it kept up or when no latency window is left.
    """

    achieved_ratio: float
    t_last_s: float | None
    active_rate_rps: float
    window_start_s: float
    window_end_s: float
    predicted_mean_ms: float | None
    predicted_stdev_ms: float | None
    predicted_max_ms: float | None
    flags: tuple[Flag, ...]


def examine(
    *,
    offered_rate_rps: float,
    throughput_rps: float,
    requests: int,
    duration_s: float,
    connections: int | None,
    threads: int | None,
    latency_max_ms: float | None,
    errors_connect: int = 0,
    errors_timeout: int = 0,
    saturated_below_ratio: float = 0.99,
    nearly_below_ratio: float = 0.995,
    connect_error_ratio: float = 0.01,
    stopped_early_ratio: float = 0.95,
) -> Saturation:
    """Apply the arithmetic to one report of a tool that measures latency from the planned send time (wrk2).

    A completion at time t carries a backlog of t * (1 - X/R). So latency is uniform between the backlog at the start
    and at the end of the window, and the last request completed at about max latency + requests / offered rate.
    ValueError: a rate, a duration or a number of connections or threads that cannot be.
    """
    for name, value in (("offered_rate_rps", offered_rate_rps), ("duration_s", duration_s)):
        if not (math.isfinite(value) and value > 0):
            raise ValueError(f"{name} must be positive, got {value}")
    for name, count in (("connections", connections), ("threads", threads)):
        if count is not None and count < 1:
            raise ValueError(f"{name} must be at least 1, got {count}")

    flags: list[Flag] = []
    achieved = throughput_rps / offered_rate_rps
    if achieved < saturated_below_ratio:
        flags.append("SATURATED")
    elif achieved < nearly_below_ratio:
        flags.append("NEARLY_SATURATED")
    if connections and errors_connect > connect_error_ratio * connections:
        flags.append("INVALID_CONNECT_ERRORS")
    if errors_timeout > 0:
        flags.append("SOCKET_TIMEOUTS")

    t_last_s = None if latency_max_ms is None else latency_max_ms / 1000 + requests / offered_rate_rps
    end_s, active_rps = duration_s, throughput_rps
    if t_last_s is not None and 0 < t_last_s < stopped_early_ratio * duration_s:
        flags.append("LOAD_STOPPED_EARLY")
        end_s, active_rps = t_last_s, requests / t_last_s

    per_thread = connections // threads if connections and threads else 0
    start_s = CALIBRATION_BASE_S + CALIBRATION_PER_CONNECTION_S * per_thread
    if start_s >= duration_s:
        start_s = 0.0  # too short to calibrate: the histogram was never reset
    backlog = 1 - active_rps / offered_rate_rps
    predictable = achieved < saturated_below_ratio and start_s < end_s and backlog > 0
    return Saturation(
        achieved_ratio=achieved,
        t_last_s=t_last_s,
        active_rate_rps=active_rps,
        window_start_s=start_s,
        window_end_s=end_s,
        predicted_mean_ms=(start_s + end_s) / 2 * backlog * 1000 if predictable else None,
        predicted_stdev_ms=(end_s - start_s) * backlog / math.sqrt(12) * 1000 if predictable else None,
        predicted_max_ms=end_s * backlog * 1000 if predictable else None,
        flags=tuple(flags),
    )
