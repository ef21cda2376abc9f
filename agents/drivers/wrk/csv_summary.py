"""The 18-column CSV summary that a Lua script of wrk writes, one data row per run."""

from __future__ import annotations

import re
from dataclasses import replace

from agents.base.errors import ParseError
from agents.drivers.wrk.text_report import why_unusable
from agents.formats.report_lines import Lines
from agents.results.report import LatencySummary, LoadErrors, LoadReport

FORMAT = "wrk-lua-csv"
COLUMNS = (
    "timeStamp",
    "duration_microseconds",
    "num_requests",
    "total_bytes",
    "connect_errors",
    "read_errors",
    "write_errors",
    "error_status_codes",
    "timeouts",
    "requests_per_sec",
    "bytes_per_sec",
    "lat_min_microseconds",
    "lat_max_microseconds",
    "lat_mean_microseconds",
    "lat_stdev_microseconds",
    "lat_percentile_90_microseconds",
    "lat_percentile_95_microseconds",
    "lat_percentile_99_microseconds",
)

_TITLES = re.compile(re.escape(",".join(COLUMNS)))
_NUMBER = r"((?:[0-9]{1,20}(?:\.[0-9]{1,6})?)|-?nan|-?inf)"
_ROW = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:.]{5,18}Z?)," + ",".join([r"([0-9]{1,18})"] * 8 + [_NUMBER] * 9), re.ASCII
)


def looks_like_csv(text: str) -> bool:
    """Whether the text begins as this CSV does."""
    return text.removeprefix("\ufeff").lstrip().startswith("timeStamp,duration_microseconds")


def read_csv(text: str) -> LoadReport:
    """The report in the CSV. Raises ParseError when it is not the 18 titles and exactly one row."""
    lines = Lines(text)
    lines.skip_blank()
    lines.expect(_TITLES, "the 18 column titles of the wrk Lua summary")
    row = lines.expect(_ROW, "a row with a time, 8 whole numbers and 9 figures")
    lines.skip_blank()
    if not lines.ended:
        raise lines.error("expected one row only", hint="Each row is a report of its own: give one row per file.")
    duration_us, requests, size, connect, read, write, status, timeout = (int(n) for n in row.groups()[1:9])
    # The script divides bytes by microseconds, so its bytes_per_sec column holds MB/s: it is worked out here instead.
    bytes_per_s = round(size / (duration_us / 1e6), 2) if duration_us else None
    latency = _latency([_known(figure) for figure in row.groups()[11:]])
    errors = LoadErrors(connect, read, write, timeout, status)
    why = why_unusable("wrk", requests, errors, latency)
    return LoadReport(
        "wrk",
        FORMAT,
        "closed",
        "service_time",
        usable=why is None,
        why=why,
        duration_s=duration_us / 1e6,
        requests=requests,
        throughput_rps=_known(row[10]),
        bytes_read=size,
        bytes_per_s=bytes_per_s,
        errors=errors,
        latency=latency,
        started_or_written_at=row[1],
    )


def with_csv(printed: LoadReport, text: str) -> LoadReport:
    """What wrk printed, with the latencies that only the CSV behind it has: the smallest, and the 95th percentile.

    A CSV of another run, or one that gives a ParseError, is left out, with a note that says so.
    """
    titles = _TITLES.search(text)
    if titles is None or printed.latency is None:
        return printed
    try:
        behind = read_csv(text[titles.start() :])
        if behind.latency is None or behind.requests != printed.requests:
            raise ParseError("it tells of another run")
    except ParseError as error:
        return replace(printed, notes=(*printed.notes, f"the CSV behind wrk's own report is left out: {error.message}"))
    percentiles = {**behind.latency.percentiles_ms, **printed.latency.percentiles_ms}
    ordered = dict(sorted(percentiles.items(), key=lambda one: float(one[0])))
    latency = replace(printed.latency, min_ms=behind.latency.min_ms, percentiles_ms=ordered)
    return replace(printed, latency=latency)


def _known(text: str) -> float | None:
    return None if "n" in text else float(text)


def _latency(figures_us: list[float | None]) -> LatencySummary | None:
    smallest, largest, mean, stdev, *percentiles = (None if us is None else round(us / 1000, 9) for us in figures_us)
    if not largest:
        return None
    named = {name: ms for name, ms in zip(("90", "95", "99"), percentiles, strict=True) if ms is not None}
    return LatencySummary(mean, stdev, smallest, largest, percentiles_ms=named)
