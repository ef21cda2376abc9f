"""What JMeter prints: the summariser's lines on the console, and the statistics of its HTML report."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from agents.base.errors import ParseError
from agents.results.report import LatencySummary, LoadErrors, LoadReport

SUMMARY = "jmeter-summariser"
STATISTICS = "jmeter-dashboard-statistics"
LIVE = re.compile(r"summary [+=] ")
_CONSOLE = re.compile(r"^(Creating summariser|summary [+=]|Created the tree|Starting \w{1,20} test)", re.MULTILINE)
_BEFORE = "\ufeff \t\r\n"

_LINE = re.compile(
    r"summary (?P<sign>[+=]) {1,20}(?P<requests>\d{1,15}) in (?P<h>\d\d+):(?P<m>\d\d):(?P<s>\d\d) = {1,20}"
    r"(?P<rate>[\d.]{1,20}|\*+)/s Avg: {1,20}(?P<mean>-?\d{1,19}) Min: {1,20}(?P<min>-?\d{1,19}) "
    r"Max: {1,20}(?P<max>-?\d{1,19}) Err: {1,20}(?P<errors>\d{1,15}) \((?P<pct>[\d.]{1,10}|NaN)%\)"
    r"(?: Active: (?P<active>\d{1,9}) Started: (?P<started>\d{1,9}) Finished: (?P<finished>\d{1,9}))?",
    re.ASCII,
)
_STARTED = re.compile(r"Starting (?:standalone|remote|distributed) test @ .{0,80}\((\d{12,14})\)", re.ASCII)
_ENDED = re.compile(r"Tidying up (?:\.\.\.|remote) .{0,80}\((\d{12,14})\)", re.ASCII)
_FAILED = re.compile(
    r"Error in NonGUIDriver .*|An error occurred: .*|Error: .*|Could not .*|Incorrect Usage.*|Unrecognized .*"
    r"|Invalid maximum heap size.*|.*not found$|.*No such file or directory.*",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class SummaryLine:
    """One line of the summariser; whole milliseconds and whole seconds are all that it prints."""

    requests: int
    duration_s: int
    throughput_rps: float | None
    latency_mean_ms: int | None
    latency_min_ms: int | None
    latency_max_ms: int | None
    errors: int
    error_pct: float | None
    active: int | None = None
    started: int | None = None
    finished: int | None = None

    def to_json(self) -> dict[str, object]:
        return {key: value for key, value in vars(self).items() if value is not None}


@dataclass(frozen=True)
class SummaryFigures:
    """A whole console log: the last `summary =` line, and how it came to be."""

    total: SummaryLine
    intervals: tuple[SummaryLine, ...]
    cumulative_lines: int
    started_ms: int | None
    ended_ms: int

    def to_json(self) -> dict[str, object]:
        run = self.total.to_json() | {
            "finished": True,
            "intervals": len(self.intervals),
            "cumulative_lines": self.cumulative_lines,
        }
        for name in ("started_ms", "ended_ms"):
            if (value := getattr(self, name)) is not None:
                run[name] = value
        if self.intervals:
            run["last_interval"] = self.intervals[-1].to_json()
            run["interval_requests_sum"] = sum(line.requests for line in self.intervals)
        return {"runs": [run], "error_pct": self.total.error_pct}


def read_summary(text: str) -> LoadReport:
    """The report in a console log. A log without a summary but with an error is of a run that did not start.

    Raises ParseError when it is neither, or holds more than one run.
    """
    lines = text.splitlines()
    starts = [at for at, line in enumerate(lines, 1) if _STARTED.search(line)]
    if len(starts) > 1:
        raise ParseError("a second run begins here", line=starts[1], hint="Give the log of one run.")
    sums: list[SummaryLine] = []
    intervals: list[SummaryLine] = []
    for line in lines:
        if match := _LINE.search(line):
            (sums if match["sign"] == "=" else intervals).append(_line(match))
    if not sums:
        return _without_summary(lines)
    started = next((int(m[1]) for line in lines if (m := _STARTED.search(line))), None)
    ended = next((int(m[1]) for line in lines if (m := _ENDED.search(line))), None)
    if ended is None:
        raise ParseError(
            "the log ends before the run did: JMeter's line 'Tidying up' is missing",
            line=len(lines),
            hint="Was JMeter ended, or only a part of its log copied?",
        )
    total = sums[-1]
    whys = []
    if total.requests and total.errors == total.requests:
        whys.append("every request failed")
    return LoadReport(
        tool="jmeter",
        format=SUMMARY,
        load_model="closed",
        latency_basis="response_time",
        usable=not whys,
        why="; ".join(whys) or None,
        duration_s=float(total.duration_s),
        requests=total.requests,
        throughput_rps=total.throughput_rps if total.requests else 0.0,
        errors=LoadErrors(other=total.errors),
        latency=LatencySummary(mean_ms=total.latency_mean_ms, min_ms=total.latency_min_ms, max_ms=total.latency_max_ms),
        more=SummaryFigures(total, tuple(intervals), len(sums), started, ended),
    )


def _without_summary(lines: list[str]) -> LoadReport:
    error = next((line.strip() for line in lines if _FAILED.fullmatch(line.strip())), None)
    if error is None:
        raise ParseError(
            "there is no line 'summary =' of JMeter's summariser",
            line=max(1, len(lines)),
            hint="JMeter prints it in non-GUI mode (-n) unless summariser.name is empty.",
        )
    error = error[:500]
    return LoadReport(
        tool="jmeter",
        format=SUMMARY,
        load_model="closed",
        latency_basis="response_time",
        complete=False,
        error=error,
        usable=False,
        why=f"the tool did not start: {error}",
    )


def _line(match: re.Match[str]) -> SummaryLine:
    none = int(match["min"]) > int(match["max"])  # no request yet: JMeter prints the limits of its numbers
    rate = match["rate"]
    return SummaryLine(
        requests=int(match["requests"]),
        duration_s=int(match["h"][:9]) * 3600 + int(match["m"]) * 60 + int(match["s"]),
        throughput_rps=float(rate) if re.fullmatch(r"\d+(\.\d+)?", rate, re.ASCII) else None,
        latency_mean_ms=None if none else int(match["mean"]),
        latency_min_ms=None if none else int(match["min"]),
        latency_max_ms=None if none else int(match["max"]),
        errors=int(match["errors"]),
        error_pct=float(match["pct"]) if re.fullmatch(r"\d+(\.\d+)?", match["pct"], re.ASCII) else None,
        active=_int(match["active"]),
        started=_int(match["started"]),
        finished=_int(match["finished"]),
    )


def _int(text: str | None) -> int | None:
    return None if text is None else int(text)


_Count = Annotated[int, Field(ge=0, le=10**15)]
_Ms = Annotated[float, Field(ge=-1e12, le=1e12)]


class _Statistics(BaseModel):
    """One entry of statistics.json; `pct1..3` are the percentiles 90, 95 and 99 unless JMeter was told otherwise."""

    model_config = ConfigDict(allow_inf_nan=False)

    sampleCount: _Count  # noqa: N815 - JMeter's names
    errorCount: _Count  # noqa: N815
    errorPct: float  # noqa: N815
    meanResTime: _Ms  # noqa: N815
    medianResTime: _Ms | None = None  # noqa: N815
    minResTime: _Ms  # noqa: N815
    maxResTime: _Ms  # noqa: N815
    pct1ResTime: _Ms  # noqa: N815
    pct2ResTime: _Ms  # noqa: N815
    pct3ResTime: _Ms  # noqa: N815
    throughput: Annotated[float, Field(ge=0, le=1e12)]
    receivedKBytesPerSec: Annotated[float, Field(ge=0, le=1e12)]  # noqa: N815

    def latency(self) -> LatencySummary:
        percentiles = {"90": self.pct1ResTime, "95": self.pct2ResTime, "99": self.pct3ResTime}
        if self.medianResTime is not None:
            percentiles = {"50": self.medianResTime, **percentiles}
        return LatencySummary(
            mean_ms=self.meanResTime, min_ms=self.minResTime, max_ms=self.maxResTime, percentiles_ms=percentiles
        )


_DASHBOARD = TypeAdapter(dict[str, _Statistics])


@dataclass(frozen=True)
class StatisticsFigures:
    """What statistics.json says per label."""

    errors: int
    error_pct: float
    labels: dict[str, tuple[int, int, LatencySummary]]

    def to_json(self) -> dict[str, object]:
        labels = {
            name: {"requests": count, "errors": errors, "latency_mean_ms": latency.mean_ms}
            for name, (count, errors, latency) in self.labels.items()
        }
        return {"errors": self.errors, "error_pct": self.error_pct, "labels": labels}


def looks_like_xml(text: str) -> bool:
    """Whether the text begins as a result file in XML does."""
    return text.lstrip(_BEFORE).startswith("<")


def looks_like_csv(text: str) -> bool:
    """Whether the text begins as a result file in CSV does: with its titles or with a time."""
    return re.match(r'"?timeStamp|"?\d{4}[\d/-]', text.lstrip(_BEFORE), re.ASCII) is not None


def looks_like_summary(text: str) -> bool:
    """Whether a line is of JMeter's console log; a result file may hold such a line as well."""
    return _CONSOLE.search(text) is not None and not looks_like_xml(text)


