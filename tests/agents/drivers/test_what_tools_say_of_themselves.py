"""What a report says beside its figures: thresholds, dropped iterations, tables left out, and whose report it is."""

from __future__ import annotations

import json
import re

import pytest

from agents.drivers.reading import read_report, split_report
from tests.agents.recorded import CASES

MARKS = "    http_req_duration\n    ✗ 'p(95)<1' p(95)=1.47ms\n    ✓ 'p(99)<500' p(99)=11.97ms\n\n"


def test_k6_s_thresholds_are_read_by_name_in_each_of_its_forms() -> None:
    exported = json.loads((CASES / "k6" / "basic.json").read_text())
    exported["metrics"]["http_req_duration"]["thresholds"] = {"p(95)<1": True, "p(99)<500": False}
    printed = (CASES / "k6" / "basic-text.txt").read_text()
    for text in (json.dumps(exported), MARKS + printed):
        details = read_report("k6", text).details
        assert details["thresholds_failed"] == "http_req_duration p(95)<1"
        assert details["thresholds_passed"] == "http_req_duration p(99)<500"
    older = re.sub(r"^ +(http_req_duration)(\.+:)", r"   ✗ \1\2", printed, flags=re.MULTILINE)
    assert read_report("k6", older).details["thresholds_failed"] == "http_req_duration"
    assert "thresholds_passed" not in read_report("k6", printed).details


def test_ab_may_leave_its_percentiles_and_its_deviation_out() -> None:
    whole = (CASES / "ab" / "keepalive.txt").read_text()
    without_percentiles = whole[: whole.index("Percentage of the")]
    short = re.sub(r"min  mean.*\n", "min   avg   max\n", without_percentiles)
    short = re.sub(
        r"^(Connect|Processing|Waiting|Total):( +\d+) +(\d+) +[\d.]+ +\d+ +(\d+)", r"\1: \2 \3 \4", short, flags=re.M
    )
    for text, stdev_ms in ((without_percentiles, 0.6), (short, None)):
        latency = read_report("ab", text).latency
        assert latency is not None
        assert (latency.mean_ms, latency.stdev_ms, latency.max_ms) == (0.631, stdev_ms, 5.0)
        assert latency.percentiles_ms == {}


@pytest.mark.parametrize("name", ["overload-60s", "no-latency", "steady-latency", "corrected-and-uncorrected"])
def test_a_report_of_wrk2_that_is_called_wrk_s_is_read_as_wrk2_s(name: str) -> None:
    text = (CASES / "wrk2" / f"{name}.txt").read_text()
    for kind in ("wrk", "wrk-text", "wrk2"):
        report = read_report(kind, text)
        assert (report.tool, report.load_model, report.offered_rate_rps) == ("wrk2", "open", None)


def test_a_rate_in_the_command_line_makes_it_wrk2() -> None:
    text = (CASES / "wrk" / "basic.txt").read_text()
    assert read_report("wrk", text).tool == "wrk"
    assert read_report("wrk", text, "wrk -t2 -c10 -d5s http://sut/").tool == "wrk"
    report = read_report("wrk", text, "wrk -t2 -c10 -d5s -R500 http://sut/")
    assert (report.tool, report.offered_rate_rps) == ("wrk2", 500.0)


def test_a_backlog_that_no_wrk_can_have_makes_it_wrk2() -> None:
    text = (CASES / "wrk2" / "overload-60s.txt").read_text()
    bare = "\n".join(line for line in text.splitlines() if "calibration" not in line)
    assert (
        read_report("wrk", bare[: bare.find("Latency Distribution")] if "Distribution" in bare else bare).tool == "wrk2"
    )


HEAD = "timeStamp,elapsed,label,responseCode,responseMessage,success,bytes,sentBytes,allThreads\n"


def jtl(begin_ms: int, seconds: int, elapsed_ms: int = 5) -> str:
    return "".join(f"{begin_ms + i * 100},{elapsed_ms},GET,200,OK,true,100,50,4\n" for i in range(seconds * 10))


T0 = 1_760_000_000_000
DAY_MS = 86_400_000


@pytest.mark.parametrize(
    ("text", "words", "parts"),
    [
        (HEAD + jtl(T0, 40), None, 1),
        (HEAD + jtl(T0, 40) + jtl(T0 + 240_000, 40), "no result ended for 3 min 20 s from 40 s on: the file holds", 2),
        (HEAD + jtl(T0, 40) + jtl(T0 + DAY_MS, 40), "no result ended for 23 h 59 min from 40 s on", 2),
        (HEAD + jtl(T0, 40) + HEAD + jtl(T0 + 60_000, 40), "a header stands again in line 402", 2),
        (HEAD + jtl(T0, 40) + jtl(T0 - 60_000, 40), "time goes back by", 2),
        (HEAD + jtl(T0, 40) + jtl(T0 + 40_000, 1, 60_000) + jtl(T0 + 100_000, 40), "the server stood still", 2),
        (
            HEAD + jtl(T0, 20) + jtl(T0 + 240_000, 20) + jtl(T0 + 480_000, 20),
            "for 3 min 40 s from 20 s on, 3 min 40 s",
            3,
        ),
    ],
    ids=["one run", "a gap", "a day", "another header", "a clock set back", "a stall", "three runs"],
)
def test_runs_that_were_appended_to_one_file_are_named_and_can_be_parted(
    text: str, words: str | None, parts: int
) -> None:
    report = read_report("jmeter", text)
    assert report.usable == (words is None)
    assert (words or "") in (report.why or "")
    split = split_report("jmeter", text)
    assert len(split) == parts
    rates = [read_report("jmeter", part).throughput_rps for part in split]
    if parts > 1 and "stood still" not in (words or ""):
        assert all(rate == pytest.approx(10, rel=0.02) for rate in rates)


def test_lines_that_are_no_results_stay_in_their_part_as_they_are() -> None:
    odd = f"{T0 + 3000},nan,GET,200,OK,true,100,50,4\n{T0 + 3000},inf,GET,500,a\u2028b,false,100,50,4\n"
    text = HEAD + jtl(T0, 3) + odd + jtl(T0 + 3000, 3)
    assert split_report("jmeter", text) == [text]


def test_what_was_never_appended_to_is_one_part() -> None:
    text = (CASES / "wrk" / "basic.txt").read_text()
    assert split_report("wrk", text) == [text]
