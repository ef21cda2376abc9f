from __future__ import annotations

import http.server
import json
import re
import subprocess
import tarfile
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from agents.base.errors import ParseError
from agents.drivers.base.driver import Target
from agents.drivers.jmeter.driver import Jmeter
from agents.drivers.jmeter.jtl import csv_file
from agents.drivers.jmeter.jtl.csv_file import PIECE_BYTES
from agents.drivers.jmeter.jtl.files import read_jtl_file, read_jtl_text
from agents.drivers.reading import read_report
from agents.results import request_figures
from agents.results.merging import merge
from agents.results.merging_requests import NO_LABEL_TIMES
from agents.results.report import LoadReport
from agents.results.request_figures import RequestFigures
from tests import needs
from tests.agents.drivers.jmeter_home import jmeter_home
from tests.agents.recorded import cases, damaged
from tests.properties import HealthCheck, given, settings

HEADER = (
    "timeStamp,elapsed,label,responseCode,responseMessage,threadName,dataType,success,failureMessage,bytes,sentBytes,"
    "grpThreads,allThreads,URL,Latency,IdleTime,Connect\n"
)
T0 = 1_795_165_837_000
CASES = {case.name.partition("/")[2]: case for case in cases("jmeter")}


def row(at: int, elapsed: int | str, label: str = "read", code: str = "200", **other: str) -> str:
    message, thread = other.get("message", "OK"), other.get("thread", "Users 1-1")
    success = other.get("success", "true" if code.startswith("2") else "false")
    return (
        f"{T0 + at},{elapsed},{label},{code},{message},{thread},text,{success},,100,50,3,3,http://sut/,{elapsed},0,0\n"
    )


def more(report: LoadReport) -> RequestFigures:
    assert isinstance(report.more, RequestFigures)
    return report.more


# Reading results


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("tabs", lambda text: text.replace(",", "\t")),
        ("semicolons", lambda text: text.replace(",", ";")),
        ("windows line ends", lambda text: text.replace("\n", "\r\n")),
        ("byte order mark", lambda text: "\ufeff" + text),
        ("no header", lambda text: text.split("\n", 1)[1]),
        ("no last line end", lambda text: text.rstrip("\n")),
        ("a blank line", lambda text: text.replace("\n", "\n\n", 1)),
    ],
)
def test_every_way_of_saving_the_same_results_gives_the_same_figures(name: str, change: object) -> None:
    text = CASES["people"].text
    assert callable(change)
    found = read_jtl_text(change(text)).to_json()
    assert found == read_jtl_text(text).to_json()


def test_formatted_time_stamps_give_the_same_rate_and_say_that_they_have_no_zone() -> None:
    lines = [row(i * 100, 7) for i in range(50)]
    plain = read_jtl_text(HEADER + "".join(lines))
    formatted = [
        f"2026/11/20 09:10:{37 + i // 10:02}.{i % 10}00," + line.split(",", 1)[1] for i, line in enumerate(lines)
    ]
    found = read_jtl_text(HEADER + "".join(formatted))
    assert (found.requests, found.throughput_rps, found.latency) == (50, plain.throughput_rps, plain.latency)
    assert found.notes == ("its time stamps name no time zone; they are taken for UTC",)


def test_time_stamps_in_seconds_are_recognised_and_called_coarse() -> None:
    text = HEADER + "".join(row(i * 1000, 7).replace("000,", ",", 1) for i in range(20))
    found = read_jtl_text(text)
    assert more(found).started_ms == T0
    assert found.duration_s == pytest.approx(19.007)
    assert "whole seconds" in found.notes[0]


def test_a_torn_last_line_is_reported_and_all_others_count() -> None:
    text = CASES["people"].text
    found = read_jtl_text(text + text.splitlines()[5][:31])
    assert found.requests == 1825
    assert found.usable
    assert found.notes == ("the last line (1827) is torn and was left out: JMeter was ended while it wrote",)


def test_a_second_header_means_two_runs_and_all_results_of_both_are_counted() -> None:
    text = CASES["people"].text
    found = read_jtl_text(text + text)
    assert found.requests == 2 * 1825
    assert not found.usable
    assert (found.why or "").startswith("the file holds 2 runs: a header stands again in line 1827")