def looks_like_statistics(text: str) -> bool:
    return text.lstrip("\ufeff \t\r\n").startswith("{")


def read_statistics(text: str) -> LoadReport:
    """The report in statistics.json of the HTML report. Raises ParseError."""
    try:
        found = _DASHBOARD.validate_python(json.loads(text.lstrip("\ufeff")))
    except (ValueError, ValidationError, RecursionError) as error:
        detail = str(error).splitlines()[0][:200]
        raise ParseError(f"this is not JMeter's statistics.json: {detail}", line=1) from None
    total = found.get("Total")
    if total is None:
        raise ParseError("statistics.json has no entry Total", line=1)
    failed = bool(total.sampleCount) and total.errorCount == total.sampleCount
    return LoadReport(
        tool="jmeter",
        format=STATISTICS,
        load_model="closed",
        latency_basis="response_time",
        usable=not failed,
        why="every request failed" if failed else None,
        requests=total.sampleCount,
        throughput_rps=total.throughput,
        bytes_per_s=total.receivedKBytesPerSec * 1024,
        errors=LoadErrors(other=total.errorCount),
        latency=total.latency(),
        notes=("the percentiles 90, 95 and 99 are JMeter's defaults; another choice in its properties is not told",),
        more=StatisticsFigures(
            total.errorCount,
            total.errorPct,
            {k: (v.sampleCount, v.errorCount, v.latency()) for k, v in found.items() if k != "Total"},
        ),
    )
