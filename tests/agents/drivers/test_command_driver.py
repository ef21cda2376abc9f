"""The driver for any benchmark: what it refuses, the command it makes, and the figures that it finds."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pydantic import ValidationError

from agents.base.errors import ParseError, PlanError
from agents.drivers.base.driver import Target
from agents.drivers.command.driver import CommandDriver
from agents.drivers.command.figures import number_in
from agents.drivers.reading import read_report
from agents.spec import RunSpec
from tests.agents.drivers.test_drivers import compare
from tests.agents.mutations import mutate
from tests.agents.recorded import Case, cases
from tests.agents.run_lab import Lab, Watched, assert_left_as_it_was, lab, lab_hosts
from tests.properties import HealthCheck, given, settings, st

__all__ = ["lab", "lab_hosts"]  # fixtures

PATTERNS = cases("command/patterns")
TARGET = Target("https://sut:8443/shop?item=1")


def driver(**options: Any) -> CommandDriver:
    return CommandDriver.model_validate({"argv": ["bench"], **options})


def reading(source: dict[str, Any], name: str = "throughput_rps", **options: Any) -> CommandDriver:
    return driver(figures={name: source}, **options)


@pytest.mark.parametrize("case", PATTERNS, ids=lambda case: case.name)
def test_the_figures_of_a_real_benchmark_are_found(case: Case) -> None:
    options: Any = case.about["driver"]
    found = CommandDriver.model_validate(options).parse(case.text).to_json()
    assert compare(found, case.expected, case.tolerance) == []


def test_the_placeholders_are_filled_in_and_nothing_is_read_by_a_shell() -> None:
    argv = [
        "bench",
        "{url}",
        "{scheme}://{host}:{port}{path}",
        "-t{duration_s}",
        "{connections}x{offered_rate_rps}",
        "$(id)",
    ]
    command = driver(argv=argv, connections=20, offered_rate_rps=500).command(TARGET, 30)
    url = "https://sut:8443/shop?item=1"
    assert command.argv == ("bench", url, url, "-t30", "20x500", "$(id)")
    assert command.timeout_s > 30


def test_the_model_of_load_is_what_the_options_say() -> None:
    closed = driver()
    opened = driver(offered_rate_rps=500, from_due_time=True, fixed_work=True)
    assert (closed.load_model, closed.latency_basis, closed.may_end_early) == ("closed", "service_time", False)
    assert (opened.load_model, opened.latency_basis, opened.may_end_early) == ("open", "response_time", True)
    report = opened.parse('{"throughput_rps": 499, "latency_p99_ms": 3}')
    assert (report.load_model, report.latency_basis, report.offered_rate_rps) == ("open", "response_time", 500.0)


def test_only_an_admin_may_save_it() -> None:
    assert [one.field for one in driver().reserved()] == ["kind"]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"argv": []}, "at least 1 item"),
        ({"argv": ["-x"]}, "first argument is the program"),
        ({"argv": ["bench", "{host_name}"]}, r"argv has \{host_name\}; there are \{url\}"),
        ({"argv": ["bench", "-c{connections}"]}, "so give connections"),
        ({"from_due_time": True}, "needs a schedule"),
        ({"scripts": {"../x": "y"}}, "should match pattern"),
        ({"figures": {"throughput_rps": {}}}, "a pattern or a json_path, one of the two"),
        ({"figures": {"throughput_rps": {"pattern": "(a)", "json_path": "a"}}}, "one of the two"),
        ({"figures": {"throughput_rps": {"pattern": "a"}}}, r"needs one group \(...\)"),
        ({"figures": {"throughput_rps": {"pattern": "(a)(b)"}}}, "needs one group"),
        ({"figures": {"throughput_rps": {"pattern": "(a"}}}, "not a regular expression"),
        ({"figures": {"throughput_rps": {"pattern": "(?R)?(a)"}}}, "an expression that calls itself"),
        ({"figures": {"throughput_rps": {"pattern": r"\\(a(?1)?b)"}}}, "an expression that calls itself"),
        ({"figures": {"throughput_rps": {"pattern": "(?P<x>a(?&x)?)"}}}, "an expression that calls itself"),
        ({"figures": {"throughput_rps": {"pattern": "(a{9999999})"}}}, "the numbers in braces"),
        ({"figures": {"throughput_rps": {"pattern": "(" * 9 + "a" + "{100})" * 9}}}, "the numbers in braces"),
        ({"figures": {"throughput_rps": {"pattern": "(?ix)(a{99 99999})"}}}, "blanks and remarks"),
        ({"figures": {"throughput_rps": {"json_path": "a..b"}}}, "is not a path"),
        ({"figures": {"throughput_rps": {"json_path": "$.a"}}}, "is not a path"),
        ({"figures": {"gc_ms": {"pattern": "(a)"}}}, "give its unit and direction"),
        ({"figures": {"throughput_rps": {"pattern": "(a)", "unit": "1/s"}}}, "its unit is in its name"),
        ({"figures": {"latency_p101_ms": {"pattern": "(a)"}}}, "figure of your own"),
        ({"figures": {"Rate": {"pattern": "(a)"}}}, "should match pattern"),
    ],
)
def test_options_that_cannot_work_are_refused_with_the_reason(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        driver(**options)


@pytest.mark.parametrize(
    ("pick", "value"), [("last", 30.0), ("first", 10.0), ("sum", 60.0), ("min", 10.0), ("max", 30.0)]
)
def test_of_several_matches_one_is_picked_or_all_are_added(pick: str, value: float) -> None:
    report = reading({"pattern": "rate ([0-9]+)", "pick": pick}).parse("rate 10\nrate 20\r\nrate 30\r")
    assert report.throughput_rps == value


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1,234.5", 1234.5),
        (" -3 ", -3.0),
        ("2.5e3", 2500.0),
        (".5", 0.5),
        (7, 7.0),
        ("1,23", None),
        ("1.2.3", None),
        ("nan", None),
        ("١٢", None),
        ("1e999", None),
        (10**400, None),
        (True, None),
        ([1], None),
    ],
)
def test_a_number_is_taken_only_when_it_is_one(text: object, number: float | None) -> None:
    assert number_in(text) == number


@pytest.mark.parametrize(
    ("source", "output", "problem"),
    [
        ({"pattern": "rate (.*)"}, "rate fast", "'fast' is not a number"),
        ({"pattern": "rate ([0-9]+)"}, "no such line", "there is no throughput_rps in the output"),
        ({"json_path": "a.b"}, '{"a": 1}', "nothing at a.b"),
        ({"json_path": "a"}, '{"a": "x"}', "is not a number"),
        ({"json_path": "a"}, "no JSON", "no report of bench"),
        ({"pattern": "rate (.*)"}, "rate -5", "must be a number of at least 0"),
        ({"pattern": r"((?:a+)+)$"}, "a" * 50_000 + "b", "takes longer than 1 s"),
    ],
)
def test_an_output_without_the_figure_is_no_report(source: dict[str, Any], output: str, problem: str) -> None:
    with pytest.raises(ParseError, match=problem) as caught:
        reading(source).parse(output)
    assert caught.value.line is not None


def test_a_count_is_a_whole_number() -> None:
    with pytest.raises(ParseError, match=r"requests is 1\.5"):
        reading({"pattern": "(.+)"}, "requests").parse("1.5")


def test_a_figure_of_ones_own_may_be_negative_and_an_optional_one_may_be_missing() -> None:
    own = {"unit": "ms", "direction": "lower"}
    figures = {"drift_ms": {"json_path": "x[1]", **own}, "gone_ms": {"json_path": "y", "optional": True, **own}}
    report = driver(figures=figures).parse('{"x": [1, -2]}')
    assert [(metric.name, metric.value) for metric in report.own_metrics] == [("drift_ms", -2.0)]
    assert report.usable


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"Rate": {"value": 1, "unit": "x", "direction": "higher"}}', "small letters"),
        ('{"rate": 5}', "should be an object"),
        ('{"rate": {"value": "x", "unit": "x", "direction": "higher"}}', "value should be a number"),
        ('{"rate": {"value": 1, "unit": "", "direction": "higher"}}', "a unit of at most 20"),
        ('{"rate": {"value": 1, "unit": "x", "direction": "up"}}', "higher or lower"),
        ('{"rate": null}', "there is no figure"),
    ],
)
def test_own_figures_in_the_json_need_value_unit_and_direction(text: str, problem: str) -> None:
    with pytest.raises(ParseError, match=problem):
        read_report("command", text)


def test_a_bracket_that_may_be_missing_is_no_call_of_the_expression() -> None:
    source = {"pattern": r"\(?Rate (?i:is) ([0-9]+)"}
    assert driver(figures={"throughput_rps": source}).parse("(Rate IS 7)").throughput_rps == 7


@pytest.mark.parametrize("duration_s", ["5e-324", "1e-300"])
def test_requests_in_next_to_no_time_are_no_rate(duration_s: str) -> None:
    with pytest.raises(ParseError, match="no rate that a server can have"):
        read_report("command", f'{{"requests": 1e17, "duration_s": {duration_s}}}')


def test_without_a_rate_it_is_worked_out_from_requests_and_time() -> None:
    assert read_report("command", '{"requests": 300, "duration_s": 2}').throughput_rps == 150.0


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(random=st.randoms(use_true_random=False), case=st.sampled_from(PATTERNS))
def test_a_mutated_output_gives_figures_or_a_parse_error(random: Random, case: Case) -> None:
    options: Any = case.about["driver"]
    try:
        CommandDriver.model_validate(options).parse(mutate(random, case.text, [case.text])).to_json()
    except ParseError:
        return


@pytest.mark.parametrize("url", ["--config=x", "file:///etc/passwd", "http://a b"])
def test_a_command_that_could_be_misread_is_not_made(url: str) -> None:
    with pytest.raises(PlanError):
        driver().command(Target(url), 30)


def test_a_program_that_is_not_there_is_named() -> None:
    done = subprocess.run(driver(argv=["no-such-bench"]).version_command().argv, capture_output=True, check=False)
    assert done.returncode != 0
    assert b"there is no program no-such-bench" in done.stderr


def test_a_script_of_ones_own_runs_beside_its_files_and_is_read(tmp_path: Path) -> None:
    bench = driver(
        argv=["sh", "bench.sh", "{url}", "{duration_s}"],
        scripts={"bench.sh": 'echo "$1 took $2 s"\necho "rate: $(cat rate.txt)"\n', "rate.txt": "1,200.5\n"},
        version=["sh", "-c", "echo 'bench 1.2'"],
        figures={"throughput_rps": {"pattern": "^rate: (.+)"}, "duration_s": {"pattern": "took ([0-9]+) s"}},
    )
    for name, text in bench.files().items():
        (tmp_path / name).write_text(text)
    argv = bench.command(TARGET, 5).argv
    done = subprocess.run(argv, capture_output=True, text=True, cwd=tmp_path, check=True)
    report = bench.parse(done.stdout)
    assert (report.throughput_rps, report.duration_s) == (1200.5, 5.0)
    version = subprocess.run(bench.version_command().argv, capture_output=True, check=True).stdout
    assert bench.parse_version(version) == "bench 1.2"


BENCH = """
curl -sS "$1" >/dev/null || exit 1
echo "answers/s: 12.5"
echo "p99: 0.004 s"
echo "pages: $(cat pages.txt)"
"""


async def test_a_run_with_a_benchmark_of_ones_own_keeps_its_figures(lab: Lab) -> None:
    body = lab.spec(phases=(("warm_up", 1), ("measure", 1))).model_dump()
    body["workload"]["driver"] = {
        "kind": "command",
        "argv": ["sh", "bench.sh", "{url}"],
        "scripts": {"bench.sh": BENCH, "pages.txt": "7\n"},
        "fixed_work": True,
        "figures": {
            "throughput_rps": {"pattern": "answers/s: (.+)"},
            "latency_p99_ms": {"pattern": "p99: ([0-9.]+) s", "scale": 1000},
            "pages_count": {"pattern": "pages: (.+)", "unit": "count", "direction": "higher"},
        },
    }
    record = await Watched(lab).run(RunSpec.model_validate(body))
    assert record.failed is None, record.failed
    report = record.reports[1].report
    assert (report["throughput_rps"], report["latency_p99_ms"], report["load_model"]) == (12.5, 4.0, "closed")
    assert report["own_metrics"] == [{"name": "pages_count", "value": 7.0, "unit": "count", "direction": "higher"}]
    assert record.facts["driver"].tool_version.endswith("/sh")
    assert_left_as_it_was(lab, record)


@pytest.mark.parametrize(
    ("name", "value", "more", "problem"),
    [
        ("cart_latency_ms", -1, {}, "below its lower bound of 0"),
        ("proxy_cpu_ratio", 95, {"unit": "ratio"}, "above its upper bound of 1"),
        ("score", 12, {"high": 10}, "above its upper bound of 10"),
        ("score", -5, {"low": -1}, "below its lower bound of -1"),
    ],
)
def test_a_figure_that_cannot_be_makes_the_report_unreadable_with_its_bound(
    name: str, value: float, more: dict[str, Any], problem: str
) -> None:
    own = {"unit": "ms", "direction": "lower", **more}
    with pytest.raises(ParseError, match=problem):
        driver(figures={name: {"json_path": "x", **own}}).parse(json.dumps({"x": value}))
    with pytest.raises(ParseError, match=problem):
        read_report("command", json.dumps({name: {"value": value, **own}}))