def test_a_header_glued_to_a_torn_line_loses_that_line_only() -> None:
    torn = row(5000, 3)[:30] + HEADER
    found = read_jtl_text(HEADER + row(0, 1) + row(10, 2) + torn + row(9000, 4))
    assert found.requests == 3
    assert "line 4" in (found.why or "")
    assert any("were left out: 4" in note or "(4)" in note for note in found.notes)


def test_what_is_torn_is_the_same_however_little_of_the_file_is_read_slowly(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [row(i, i % 7, "read" if i % 3 else "a, b".join('""')) for i in range(4000)]
    rows[700] = rows[700][:-20] + "\n"
    rows[2500] = rows[2500].rstrip("\n")[:40]
    text = HEADER + "".join(rows) + rows[5][:30]
    at_once = read_jtl_text(text)
    assert (at_once.requests, at_once.notes[1]) == (3998, "2 lines are no whole results and were left out: 702, 2502")
    monkeypatch.setattr(csv_file, "SLOW_BYTES", 2000)
    assert read_jtl_text(text).to_json() == at_once.to_json()


@pytest.mark.parametrize("torn", [4, 13, 20, 31, 50, 54, 60, 70, 77])
@pytest.mark.parametrize("label", ["read", '"read, ""all"""'])
def test_a_whole_result_behind_a_torn_one_counts(torn: int, label: str) -> None:
    found = read_jtl_text(HEADER + row(0, 1, label) + row(10, 2)[:torn] + row(9000, 4) + row(9100, 5))
    assert found.requests == 3
    assert found.notes == ("1 lines are no whole results and were left out: 3",)


def test_a_torn_quote_does_not_swallow_what_follows() -> None:
    torn = f'{T0},3,"a label that was cut\n'
    found = read_jtl_text(HEADER + row(0, 1) + torn + "".join(row(i, 2) for i in range(10, 500)))
    assert found.requests == 491
    assert found.notes == ("1 lines are no whole results and were left out: 3",)


@pytest.mark.parametrize("broken", ['"', '""', '"""', '"x"y', 'a"b', '"\r', ' "x"'])
def test_broken_quotes_lose_at_most_the_lines_that_they_are_in(broken: str) -> None:
    good = "".join(row(i, 2) for i in range(10, 200))
    for place in ("label", "message", "thread", "code"):
        line = row(0, 1, **{place: broken})
        for end in (line, line + line, line.rstrip("\n"), line.rstrip("\n") + '"\n'):
            found = read_jtl_text(HEADER + good + line + good + end)
            assert 380 <= (found.requests or 0) <= 383


def test_a_message_of_several_lines_is_one_result() -> None:
    good = row(0, 5, message='"first, line\nsecond ""line"""')
    found = read_jtl_text(HEADER + good * 3 + row(1, 6, code="500", message='"a\nb"'))
    assert (found.requests, found.notes) == (4, ())
    assert more(found).failures[0].message == "a\nb"


def test_numbers_with_separators_are_read_and_reported() -> None:
    found = read_jtl_text(HEADER + row(0, '"1,234"') + row(5, 10))
    assert found.latency is not None
    assert found.latency.max_ms == 1234
    assert "separators" in found.notes[0]


def test_transactions_are_listed_but_not_counted_as_requests() -> None:
    message = '"Number of samples in transaction : 2, number of failing samples : 0"'
    text = HEADER + "".join(
        row(i * 10, 2) + row(i * 10 + 2, 3, "write") + row(i * 10, 5, "order", message=message) for i in range(20)
    )
    found = read_jtl_text(text)
    assert found.requests == 40
    assert set(more(found).labels) == {"read", "write", "order"}
    assert more(found).labels["order"].transaction
    assert more(found).labels["order"].requests == 20


def test_requests_inside_a_transaction_that_is_saved_as_their_parent_are_counted() -> None:
    message = '"Number of samples in transaction : 2, number of failing samples : 0"'
    text = HEADER + "".join(
        row(i * 10, 5, "order", message=message) + row(i * 10, 2, "order-0") + row(i * 10 + 2, 3, "order-1")
        for i in range(20)
    )
    found = read_jtl_text(text)
    assert found.requests == 40
    assert more(found).parts == 0


def test_a_file_of_transactions_only_counts_them_and_says_so() -> None:
    text = HEADER + row(0, 5, "order", message="Number of samples in transaction : 2") * 5
    found = read_jtl_text(text)
    assert found.requests == 5
    assert "only transactions were saved" in found.notes[0]


def test_labels_that_end_in_numbers_are_requests_of_their_own() -> None:
    text = HEADER + "".join(row(i * 10, 2, "page") + row(i * 10 + 3, 3, "page-1") for i in range(50))
    assert read_jtl_text(text).requests == 100


def test_parts_of_requests_of_several_threads_are_told_apart_across_pieces_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "results.jtl"
    count = 2 * PIECE_BYTES // len(row(0, 5)) // 3
    with path.open("w") as file:
        file.write(HEADER)
        for i in range(count):
            thread = f"Users 1-{i % 7}"
            file.write(row(i, 5, "page", thread=thread) + row(i, 2, "page-0", thread=thread))
            file.write(row(i + 2, 3, "page-1", thread=thread))
    found = read_jtl_file(path)
    assert found.requests == count
    assert more(found).parts == 2 * count


@pytest.mark.parametrize("name", ["people", "redirect", "faulty", "loops-report"])
def test_reading_in_many_pieces_gives_what_reading_at_once_gives(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = CASES[name].text
    at_once = read_jtl_text(text).to_json()
    monkeypatch.setattr(csv_file, "PIECE_BYTES", 700)
    assert read_jtl_text(text).to_json() == at_once


def test_a_clock_that_goes_back_makes_the_rate_meaningless() -> None:
    found = read_jtl_text(HEADER + "".join(row(i, 1) for i in [*range(0, 60_000, 100), *range(0, 60_000, 100)]))
    assert not found.usable
    assert "time goes back by 59.9 s" in (found.why or "")


def test_percentiles_are_exact_for_every_count() -> None:
    values = [1] * 50 + [2] * 40 + [10] * 9 + [500]
    found = read_jtl_text(HEADER + "".join(row(i, v) for i, v in enumerate(values)))
    assert found.latency is not None
    assert found.latency.percentiles_ms == {"50": 1, "75": 2, "90": 2, "95": 10, "99": 10}
    assert found.latency.histogram is not None
    assert [(r.value_ms, r.total_count) for r in found.latency.histogram.rows] == [
        (1, 50),
        (2, 90),
        (10, 99),
        (500, 100),
    ]


def test_failures_are_told_by_label_code_and_message() -> None:
    failures = more(read_jtl_text(CASES["faulty"].text)).failures
    assert failures[0].label == 'missing, "quoted"'
    assert (failures[0].code, failures[0].count) == ("404", 120)
    assert sum(f.count for f in failures) == 136
    assert list(failures) == sorted(failures, key=lambda f: (-f.count, f.label, f.code, f.message))


def test_the_course_over_time_adds_up() -> None:
    found = more(read_jtl_text(CASES["people"].text))
    assert found.course is not None
    assert sum(found.course.requests) == 1825
    assert found.course.active_threads is not None
    assert max(found.course.active_threads) == 8


def test_progress_is_told_up_to_the_size_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "results.jtl"
    path.write_text(HEADER + row(0, 3) * 300_000)
    seen: list[tuple[int, int]] = []
    read_jtl_file(path, lambda done, size: seen.append((done, size)))
    size = path.stat().st_size
    assert seen[-1] == (size, size)
    assert seen == sorted(seen)
    assert len(seen) > 1


def test_broken_off_xml_gives_what_is_whole_and_says_where_it_breaks() -> None:
    text = CASES["redirect-xml"].text
    found = read_jtl_text(text[: text.index('lb="redirect-0"', 60_000)])
    assert 0 < (found.requests or 0) < 240
    assert "broken off in line" in found.notes[0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("hello\n", "no JMeter result file"),
        (HEADER, "no result in this file"),
        ("timeStamp,label,success\n1795165837000,x,true\n", "no column elapsed"),
        (HEADER + "yesterday,1,2\n", "not a time stamp"),
        ("1795165837000,1,a,200\n", "no header"),
        ('<!DOCTYPE a [<!ENTITY b "c">]><testResults>&b;</testResults>', "document type"),
        ("<html></html>", "not the beginning"),
        ("<testResults><sample/></testResults>", "whether it succeeded"),
        (HEADER + row(0, 1) + "timeStamp,elapsed,other\n" + row(1, 1), "other columns"),
    ],
)
def test_what_is_no_result_file_is_refused_in_words(text: str, words: str) -> None:
    with pytest.raises(ParseError, match=words):
        read_jtl_text(text)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(damaged([CASES[name].text[:6000] for name in ("faulty", "redirect", "redirect-xml", "people-summary")]))
def test_damaged_results_give_a_report_or_a_parse_error(text: str) -> None:
    try:
        json.dumps(read_report("jmeter", text).to_json(), allow_nan=False)
    except ParseError:
        pass


# Several load tools


def halves(text: str) -> list[LoadReport]:
    """The results of the users with odd numbers, and of those with even ones, as two JMeters save them."""
    header, *lines = text.splitlines(keepends=True)
    odd = [bool(re.search(r"Users 1-\d*[13579],", line)) for line in lines]
    return [
        read_jtl_text(header + "".join(line for line, is_odd in zip(lines, odd, strict=True) if is_odd is which))
        for which in (True, False)
    ]


def orders() -> str:
    """Requests, and transactions around them; half of them have the name of a request."""
    message, lines = '"Number of samples in transaction : 2, number of failing samples : 0"', []
    for i in range(300):
        thread, name = f"Users 1-{1 + i % 4}", "read" if i % 2 else "order"
        lines.append(row(i * 10, i % 13, thread=thread) + row(i * 10 + 13, 3 + i % 5, "write", thread=thread))
        lines.append(row(i * 10, 20 + i % 7, name, thread=thread, message=message))
    return HEADER + "".join(lines)


@pytest.mark.parametrize("name", ["people", "redirect", "faulty", "loops-report", "all-404", "orders"])
def test_halves_of_one_file_put_together_are_the_whole_file_label_by_label(name: str) -> None:
    text = orders() if name == "orders" else CASES[name].text
    whole, parts = read_jtl_text(text), halves(text)
    merged = merge(parts)
    found, expected = more(merged), more(whole)
    assert list(found.labels) == list(expected.labels)
    for label, figures in found.labels.items():
        longest_s = max(more(part).labels[label].duration_s or 0 for part in parts if label in more(part).labels)
        rate_rps = figures.requests / longest_s
        assert figures == replace(expected.labels[label], duration_s=longest_s, throughput_rps=rate_rps)
    for same in ("started_ms", "ended_ms", "errors", "error_pct", "rows", "parts", "response_codes", "failures"):
        assert getattr(found, same) == getattr(expected, same)
    assert found.course is not None
    assert expected.course is not None
    for same in ("step_s", "ended_unix_s", "requests", "errors"):
        assert getattr(found.course, same) == getattr(expected.course, same)
    assert found.course.latency_mean_ms == pytest.approx(expected.course.latency_mean_ms, abs=0.002)
    by_other_clock = more(merge(parts, (0.0, 86_400.0))).course
    assert by_other_clock is not None
    assert by_other_clock.ended_unix_s[0] < expected.course.ended_unix_s[0] - 86_000
    assert (merged.requests, merged.bytes_read, merged.errors) == (whole.requests, whole.bytes_read, whole.errors)
    assert merged.latency is not None
    assert whole.latency is not None
    assert merged.latency.percentiles_ms == whole.latency.percentiles_ms
    shown = merged.to_json()
    assert (found.sent_bytes, shown["started_ms"]) == (expected.sent_bytes, expected.started_ms)
    assert shown["labels"] == {label: figures.to_json() for label, figures in found.labels.items()}


@pytest.mark.parametrize(("ahead_s", "apart"), [(0.0, False), (5.0, True), (-0.1, False)])
def test_the_first_request_of_several_tools_is_told_by_the_clock_of_the_first(ahead_s: float, apart: bool) -> None:
    one = read_jtl_text(HEADER + "".join(row(i * 10, 5) for i in range(500)))
    merged = merge([one, one], (0.0, ahead_s))
    started_ms = more(one).started_ms
    assert started_ms is not None
    assert more(merged).started_ms == started_ms - max(0, round(ahead_s * 1000))
    assert any("5.0 s apart" in note for note in merged.notes) is apart


def test_percentiles_of_a_label_whose_times_were_not_all_kept_are_left_out_and_a_note_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    many = "".join(row(i * 10, i % 50, f"often-{i % 2}") for i in range(400))
    text = HEADER + many + "".join(row(i * 10, 100 + i, f"seldom {i % 5}") for i in range(40))
    whole = read_jtl_text(text)
    monkeypatch.setattr(request_figures, "MAX_ELAPSED_ROWS", 50)
    merged = merge([whole, read_jtl_text(text)])
    figures, expected = more(merged).labels["seldom 3"], more(whole).labels["seldom 3"]
    assert (figures.requests, figures.latency.percentiles_ms) == (16, {})
    assert figures.latency.mean_ms == pytest.approx(expected.latency.mean_ms)
    assert more(merged).labels["often-1"].latency.percentiles_ms["99"] == 49
    named = [note for note in merged.notes if "seldom" in note]
    assert named == [NO_LABEL_TIMES.format("seldom 0, seldom 1, seldom 2 and 2 more labels")]


def test_beside_a_tool_that_told_only_totals_there_are_no_labels() -> None:
    whole = read_jtl_text(CASES["people"].text)
    assert merge([whole, replace(whole, more=None)]).more is None


# The driver


def test_a_console_log_without_a_summary_but_with_an_error_is_a_run_that_did_not_start() -> None:
    report = read_report("jmeter", "Error in NonGUIDriver java.lang.IllegalArgumentException: Problem loading XML\n")
    assert not report.complete
    assert (report.error or "").startswith("Error in NonGUIDriver")


# The real tool


@pytest.fixture
def server() -> Iterator[str]:
    class Answers(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.send_response(302 if self.path == "/moved" else 200)
            if self.path == "/moved":
                self.send_header("Location", "/")
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"ok")

        do_GET = do_PUT = answer  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}/"
        running.shutdown()


