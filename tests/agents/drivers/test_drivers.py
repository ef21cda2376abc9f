from __future__ import annotations

import http.server
import json
import subprocess
import threading
from pathlib import Path

import pytest
from pydantic import TypeAdapter, ValidationError

from agents.base.errors import ParseError, PlanError
from agents.drivers import DRIVERS, AnyDriver
from agents.drivers.base.driver import Target
from agents.drivers.reading import READERS, REPORTING, read_report
from agents.drivers.wrk.command_line import WrkGrammar
from agents.drivers.wrk.units import duration_ms, rate, size_bytes
from agents.drivers.wrk.wrk import Wrk
from agents.drivers.wrk.wrk2 import Wrk2
from tests import needs
from tests.agents.recorded import Case, cases, damaged
from tests.properties import HealthCheck, given, settings

REPORTS = [case for kind in REPORTING for case in cases(kind)]
WHOLE = [case for case in REPORTS if case.expected.get("complete", True) and case.format in ("wrk-text", "wrk2-text")]

# Nothing in these texts shows what went wrong; a second source must say it.
NOT_IN_THE_TEXT = {"wrk/link-cut-midway"}


def ids(case: Case) -> str:
    return case.name


def by_name(name: str) -> Case:
    return next(case for case in REPORTS if case.name == name)


def compare(found: dict[str, object], expected: dict[str, object], tolerance: dict[str, float]) -> list[str]:
    """What is wrong, key by key."""
    wrong = []
    for key, want in expected.items():
        have = found.get(key)
        if isinstance(want, dict) and isinstance(have, dict):
            wrong += [f"{key}.{problem}" for problem in compare(have, want, tolerance)]
        elif isinstance(want, (int, float)) and not isinstance(want, bool) and isinstance(have, (int, float)):
            if have != pytest.approx(want, rel=1e-6, abs=tolerance.get(key, 0.0)):
                wrong.append(f"{key}: {have} is not {want}")
        elif have != want:
            wrong.append(f"{key}: {have!r} is not {want!r}")
    return wrong


@pytest.mark.parametrize("kind", REPORTING)
def test_every_driver_has_cases_and_readers_for_all_its_formats(kind: str) -> None:
    formats = {form.name for form in DRIVERS[kind].formats}
    assert {case.format for case in cases(kind)} == formats
    assert {kind, *formats} <= set(READERS)


def test_the_registry_and_the_union_hold_the_same_drivers() -> None:
    schema = TypeAdapter(AnyDriver).json_schema()
    assert set(schema["discriminator"]["mapping"]) == set(DRIVERS)


@pytest.mark.parametrize("case", REPORTS, ids=ids)
def test_a_report_gives_the_expected_figures(case: Case) -> None:
    found = read_report(case.format, case.text, case.command).to_json()
    assert compare(found, case.expected, case.tolerance) == []


@pytest.mark.parametrize("case", REPORTS, ids=ids)
def test_a_driver_kind_detects_the_format(case: Case) -> None:
    kind = case.name.partition("/")[0]
    assert read_report(kind, case.text) == read_report(case.format, case.text)


@pytest.mark.parametrize("case", [c for c in REPORTS if c.name not in NOT_IN_THE_TEXT], ids=ids)
def test_a_report_whose_figures_mean_nothing_is_not_usable_and_says_why(case: Case) -> None:
    report = read_report(case.format, case.text)
    assert report.usable is case.about.get("usable", True)
    if report.complete and not report.usable:
        assert report.why == case.about["why"]


def test_a_tool_that_did_not_start_gives_its_own_message() -> None:
    report = read_report("wrk", by_name("wrk/refused").text)
    assert (report.complete, report.usable) == (False, False)
    assert report.error == "unable to connect to sut:1 Connection refused"
    assert report.why == "the tool did not start: unable to connect to sut:1 Connection refused"
    assert report.requests is None
    assert report.latency is None


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (
            "unable to resolve sut:http Name or service not known\n",
            "unable to resolve sut:http Name or service not known",
        ),
        ("invalid URL: foo\nUsage: wrk <options> <url>      \n  Options:\n", "invalid URL: foo"),
        ("number of connections must be >= threads\n", "number of connections must be >= threads"),
        ("sh: 1: wrk: not found\n", "sh: 1: wrk: not found"),
        ("load.lua: cannot open load.lua: No such file\nunable to connect to x:1 refused", "load.lua: cannot open"),
    ],
)
def test_other_refusals_are_recognised(text: str, error: str) -> None:
    report = read_report("wrk", text)
    assert not report.complete
    assert (report.error or "").startswith(error)


