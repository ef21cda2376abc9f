"""HdrHistogram interval logs (.hlog, version 2 histograms), as jHiccup, Hyperfoil and own clients write them.

Source: HistogramLogWriter and AbstractHistogram of HdrHistogram; ENCODING.rst of HdrHistogram_py.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
import struct
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from agents.formats.report_format import ReportFormat
from agents.formats.report_lines import Lines
from agents.results.report import Histogram, HistogramRow, LatencySummary, LoadReport, nearest_rank

FORMAT = "hdr-log"
NS_PER_MS = 1e6
MAX_INFLATED_BYTES = 8 << 20
_COMPRESSED_COOKIE = 0x1C849304
_COOKIE = 0x1C849303
_KIND = ~0xF0
"""The other four bits of a cookie once told the word size."""
_KEPT_BITS = 11
"""2,048 bars in a power of two: three significant digits."""
_HEADER = struct.Struct(">iiiiqqd")
_NUMBER = r"[0-9]{1,12}(?:\.[0-9]{1,9})?"
_INTERVAL = re.compile(
    rf"(?:Tag=[^,\s]{{1,100}},)?({_NUMBER}),({_NUMBER}),({_NUMBER}),([A-Za-z0-9+/]{{8,2000000}}={{0,2}})", re.ASCII
)
_PERCENTILES = ("50", "75", "90", "95", "99", "99.9", "99.99", "100")


@dataclass(frozen=True)
class HdrLog:
    """`counts`: the greatest value of each bar, in the log's own unit -> samples. `per_ms`: how many units are a ms."""

    counts: dict[int, int]
    intervals: int
    duration_s: float
    per_ms: float

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    def value_at(self, percentile: float) -> int:
        """The value that this share of the samples, in percent, does not exceed, in the log's own unit."""
        wanted, seen = nearest_rank(percentile, self.total), 0
        for value, count in self.counts.items():
            seen += count
            if seen >= wanted:
                return value
        raise ValueError("the log holds no sample")


def read_text(text: str) -> LoadReport:
    """The whole log as a report. It says nothing of requests that failed. Raises ParseError."""
    log = read_log(text)
    total = log.total
    seen = 0
    rows = []
    for value, count in log.counts.items():
        seen += count
        rows.append(HistogramRow(value / log.per_ms, seen / total, seen))
    mean_ms = sum(row_value * count for row_value, count in log.counts.items()) / total / log.per_ms
    variance = sum(count * (value / log.per_ms - mean_ms) ** 2 for value, count in log.counts.items()) / total
    latency = LatencySummary(
        mean_ms=mean_ms,
        stdev_ms=math.sqrt(variance),
        min_ms=rows[0].value_ms,
        max_ms=rows[-1].value_ms,
        percentiles_ms={name: log.value_at(float(name)) / log.per_ms for name in _PERCENTILES},
        histogram=Histogram(tuple(rows), mean_ms, math.sqrt(variance), rows[-1].value_ms, total),
    )
    return LoadReport(
        "hdr-log",
        FORMAT,
        "closed",
        "service_time",
        duration_s=log.duration_s,
        requests=total,
        throughput_rps=total / log.duration_s,
        latency=latency,
    )


def read_log(text: str, *, start_s: float = 0.0, end_s: float = math.inf) -> HdrLog:
    """The intervals that begin between `start_s` and `end_s` of the log's own clock, added up. Raises ParseError."""
    lines = Lines(text)
    counts: Counter[int] = Counter()
    intervals, first_s, last_s, per_ms = 0, math.inf, 0.0, 0.0
    while not lines.ended:
        line = lines.peek()
        if not line or line.startswith(("#", '"')):
            lines.skip()
            continue
        match = _INTERVAL.fullmatch(line)
        if match is None:
            raise lines.error("expected an interval: start, length, maximum and histogram")
        begin_s, length_s, printed_max = (float(match[n]) for n in (1, 2, 3))
        if start_s <= begin_s <= end_s:
            found = _histogram(lines, match[4])
            counts.update(found)
            if found and printed_max > 0 and not per_ms:
                per_ms = _units_per_ms(max(found) / printed_max)
            intervals += 1
            first_s, last_s = min(first_s, begin_s), max(last_s, begin_s + length_s)
        lines.skip()
    if not counts:
        raise lines.error("expected an interval with samples", hint="Is this an HdrHistogram log (.hlog)?")
    if not last_s > first_s:
        raise lines.error("expected intervals that last longer than nothing")
    return HdrLog(dict(sorted(counts.items())), intervals, last_s - first_s, per_ms or NS_PER_MS)