@pytest.mark.slow
@needs.marked(jmeter_home() is not None, "JMeter", "bin/get-jmeter fetches it")
def test_the_real_jmeter_runs_the_built_in_plan_and_both_reports_agree(server: str, tmp_path: Path) -> None:
    driver = Jmeter.model_validate(
        {
            "home": jmeter_home(),
            "users": 2,
            "loops": 20,
            "heap_max": "256m",
            "requests": [{"label": "read"}, {"method": "PUT", "body": '{"a": 1}'}, {"path": "/moved"}],
            "order": "in_turn",
            "html_report": True,
        }
    )
    for name, text in driver.files().items():
        (tmp_path / name).write_text(text)
    said = subprocess.run(driver.version_command().argv, capture_output=True, check=True)
    assert driver.parse_version(said.stdout).startswith("5.6")
    ran = subprocess.run(driver.command(Target(server), 60).argv, cwd=tmp_path, capture_output=True, text=True)
    printed = driver.parse(ran.stdout + ran.stderr)
    report = driver.parse_results(tmp_path / driver.result_file, printed, lambda _done, _all: None)
    assert (ran.returncode, printed.requests, report.requests, report.notes) == (0, 120, 120, ())
    assert more(report).parts == 80
    assert report.users == 2
    assert report.errors.total == 0
    wanted = driver.byproduct()
    assert wanted is not None
    subprocess.run(wanted.command.argv, cwd=tmp_path, check=True, timeout=300)
    with tarfile.open(tmp_path / wanted.file) as archive:
        assert "html-report/index.html" in archive.getnames()
    (tmp_path / driver.result_file).write_text("")
    broken = subprocess.run(wanted.command.argv, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert (broken.returncode, broken.stderr != "", (tmp_path / wanted.file).exists()) == (1, True, False)


def test_a_report_for_people_is_made_only_when_it_is_asked_for() -> None:
    assert Jmeter().byproduct() is None
    wanted = Jmeter(html_report=True, heap_max="3g").byproduct()
    assert wanted is not None
    assert wanted.command.argv[4:] == ("HEAP=-Xms3g -Xmx3g", "jmeter")
    assert wanted.command.timeout_s == 600
