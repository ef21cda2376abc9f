"""The figures of a benchmark of a team's own, by BenchHub's names for them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from agents.base.errors import ParseError
from agents.drivers.base.unusable import ALL_FAILED, NO_REQUEST, why_unusable
from agents.drivers.command.bounds import check_bounds
from agents.formats.json_document import JsonObject, read_object
from agents.results.contradictions import contradiction_in
from agents.results.report import LatencyBasis, LatencySummary, LoadErrors, LoadModel, LoadReport, OwnMetric

FORMAT = "figures-json"
MAX_VALUE = 1e18
MAX_OWN = 100
COUNTS = (
    "requests",
    "bytes",
    "errors_connect",
    "errors_read",
    "errors_write",
    "errors_timeout",
    "errors_status",
    "errors_other",
)
KNOWN = (
    "throughput_rps",
    "duration_s",
    "bytes_per_s",
    "latency_mean_ms",
    "latency_stdev_ms",
    "latency_min_ms",
    "latency_max_ms",
    *COUNTS,
)
"""Beside these, `latency_p99_ms` with any percentile."""

NAME = re.compile(r"[a-z][a-z0-9_.]{0,59}", re.ASCII)
UNIT = re.compile(r"[^\x00-\x1f\x7f]{1,20}")
_GROUPED = re.compile(r"[+-]?[0-9]{1,3}(?:,[0-9]{3}){1,6}(?:\.[0-9]{1,30})?", re.ASCII)
_NUMBER = re.compile(r"[+-]?(?:[0-9]{1,30}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})(?:[eE][+-]?[0-9]{1,3})?", re.ASCII)
_PERCENTILE = re.compile(r"latency_p([0-9]{1,3}(?:\.[0-9]{1,6})?)_ms", re.ASCII)


def is_known(name: str) -> bool:
    """Whether BenchHub has unit and direction of this figure itself."""
    return name in KNOWN or percentile_of(name) is not None


def percentile_of(name: str) -> str | None:
    """ "99.9" of `latency_p99.9_ms`; None for another name."""
    match = _PERCENTILE.fullmatch(name)
    return f"{float(match[1]):g}" if match and 0 < float(match[1]) <= 100 else None


def report_of(
    values: Mapping[str, float],
    own: Sequence[OwnMetric] = (),
    *,
    load_model: LoadModel = "closed",
    latency_basis: LatencyBasis = "service_time",
) -> LoadReport:
    """The report of known figures and a team's own ones. ParseError when there is none, or one makes no sense."""
    if not values and not own:
        raise ParseError("there is no figure in the output", line=1)
    for name, value in values.items():
        if not math.isfinite(value) or not 0 <= value <= MAX_VALUE:
            raise ParseError(f"{name} is {value:g}, but it must be a number of at least 0", line=1)
        if name in COUNTS and value != math.floor(value):
            raise ParseError(f"{name} is {value:g}, but it must be a whole number", line=1)
    counts = {name: int(values[name]) for name in COUNTS if name in values}
    percentiles = {p: value for name, value in values.items() if (p := percentile_of(name)) is not None}
    mean, stdev, least, most = (values.get(f"latency_{name}_ms") for name in ("mean", "stdev", "min", "max"))
    latency = LatencySummary(mean, stdev, least, most, percentiles_ms=percentiles)
    errors = LoadErrors(**{name.removeprefix("errors_"): n for name, n in counts.items() if name.startswith("errors_")})
    requests, duration_s = counts.get("requests"), values.get("duration_s")
    rate = values.get("throughput_rps")
    if rate is None and requests is not None and duration_s:
        rate = requests / duration_s
        if rate > MAX_VALUE:
            raise ParseError(f"{requests} requests in {duration_s:g} s is no rate that a server can have", line=1)
    why = why_unusable(requests, errors) if requests is not None else NO_REQUEST if rate == 0 else None
    if why is None and requests is not None and errors.total >= requests:
        why = ALL_FAILED
    report = LoadReport(
        "command",
        FORMAT,
        load_model,
        latency_basis,
        usable=why is None,
        why=why,
        duration_s=duration_s,
        requests=requests,
        throughput_rps=rate,
        bytes_read=counts.get("bytes"),
        bytes_per_s=values.get("bytes_per_s"),
        errors=errors,
        latency=latency if latency != LatencySummary() else None,
        own_metrics=tuple(own),
    )
    if (contradiction := contradiction_in(report)) is not None:
        raise ParseError(contradiction, line=1)
    return report


def read_json(text: str) -> LoadReport:
    """The report in one JSON object whose names are those of BenchHub; what surrounds it is passed over.

    A figure of another name is an object with `value`, `unit` and `direction`: docs/drivers.md. Raises ParseError.
    """
    found = read_object(text, "the benchmark")
    values: dict[str, float] = {}
    own: list[OwnMetric] = []
    for name in found.names():
        if name not in found:
            continue
        if is_known(name):
            values[name] = found.number(name)
        else:
            own.append(_own(name, found))
    if len(own) > MAX_OWN:
        raise ParseError(f"there are {len(own)} figures of its own in the output; at most {MAX_OWN} are read", line=1)
    return report_of(values, own)


def _own(name: str, found: JsonObject) -> OwnMetric:
    if not NAME.fullmatch(name):
        raise found.error(name, "named in small letters, digits, _ and .")
    metric = found.object(name)
    unit, direction = metric.text("unit"), metric.text("direction")
    if not UNIT.fullmatch(unit):
        raise metric.error("unit", "a unit of at most 20 characters")
    value = number_in(metric.at(["value"]))
    if value is None:
        raise metric.error("value", "a number")
    if direction not in ("higher", "lower"):
        raise metric.error("direction", "higher or lower")
    low, high = (number_in(metric.at([side])) if side in metric else None for side in ("low", "high"))
    check_bounds(name, value, unit, low, high)
    return OwnMetric(name, value, unit, "higher" if direction == "higher" else "lower")


def number_in(value: Any) -> float | None:
    """The number in a JSON value or in a text such as `1,234.5` or `3.2e4`, of any unit; None when there is none."""
    if isinstance(value, str):
        text = value.strip()
        text = text.replace(",", "") if _GROUPED.fullmatch(text) else text
        if not _NUMBER.fullmatch(text):
            return None
        value = float(text)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) <= MAX_VALUE else None
