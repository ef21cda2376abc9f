"""HdrHistogram interval logs; the files and their figures are from HdrHistogram_py (Apache-2.0)."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents.base.errors import ParseError
from agents.drivers.reading import read_report
from agents.formats.hdr_log import HdrLog, read_log
from agents.results.spectrum import spectrum_of

CASES = Path(__file__).parents[1] / "cases/hdr-log"
JHICCUP = (CASES / "jhiccup-2.0.7.hlog").read_text()


@pytest.mark.parametrize(
    ("start_s", "end_s", "intervals", "samples", "p999", "greatest"),
    [(5, 20, 15, 11664, 1536163839, 1544552447), (40, 60, 20, 15830, 1779433471, 1796210687)],
)
def test_a_stretch_of_a_log_can_be_read(
    start_s: float, end_s: float, intervals: int, samples: int, p999: int, greatest: int
) -> None:
    log = read_log(JHICCUP, start_s=start_s, end_s=end_s)
    assert (log.intervals, log.total, log.value_at(99.9), max(log.counts)) == (intervals, samples, p999, greatest)


def test_intervals_with_tags_count_like_the_others() -> None:
    log = read_log((CASES / "tagged.hlog").read_text())
    assert (log.intervals, log.total) == (42, 32290)


def test_a_log_is_a_report_with_a_histogram_in_milliseconds() -> None:
    report = read_report("hdr-log", JHICCUP)
    assert report.requests == 48761
    assert report.duration_s == pytest.approx(62.004)
    assert report.latency is not None
    assert report.latency.percentiles_ms["99.9"] == pytest.approx(1745.879039)
    spectrum = spectrum_of(report)
    assert spectrum is not None
    assert spectrum.total == 48761


LINE = next(line for line in JHICCUP.splitlines() if line.startswith("0.127"))


def test_a_thousandth_of_a_thousand_samples_is_left_out_of_p99_9() -> None:
    log = HdrLog({10: 999, 5000: 1}, intervals=1, duration_s=1.0, per_ms=1.0)
    assert (log.value_at(99.9), log.value_at(99.95)) == (10, 5000)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected an interval with samples"),
        ("#[Histogram log format version 1.2]\n", "expected an interval with samples"),
        ("hello\n", "line 1: expected an interval"),
        (LINE.replace("HISTFAAA", "AAAAAAAA"), "not of version 2"),
        (LINE[:60] + "==", "the histogram cannot be read"),
        (LINE[:-8], "the histogram"),
        (LINE.replace(",1.007,", ",0,"), "longer than nothing"),
    ],
)
def test_what_is_no_log_is_refused_with_the_line(text: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        read_report("hdr-log", text)
