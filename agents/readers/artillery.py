"""Artillery's JSON: all requests, and each endpoint of the plugin metrics-by-endpoint.

Source: Artillery 2.0, core/lib/ssms.js.
"""

from __future__ import annotations

import re

from agents.readers.base.json_node import Node, load_json
from agents.readers.base.named_result import NamedResult, Readout
from agents.readers.base.result_reader import ResultForm, ResultReader, Source

FORMAT = "artillery-json"
_ENDPOINT = "plugins.metrics-by-endpoint."
_TIMES = f"{_ENDPOINT}response_time."
_COUNTED = re.compile(r"(.*)\.(codes|errors)\.(.*)", re.DOTALL)
_NAMES = (
    ("latency_mean_ms", "mean"),
    ("latency_min_ms", "min"),
    ("latency_max_ms", "max"),
    ("latency_p50_ms", "p50"),
    ("latency_p75_ms", "p75"),
    ("latency_p90_ms", "p90"),
    ("latency_p95_ms", "p95"),
    ("latency_p99_ms", "p99"),
    ("latency_p99.9_ms", "p999"),
)


def read(source: Source) -> Readout:
    """The aggregate and the endpoints. Raises ParseError."""
    document, _ = load_json(source.text, "Artillery")
    aggregate = document.at("aggregate")
    counters = {name: value.count() for name, value in aggregate.at("counters").items()}
    summaries = aggregate.at("summaries")
    whole = _whole(aggregate, counters, summaries.find("http.response_time"))
    endpoints: dict[str, tuple[dict[str, int], dict[str, int]]] = {
        name.removeprefix(_TIMES): ({}, {}) for name, _ in summaries.items() if name.startswith(_TIMES)
    }
    for name, seen in counters.items():
        if name.startswith(_ENDPOINT) and (match := _COUNTED.fullmatch(name.removeprefix(_ENDPOINT))):
            codes, errors = endpoints.setdefault(match[1], ({}, {}))
            (codes if match[2] == "codes" else errors)[match[3]] = seen
    results = [whole]
    for name, (codes, errors) in endpoints.items():
        times = summaries.find(f"{_TIMES}{name}")
        figures = {"responses": sum(codes.values()), "status_codes": codes, "errors": errors, **_latency(times)}
        results.append(NamedResult(name, figures, why="" if times else "no response at all"))
    periods = document.find("intermediate")
    beside = {"periods": len(periods.elements()) if periods is not None else None}
    return Readout("artillery", FORMAT, tuple(results), None, beside, whole.why)


def _whole(aggregate: Node, counters: dict[str, int], times: Node | None) -> NamedResult:
    codes = {name.removeprefix("http.codes."): n for name, n in counters.items() if name.startswith("http.codes.")}
    errors = {name.removeprefix("errors."): n for name, n in counters.items() if name.startswith("errors.")}
    begin_ms, end_ms = aggregate.known("firstMetricAt"), aggregate.known("lastMetricAt")
    figures: dict[str, object] = {
        "requests": counters.get("http.requests"),
        "responses": counters.get("http.responses", 0 if "http.requests" in counters else None),
        "throughput_rps": aggregate.known("rates", "http.request_rate"),
        "errors": errors,
        "status_codes": codes,
        "errors_total": sum(errors.values()),
        "errors_status": sum(n for code, n in codes.items() if code[:1] in "45"),
        **{f"vusers_{what}": counters.get(f"vusers.{what}") for what in ("created", "completed", "failed")},
        "bytes": counters.get("http.downloaded_bytes"),
        **_latency(times),
        "duration_s": (end_ms - begin_ms) / 1e3 if begin_ms and end_ms else None,
    }
    return NamedResult("aggregate", figures, why="" if figures["responses"] else "no response at all")


def _latency(times: Node | None) -> dict[str, float | None]:
    return {ours: times.known(theirs) if times is not None else None for ours, theirs in _NAMES}


def read_old(source: Source) -> Readout:
    """The aggregate of Artillery 1, which has no endpoints. Raises ParseError."""
    document, _ = load_json(source.text, "Artillery")
    aggregate = document.at("aggregate")
    latency = aggregate.at("latency")
    codes, errors = ({name: n.count() for name, n in aggregate.at(what).items()} for what in ("codes", "errors"))
    responses = sum(codes.values())
    figures: dict[str, object] = {
        "requests": aggregate.known_count("requestsCompleted"),
        "responses": responses,
        "throughput_rps": aggregate.known("rps", "mean"),
        "errors": errors,
        "status_codes": codes,
        "errors_total": sum(errors.values()),
        "errors_status": sum(n for code, n in codes.items() if code[:1] in "45"),
        "vusers_created": aggregate.known_count("scenariosCreated"),
        "vusers_completed": aggregate.known_count("scenariosCompleted"),
        "latency_min_ms": latency.known("min"),
        "latency_max_ms": latency.known("max"),
        "latency_p50_ms": latency.known("median"),
        "latency_p95_ms": latency.known("p95"),
        "latency_p99_ms": latency.known("p99"),
    }
    whole = NamedResult("aggregate", figures, why="" if responses else "no response at all")
    periods = document.find("intermediate")
    beside = {"periods": len(periods.elements()) if periods is not None else None}
    return Readout("artillery", "artillery-1-json", (whole,), None, beside, whole.why)


def _is_old(head: str) -> bool:
    return re.match(r'\s*\{\s*"aggregate"\s*:\s*\{', head) is not None and '"scenariosCreated"' in head


ARTILLERY = ResultReader(
    "artillery",
    "Artillery",
    (
        ResultForm(FORMAT, lambda head: re.match(r'\s*\{\s*"aggregate"\s*:\s*\{\s*"counters"', head) is not None, read),
        ResultForm("artillery-1-json", _is_old, read_old),
    ),
    ("throughput_rps", "latency_p50_ms", "latency_mean_ms"),
)
