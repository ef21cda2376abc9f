"""The text that k6 prints at the end of a test."""

from __future__ import annotations

import re
from dataclasses import replace

from agents.base.errors import ParseError
from agents.drivers.base.unusable import judged, refused
from agents.drivers.k6.json_report import thresholds_told
from agents.formats.report_lines import Lines
from agents.results.report import LatencySummary, LoadErrors, LoadReport

FORMAT = "k6-text"
MAX_LINES = 200_000

_DURATION = r"(?:[0-9]{1,12}(?:\.[0-9]{1,9})?(?:ns|us|µs|μs|ms|s|m|h)){1,4}"
_STEP = re.compile(r"([0-9.]{1,22})(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_SCENARIO = re.compile(r" +\* (\S{1,200}): ([0-9.]{1,20}) iterations/s for (\S{1,20}) \(.{1,200}", re.ASCII)
_USERS = re.compile(r" +\* (\S{1,200}): ([0-9]{1,9}) looping VUs for (\S{1,20}) \(.{1,200}", re.ASCII)
_ROW = re.compile(r" +(?:(?P<mark>[✓✗]) )?(?P<name>[a-z][a-z0-9_]{0,127})\.{2,200}: +(?P<said>.{1,400})", re.ASCII)
_METRIC = re.compile(r" +([a-z][a-z0-9_]{0,127}(?:\{[^{}]{1,300}\})?)", re.ASCII)
_THRESHOLD = re.compile(r" +([✓✗]) '([^']{1,300})' .{0,300}")
_TREND = re.compile(rf"([a-z]+(?:\([0-9.]{{1,9}}\))?)=({_DURATION}|0)(?: +|$)", re.ASCII)
_FAILED = re.compile(
    r"([0-9]{1,3}\.[0-9]{2})% +(?:([0-9]{1,15}) out of ([0-9]{1,15})|✓ ([0-9]{1,15}) +✗ ([0-9]{1,15}))", re.ASCII
)
_RATE = re.compile(r"([0-9]{1,15}) +([0-9]{1,15}(?:\.[0-9]{1,9})?)/s", re.ASCII)
_ERROR = re.compile(r'(?:.{0,300}level=error msg="?(.{1,600}?)"?|.*\bk6: (?:command )?not found.*)')
_MS_PER = {"ns": 1e-6, "us": 1e-3, "µs": 1e-3, "μs": 1e-3, "ms": 1.0, "s": 1e3, "m": 6e4, "h": 3.6e6}
_WANTED = ("http_req_duration", "http_req_failed", "http_reqs")


def read_text(text: str) -> LoadReport:
    """The report in the text. Raises ParseError."""
    lines = Lines(text)
    base = LoadReport("k6", FORMAT, "closed", "service_time")
    rows: dict[str, str] = {}
    limits: dict[str, bool] = {}
    metric = ""
    numbers: dict[str, int] = {}
    error = None
    for _ in range(MAX_LINES):
        if lines.ended:
            break
        line = lines.peek()
        if len(line) > 2000:
            lines.skip()
            continue
        if row := _ROW.fullmatch(line):
            name = row["name"]
            if name in rows:
                raise lines.error(f"a second row of {name}", hint="Give one report per file.")
            rows[name], numbers[name] = row["said"], lines.number
            if row["mark"]:  # before k6 1.0 the row of a metric says how its thresholds stand
                limits[name] = row["mark"] == "✓"
        elif match := _METRIC.fullmatch(line):
            metric = match[1]
        elif match := _THRESHOLD.fullmatch(line):
            limits[f"{metric} {match[2]}"] = match[1] == "✓"
        elif match := _SCENARIO.fullmatch(line):
            base = replace(base, load_model="open", offered_rate_rps=_number(match[2], lines))
        elif match := _USERS.fullmatch(line):
            base = replace(base, users=int(match[2]))
        elif error is None and (match := _ERROR.fullmatch(line)):
            error = (match[1] or line).strip()
        lines.skip()
    if not lines.ended:
        raise lines.error(f"more than {MAX_LINES} lines", hint="Is this the right file?")
    missing = [name for name in _WANTED if name not in rows]
    if error is not None and len(missing) == len(_WANTED):
        return refused(base, error)
    if missing:
        raise lines.error(f"expected the row of {missing[0]}", hint="Give the whole standard output of k6.")
    report = _report(base, rows, numbers)
    return replace(report, details={**report.details, **thresholds_told(limits)})


def _report(base: LoadReport, rows: dict[str, str], numbers: dict[str, int]) -> LoadReport:
    requests = _match(_RATE, "http_reqs", rows, numbers)
    outcome = _match(_FAILED, "http_req_failed", rows, numbers)
    failed = int(outcome[2] or outcome[4] or 0)
    details: dict[str, float | str] = {"errors_total": failed, "error_rate": float(outcome[1]) / 100}
    if "dropped_iterations" in rows:
        details["dropped_iterations"] = int(_match(_RATE, "dropped_iterations", rows, numbers)[1])
    report = replace(
        base,
        requests=int(requests[1]),
        throughput_rps=float(requests[2]),
        errors=LoadErrors(other=failed),
        latency=_latency(rows["http_req_duration"], numbers["http_req_duration"]) if int(requests[1]) else None,
        details=details,
    )
    return judged(report, failed=failed)


def _match(pattern: re.Pattern[str], name: str, rows: dict[str, str], numbers: dict[str, int]) -> re.Match[str]:
    match = pattern.fullmatch(rows[name].strip())
    if not match:
        raise ParseError(f"line {numbers[name]}: {name} has no figures that can be read", line=numbers[name])
    return match


def _latency(row: str, line: int) -> LatencySummary:
    found = {match[1]: _ms(match[2], line) for match in _TREND.finditer(row)}
    if not {"avg", "max"} <= set(found) or _TREND.sub("", row).strip():
        raise ParseError(f"line {line}: http_req_duration has no times that can be read", line=line)
    names = {"med": "50"} | {name: name[2:-1] for name in found if name.startswith("p(")}
    percentiles = {f"{_plain(short, line):g}": found[name] for name, short in names.items() if name in found}
    return LatencySummary(found["avg"], min_ms=found.get("min"), max_ms=found["max"], percentiles_ms=percentiles)


def _ms(text: str, line: int) -> float:
    return round(sum(_plain(number, line) * _MS_PER[unit] for number, unit in _STEP.findall(text)), 9)


def _plain(text: str, line: int) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise ParseError(f"line {line}: '{text[:40]}' is not a number", line=line) from error


def _number(text: str, lines: Lines) -> float:
    return _plain(text, lines.number)