@pytest.mark.parametrize("case", WHOLE, ids=ids)
def test_a_report_cut_anywhere_is_not_a_report(case: Case) -> None:
    whole = case.text.index("Transfer/sec:")
    end = case.text.index("B", whole)
    step = max(1, end // 400)
    for cut in [*range(0, end, step), *range(max(0, end - 60), end + 1)]:
        with pytest.raises(ParseError) as caught:
            read_report(case.format, case.text[:cut])
        assert caught.value.line is not None


@pytest.mark.parametrize("case", WHOLE, ids=ids)
def test_two_reports_in_one_file_are_refused(case: Case) -> None:
    with pytest.raises(ParseError, match="second report") as caught:
        read_report(case.format, case.text + case.text)
    assert caught.value.line is not None
    assert caught.value.line > case.text.count("\n")


def test_two_rows_in_the_csv_are_refused() -> None:
    text = by_name("wrk/lua-get").text
    with pytest.raises(ParseError, match="one row only") as caught:
        read_report("wrk", text + text.splitlines()[1])
    assert caught.value.line == 3


def test_line_ends_of_windows_change_nothing() -> None:
    for name in ("wrk/latency-ms", "wrk2/steady-latency", "wrk/lua-put"):
        case = by_name(name)
        assert read_report(case.format, case.text.replace("\n", "\r\n")) == read_report(case.format, case.text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n",
        "hello\n",
        "Summary:\n  Total:\t0.1 secs\n  Requests/sec:\t42.0\n",
        "Server Software:        nginx\nRequests per second:    1.0 [#/sec] (mean)\n",
        "summary =    120 in 00:00:10 =   12.0/s Avg:     3 Min:     1 Max:    30 Err:     0 (0.00%)\n",
        '{"metrics": {}}',
        "timeStamp,elapsed,label\n1,2,x\n",
        "timeStamp,duration_microseconds\n1,2\n",
        "\x00\xff",
    ],
)
@pytest.mark.parametrize("kind", READERS)
def test_what_is_no_report_of_the_tool_is_refused(kind: str, text: str) -> None:
    with pytest.raises(ParseError) as caught:
        read_report(kind, text)
    assert caught.value.line is not None


def test_wrk_and_wrk2_are_not_taken_for_each_other() -> None:
    assert read_report("wrk", by_name("wrk2/no-latency").text).tool == "wrk2"
    with pytest.raises(ParseError, match="report of wrk2"):
        DRIVERS["wrk"].read(by_name("wrk2/no-latency").text)
    with pytest.raises(ParseError, match="latency distribution of wrk"):
        read_report("wrk2", by_name("wrk/latency-ms").text)


def test_an_unknown_kind_lists_the_known_ones() -> None:
    with pytest.raises(ParseError) as caught:
        read_report("gatling", "x")
    assert "wrk, wrk-lua-csv, wrk-text, wrk2, wrk2-text" in caught.value.hint


