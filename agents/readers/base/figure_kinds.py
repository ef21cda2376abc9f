"""What a figure of a result file means: its unit, and which of two values is the better one. Its name tells both."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Direction = Literal["higher", "lower"]


@dataclass(frozen=True)
class FigureKind:
    """The unit of a figure; `direction` None: neither more nor less of it is better, as of a number of requests."""

    unit: str
    direction: Direction | None


_SAID: tuple[tuple[str, str, Direction | None], ...] = (
    (r"throughput_(?:ok_)?rps", "requests/s", "higher"),
    (r"throughput_ops_per_s|ops_per_s|operations_per_s", "ops/s", "higher"),
    (r"transactions_per_s", "transactions/s", "higher"),
    (r"transactions_per_min", "transactions/min", "higher"),
    (r"new_orders_per_min", "new orders/min", "higher"),
    (r"queries_per_s", "queries/s", "higher"),
    (r"events_per_s", "events/s", "higher"),
    (r"(?:items|elements)_per_s", "items/s", "higher"),
    (r"iops", "IOPS", "higher"),
    (r"(?:reads|writes|fsyncs)_per_s", "IO/s", "higher"),
    (r"(?:sent_)?bits_per_s", "bits/s", "higher"),
    (r"(?:\w+_)?bytes_per_s", "bytes/s", "higher"),
    (r"hits_per_s", "hits/s", "higher"),
    (r"misses_per_s", "misses/s", "lower"),
    (r"(?:errors|errors_ignored|reconnects)_per_s", "errors/s", "lower"),
    (
        r"(?:latency|clat|slat|schedule_lag|percentiles[1-4]|time_to_first_byte|connect|jitter)_(?:.+_)?ms",
        "ms",
        "lower",
    ),
    (r"(?:connect|jitter)_ms", "ms", "lower"),
    (r"(?:time|real_time|cpu_time)(?:_.+)?_ns", "ns", "lower"),
    (r"time_.+_s|cpu_(?:user|system)_s|iqr_s", "s", "lower"),
    (r"change_.+_ratio", "ratio", None),
    (r"change_p", "", None),
    (r"alloc_bytes_per_op", "bytes/op", "lower"),
    (r"allocs_per_op", "allocs/op", "lower"),
    (r"gc_gen[0-2]_collections", "collections", "lower"),
    (
        r"errors_\w+|transactions_(?:failed|late)|lost_packets|retransmits|reconnects|vusers_failed",
        "errors",
        "lower",
    ),
    (r"transactions_(?:retried|skipped)|retries", "count", "lower"),
    (r"lost_pct", "%", "lower"),
    (r"cpu_\w+_pct", "%", None),
    (r"duration_s", "s", None),
    (r"(?:first|last)_us", "us", None),
    (r"(?:sent_)?bytes|body_bytes_mean", "bytes", None),
    (r"(?:bytes|elements|units)_per_iteration", "count", None),
    (r"score|score_error", "score", None),
    (
        r"requests(?:_ok)?|responses|operations|transactions|queries(?:_\w+)?|events|samples|iterations",
        "count",
        None,
    ),
    (r"packets|calls|concurrency|interval_count|vusers_(?:created|completed)", "count", None),
    (r"\w+_bins(?:_total)?|error", "count", None),
)
_KINDS = tuple((re.compile(pattern), FigureKind(unit, direction)) for pattern, unit, direction in _SAID)


def figure_kind(name: str) -> FigureKind | None:
    """The unit and direction of a figure by its name; None for one that is no number, such as counts by status code."""
    return next((kind for pattern, kind in _KINDS if pattern.fullmatch(name)), None)