def _units_per_ms(ratio: float) -> float:
    """The maximum is printed in ms, the histogram is in ns or us; a log that prints its own unit is in ns."""
    power = 10.0 ** round(math.log10(ratio)) if ratio > 0 else 1.0
    return power if power in (1e3, NS_PER_MS) else NS_PER_MS


def _histogram(lines: Lines, encoded: str) -> Counter[int]:
    """Greatest value of each kept bar -> samples in it."""
    try:
        packed = base64.b64decode(encoded, validate=True)
        cookie, length = struct.unpack_from(">ii", packed)
        inflater = zlib.decompressobj()
        raw = inflater.decompress(packed[8 : 8 + max(length, 0)], MAX_INFLATED_BYTES)
        inner, size, _, digits, lowest, highest, _ = _HEADER.unpack_from(raw)
    except (binascii.Error, struct.error, zlib.error) as error:
        raise lines.error(f"the histogram cannot be read ({error})") from error
    if cookie & _KIND != _COMPRESSED_COOKIE or inner & _KIND != _COOKIE:
        raise lines.error("the histogram is not of version 2", hint="Write the log with HdrHistogram 2.1 or newer.")
    if not 0 <= digits <= 5 or lowest < 1 or highest < 2 * lowest or not inflater.eof:
        raise lines.error("the histogram's header makes no sense")
    half = math.ceil(math.log2(2 * 10**digits)) - 1
    unit = lowest.bit_length() - 1
    counts: Counter[int] = Counter()
    index = 0
    for count in _zig_zag(lines, raw[_HEADER.size : _HEADER.size + max(size, 0)]):
        if count < 0:
            index -= count  # that many bars are empty
            continue
        if count:
            counts[_greatest(lines, index, half, unit)] += count
        index += 1
    return counts


def _greatest(lines: Lines, index: int, half: int, unit: int) -> int:
    """The greatest value of the kept bar that bar `index` falls into, with half of 2^(half + 1) bars in a power of two.

    Bars are added by their least value to a histogram of three digits, as HdrHistogram's own `add` does.
    """
    bucket, bar = (index >> half) - 1, (index & ((1 << half) - 1)) + (1 << half)
    if bucket < 0:
        bucket, bar = 0, bar - (1 << half)
    if bucket + unit + half > 62:
        raise lines.error("the histogram has a value that no clock shows")
    least = bar << (bucket + unit)
    width = max(0, least.bit_length() - _KEPT_BITS)
    return (((least >> width) + 1) << width) - 1


def _zig_zag(lines: Lines, data: bytes) -> Iterator[int]:
    """The numbers in ZigZag LEB128: seven bits a byte, the ninth byte whole."""
    at = 0
    while at < len(data):
        value = shift = 0
        while True:
            if at >= len(data):
                raise lines.error("the histogram ends in the middle of a number")
            byte = data[at]
            at += 1
            if shift == 56:
                value |= byte << shift
                break
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
        yield (value >> 1) ^ -(value & 1)


def looks_like(text: str) -> bool:
    """Whether the text begins as these logs do: with a remark, the titles of the columns, or an interval."""
    return text.lstrip("\ufeff \r\n").startswith(("#[", '"StartTimestamp"', "Tag="))


HDR_LOG = ReportFormat(FORMAT, looks_like, read_text)