@pytest.mark.parametrize("filling", ["x" * 100 + "\n", "\n", "9" * 1000, "Running 5s test @ x\n", "  Thread Stats \n"])
def test_a_text_that_is_far_too_long_is_refused(filling: str) -> None:
    for size in (7_900_000, 10_000_000):
        with pytest.raises(ParseError):
            read_report("wrk", filling * (size // len(filling)))


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(damaged([case.text for case in REPORTS if case.name.startswith(("jmeter/", "wrk"))]))
def test_a_damaged_report_gives_a_report_or_a_parse_error(text: str) -> None:
    for kind in ("jmeter", "wrk", "wrk2"):
        try:
            read_report(kind, text)
        except ParseError:
            continue


def test_what_a_lua_script_prints_around_the_report_is_passed_over() -> None:
    text = by_name("wrk/lua-stdout").text
    assert read_report("wrk", f"thread 1 ready\n{text}done\n") == read_report("wrk", text)


@pytest.mark.parametrize(
    ("command", "connections", "threads", "offered_rate_rps", "duration_s"),
    [
        ("wrk -c1280 -t128 -R500000 -d60 http://sut/", 1280, 128, 500000.0, 60.0),
        ("ulimit -n 4096; /opt/wrk2 --connections=1k --threads 8 --rate 1M -d 2m http://sut/", 1000, 8, 1e6, 120.0),
        ("CSV_OUT=x wrk -t2 -c24 -d5s -H 'X: -c9' -s r.lua http://sut -- GET /p -c7", 24, 2, None, 5.0),
        ("-t1 -c2", 2, 1, None, None),
    ],
)
def test_a_command_line_is_read_as_the_tool_reads_it(
    command: str, connections: int, threads: int, offered_rate_rps: float | None, duration_s: float | None
) -> None:
    said = WrkGrammar(has_rate=True).read(command)
    assert (said.connections, said.threads) == (connections, threads)
    assert (said.offered_rate_rps, said.duration_s) == (offered_rate_rps, duration_s)


@pytest.mark.parametrize("command", ["wrk -c '", "wrk -c $C", "wrk -c", "wrk -Z1", "wrk -d 1.5s", "wrk -c 50 -t2"])
def test_a_command_line_that_does_not_belong_to_the_report_is_refused(command: str) -> None:
    with pytest.raises(ParseError):
        read_report("wrk", by_name("wrk/basic").text, command)


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [("635.91us", 0.63591), ("0.85ms", 0.85), ("13.29s", 13290), ("0.85m", 51000), ("-nanus", None)],
)
def test_durations_have_units_of_their_own(text: str, milliseconds: float | None) -> None:
    assert duration_ms(text) == (None if milliseconds is None else pytest.approx(milliseconds))


def test_rates_are_decimal_and_sizes_are_binary() -> None:
    assert rate("0.97k") == 970
    assert rate("56.20k") == 56200
    assert rate("-nan") is None
    assert round(size_bytes("1.58GB")) == 1696512082


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"connections": 4, "threads": 8}, "8 threads need at least 8 connections"),
        ({"connections": 50, "threads": 8}, "the tool would open 48; use 48 or 56"),
        ({"connections": 0, "threads": 1}, "greater than or equal to 1"),
        ({"connections": 1, "threads": 1, "headers": {"X": "a\r\nY: b"}}, "line break"),
        ({"connections": 1, "threads": 1, "headers": {"X Y": "a"}}, "not the name of an HTTP header"),
        ({"connections": 1, "threads": 1, "binary": "-v"}, "should match pattern"),
        ({"connections": 1, "threads": 1, "binary": "wrk;id"}, "should match pattern"),
        ({"connections": 1, "threads": 1, "conections": 2}, "Extra inputs"),
        ({"connections": 1, "threads": 1, "timeout_s": 1.5}, "valid integer"),
    ],
)
def test_options_that_cannot_work_are_refused_with_the_reason(options: dict[str, object], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        Wrk.model_validate(options)


def test_wrk2_needs_a_rate() -> None:
    with pytest.raises(ValidationError, match="offered_rate_rps"):
        Wrk2.model_validate({"connections": 1, "threads": 1})


def test_the_command_line_holds_every_option() -> None:
    driver = Wrk2(
        connections=1280, threads=128, offered_rate_rps=500_000, headers={"Accept": "a b"}, script="-- x", binary="wrk"
    )
    command = driver.command(Target("http://sut:8080/x?a=b;c"), 60.0)
    assert command.shell() == (
        "wrk -t128 -c1280 -d60s --timeout=2s -R500000 --latency -H 'Accept: a b' -s load.lua 'http://sut:8080/x?a=b;c'"
    )
    assert command.timeout_s > 60
    assert driver.files() == {"load.lua": "-- x"}


@pytest.mark.parametrize(
    ("url", "duration_s"), [("http://sut/", 1.5), ("http://sut/", 0), ("-s x.lua", 1), ("http://a b", 1)]
)
def test_a_command_that_the_tool_would_misread_is_not_made(url: str, duration_s: float) -> None:
    with pytest.raises(PlanError):
        Wrk(connections=1, threads=1).command(Target(url), duration_s)


def test_the_options_complete_what_the_text_does_not_say() -> None:
    report = Wrk2(connections=1280, threads=128, offered_rate_rps=500_000).parse(by_name("wrk2/published-default").text)
    assert (report.connections, report.threads, report.offered_rate_rps) == (1280, 128, 500_000.0)
    assert (report.load_model, report.latency_basis) == ("open", "response_time")
    assert json.loads(json.dumps(report.to_json()))["offered_rate_rps"] == 500_000


VERSION = b"wrk %s [epoll] Copyright (C) 2012 Will Glozer\nUsage: wrk <options> <url>\n  -c, --connections <N>\n%s"


def test_the_version_tells_wrk_from_wrk2() -> None:
    one, two = Wrk(connections=1, threads=1), Wrk2(connections=1, threads=1, offered_rate_rps=1)
    plain, with_rate = VERSION % (b"debian/4.1.0-3+b2", b""), VERSION % (b"4.0.0", b"  -R, --rate <T>\n")
    assert one.parse_version(plain) == "debian/4.1.0-3+b2"
    assert two.parse_version(with_rate) == "4.0.0"
    for driver, output in ((one, with_rate), (two, plain), (one, b"Usage: h2load"), (one, b"")):
        with pytest.raises(ParseError):
            driver.parse_version(output)


def test_a_missing_tool_fails_and_names_the_package() -> None:
    command = Wrk(connections=1, threads=1, binary="no-such-wrk").version_command()
    done = subprocess.run(command.argv, capture_output=True, check=False)
    assert done.returncode == 127
    assert b"install the package wrk" in done.stderr


@needs.program("wrk")
def test_the_real_wrk_takes_the_command_and_prints_what_is_read(tmp_path: Path) -> None:
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.send_response(200 if self.headers["X-Lua"] == "yes" and self.headers["X-Own"] == "a b" else 400)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
            """Says nothing."""

    driver = Wrk(connections=2, threads=1, headers={"X-Own": "a b"}, script='wrk.headers["X-Lua"] = "yes"')
    for name, text in driver.files().items():
        (tmp_path / name).write_text(text)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        command = driver.command(Target(f"http://127.0.0.1:{server.server_port}/"), 1)
        done = subprocess.run(command.argv, capture_output=True, text=True, cwd=tmp_path, timeout=300, check=True)
        server.shutdown()
    report = driver.parse(done.stdout)
    assert report.usable
    assert report.requests
    assert report.errors.total == 0
    assert report.latency
    assert set(report.latency.percentiles_ms) == {"50", "75", "90", "99"}
    version = subprocess.run(driver.version_command().argv, capture_output=True, check=True).stdout
    assert driver.parse_version(version)


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [(",8669,", ",8670,", "it tells of another run"), ("\n2026-", "\nx2026-", "expected a row with a time")],
)
def test_a_csv_behind_the_report_that_does_not_fit_is_left_out_and_noted(old: str, new: str, why: str) -> None:
    report = read_report("wrk", by_name("wrk/lua-csv-behind").text.replace(old, new))
    assert report.latency is not None
    assert report.latency.percentiles_ms == {"50": 15.43, "75": 33.08, "90": 61.1, "99": 159.2}
    assert [why in note for note in report.notes] == [True]


def test_a_warning_glued_to_the_json_of_oha_is_passed_over() -> None:
    case = next(case for case in REPORTS if case.format == "oha-json" and case.expected.get("throughput_rps"))
    warned = case.text.rstrip() + "DNS: failed to load /etc/resolv.conf: io error: no nameservers found in config\n"
    assert read_report("oha", warned) == read_report("oha", case.text)
    for more in ("{}", "]", '"x"', "1"):
        with pytest.raises(ParseError, match="something follows"):
            read_report("oha", case.text.rstrip() + more)
