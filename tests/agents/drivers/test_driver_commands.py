"""The command lines of the HTTP load tools: their options, what they refuse, and the real tools where there are any."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest
from pydantic import ValidationError

from agents.base.errors import ParseError, PlanError
from agents.drivers.base.driver import Target
from agents.drivers.reading import read_report
from tests.agents.drivers.plain_drivers import HEADERS, KINDS, make
from tests.agents.recorded import cases

URL = "http://sut:8080/x?a=b;c"


def shell(kind: str, **options: Any) -> str:
    return make(kind, **options).command(Target(URL), 30).shell()


@pytest.mark.parametrize(
    ("kind", "options", "words"),
    [
        (
            "ab",
            {"keep_alive": False, "method": "PUT", "body": "x", "headers": HEADERS, "timeout_s": 5},
            (
                "ab -q -l -r -t 30 -n 10000000 -c 2 -s 5 -u request.body -T text/plain -H 'X-Own: a b; $(id)' "
                "'http://sut:8080/x?a=b;c'"
            ),
        ),
        ("ab", {"method": "HEAD"}, "ab -q -l -r -t 30 -n 10000000 -c 2 -s 30 -k -i 'http://sut:8080/x?a=b;c'"),
        (
            "autocannon",
            {"offered_rate_rps": 500, "pipelining": 4, "method": "POST", "body": "x", "headers": {"A": "b=c"}},
            (
                "autocannon --json --no-progress -c 2 -d 30 -t 10 -m POST -p 4 -R 500 -i request.body -H A=b=c "
                "'http://sut:8080/x?a=b;c'"
            ),
        ),
        (
            "h2load",
            {"streams": 8, "threads": 2, "warm_up_s": 3, "method": "PUT", "body": "x", "rate_per_connection_rps": 50},
            (
                "h2load --duration=30 --warm-up-time=3 --clients=2 --threads=2 --max-concurrent-streams=8 --rps=50 "
                "-H ':method: PUT' --data=request.body 'http://sut:8080/x?a=b;c'"
            ),
        ),
        (
            "h2load",
            {"http_version": "1.1"},
            "h2load --duration=30 --warm-up-time=0 --clients=2 --threads=1 --h1 'http://sut:8080/x?a=b;c'",
        ),
        (
            "hey",
            {"http_version": "2", "keep_alive": False, "limit_rps": 100, "body": "x", "method": "POST"},
            (
                "hey -z 30s -c 2 -t 20 -m POST -q 50.000000 -h2 -disable-keepalive -disable-redirects -D request.body "
                "'http://sut:8080/x?a=b;c'"
            ),
        ),
        (
            "hyperfoil",
            {"offered_rate_rps": 900, "http_version": "2"},
            (
                "/opt/hyperfoil/bin/wrk2.sh -t 1 -c 2 -d 30s --timeout=60s --latency -R 900 --enable-http2=true "
                "'http://sut:8080/x?a=b;c'"
            ),
        ),
        (
            "hyperfoil",
            {},
            "/opt/hyperfoil/bin/wrk.sh -t 1 -c 2 -d 30s --timeout=60s --latency 'http://sut:8080/x?a=b;c'",
        ),
        (
            "oha",
            {"offered_rate_rps": 100, "http_version": "2", "streams": 3, "insecure": True, "keep_alive": False},
            (
                "oha --no-tui --output-format json -z 30s -c 2 -m GET -t 30s --redirect 0 -q 100 --latency-correction "
                "--http2 -p 3 --disable-keepalive --insecure 'http://sut:8080/x?a=b;c'"
            ),
        ),
    ],
)
def test_the_command_line_holds_every_option(kind: str, options: dict[str, Any], words: str) -> None:
    assert shell(kind, **options) == words


def test_siege_posts_the_body_of_a_file_and_has_its_own_settings() -> None:
    driver = make("siege", method="POST", body="a=b", think_time_s=0.5, keep_alive=False)
    assert driver.command(Target(URL), 30).argv[4:] == (
        "siege",
        "--rc=siege.rc",
        "--json-output",
        "--no-parser",
        "--no-follow",
        "--concurrent=2",
        "--time=30S",
        "--delay=0.5",
        "--content-type=text/plain",
        f"{URL} POST <request.body",
    )
    assert driver.files()["request.body"] == "a=b"
    assert "connection = close\n" in driver.files()["siege.rc"]


def test_vegeta_gets_its_target_as_an_argument_that_no_shell_reads() -> None:
    argv = make("vegeta", method="PUT", body="x", headers=HEADERS, max_workers=7).command(Target(URL), 30).argv
    assert argv[4] == "vegeta"
    assert argv[6:] == (
        f"PUT {URL}",
        "-rate=100/1s",
        "-duration=30s",
        "-timeout=30s",
        "-connections=10000",
        "-redirects=-1",
        "-keepalive=true",
        "-http2=false",
        "-insecure=false",
        "-max-workers=7",
        "-body=request.body",
        "-header=X-Own: a b; $(id)",
    )


def test_k6_gets_address_and_duration_apart_from_its_script() -> None:
    driver = make("k6", arrival_rate_rps=50, max_users=9, headers={"X": '"; alert(1) //'}, body="</script>\n")
    argv = driver.command(Target(URL), 30).argv
    assert argv[4:] == (
        "k6",
        "run",
        "--quiet",
        "--no-usage-report",
        "--no-color",
        "-e",
        f"BENCHHUB_URL={URL}",
        "-e",
        "BENCHHUB_DURATION_S=30",
        "load.js",
    )
    text = driver.files()["load.js"]
    assert '"X": "\\"; alert(1) //"' in text
    assert '"executor": "constant-arrival-rate"' in text
    assert '"duration": __ENV.BENCHHUB_DURATION_S + "s"' in text
    own = make("k6", script="export default function () {}")
    assert own.files() == {"load.js": "export default function () {}"}
    assert own.command(Target(URL), 30).argv[-5:] == ("--vus", "2", "--duration", "30s", "load.js")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("url", "duration_s"),
    [
        ("http://sut/", 1.5),
        ("http://sut/", 0),
        ("--config=x", 1),
        ("http://a b", 1),
        ("http://a\nb", 1),
        ("file:///etc/passwd", 1),
    ],
)
def test_a_command_that_a_tool_would_misread_is_not_made(kind: str, url: str, duration_s: float) -> None:
    with pytest.raises(PlanError):
        make(kind).command(Target(url), duration_s)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "options",
    [
        {"binary": "-v"},
        {"binary": "x;id"},
        {"home": "--help"},
        {"home": "/opt/a b"},
        {"headers": {"-X": "a"}},
        {"headers": {"X": "a\r\nY: b"}},
        {"headers": {"X: Y": "a"}},
        {"connections": 0},
        {"users": 0},
        {"offered_rate_rps": -1},
        {"timeout_s": 0},
        {"method": "GET /x"},
        {"content_type": "-x"},
        {"nonsense": 1},
    ],
)
def test_an_option_that_is_no_value_of_the_tool_is_refused(kind: str, options: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        make(kind, **options)


@pytest.mark.parametrize(
    ("kind", "options", "problem"),
    [
        ("ab", {"body": "x"}, "POST and PUT only"),
        ("ab", {"max_requests": 1}, "at least the number of connections"),
        ("autocannon", {"workers": 2, "offered_rate_rps": 10}, "every worker the whole rate"),
        ("h2load", {"http_version": "1.1", "streams": 2}, "one stream per connection"),
        ("h2load", {"threads": 4}, "4 threads need at least 4 connections"),
        ("hyperfoil", {"threads": 4}, "4 threads need at least 4 connections"),
        ("oha", {"streams": 2}, "one stream per connection"),
        ("k6", {"max_users": 1}, "must be at least users"),
        ("k6", {"script": "x", "arrival_rate_rps": 5}, "in the script's options"),
    ],
)
def test_options_that_do_not_fit_together_are_refused(kind: str, options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        make(kind, **options)


@pytest.mark.parametrize(
    ("kind", "options", "load"),
    [
        ("ab", {}, ("closed", "service_time")),
        ("hey", {"limit_rps": 100}, ("closed", "service_time")),
        ("siege", {}, ("closed", "service_time")),
        ("autocannon", {}, ("closed", "service_time")),
        ("autocannon", {"offered_rate_rps": 9}, ("open", "response_time")),
        ("h2load", {}, ("closed", "service_time")),
        ("h2load", {"rate_per_connection_rps": 9}, ("open", "service_time")),
        ("hyperfoil", {}, ("closed", "service_time")),
        ("hyperfoil", {"offered_rate_rps": 9}, ("open", "response_time")),
        ("k6", {}, ("closed", "service_time")),
        ("k6", {"arrival_rate_rps": 9}, ("open", "service_time")),
        ("oha", {}, ("closed", "service_time")),
        ("oha", {"latency_correction": False, "offered_rate_rps": 9}, ("open", "service_time")),
        ("oha", {"offered_rate_rps": 9}, ("open", "response_time")),
        ("vegeta", {}, ("open", "response_time")),
        ("vegeta", {"max_workers": 5}, ("open", "service_time")),
    ],
)
def test_the_kind_of_load_follows_from_the_options(kind: str, options: dict[str, Any], load: tuple[str, str]) -> None:
    driver = make(kind, **options)
    assert (driver.load_model, driver.latency_basis) == load
    report = driver.parse(next(c for c in cases(kind) if c.format == driver.formats[0].name).text)
    assert (report.load_model, report.latency_basis) == load


@pytest.mark.parametrize(
    ("kind", "output", "version"),
    [
        ("ab", b"This is ApacheBench, Version 2.3 <$Revision$>\n", "2.3"),
        ("autocannon", b"autocannon v9.0.0\nnode v20.20.2\n", "9.0.0"),
        ("h2load", b"h2load nghttp2/1.52.0\n", "1.52.0"),
        ("hey", b"Usage: hey [options...] <url>\n" + b"3d5bc79f9d8b" + b"0" * 52 + b"  /usr/bin/hey\n", "3d5bc79f9d8b"),
        ("hyperfoil", b"/opt/hyperfoil/lib/hyperfoil-cli-0.27.1.jar\n", "0.27.1"),
        ("k6", b"k6 v1.8.1 (go1.26.8, linux/amd64)\n", "1.8.1"),
        ("oha", b"oha 1.16.0\n", "1.16.0"),
        ("siege", b"SIEGE 4.0.7\n\nCopyright (C) 2018\n", "4.0.7"),
        ("vegeta", b"Version: v12.12.0\nCommit: \nRuntime: go1.22.5 linux/amd64\nDate: \n", "12.12.0"),
    ],
)
def test_the_version_is_read_and_another_tool_is_noticed(kind: str, output: bytes, version: str) -> None:
    assert make(kind).parse_version(output) == version
    for other in (b"", b"Usage: h2 [options]\n", b"wrk 4.1.0 [epoll] Copyright (C) 2012 Will Glozer\n"):
        with pytest.raises(ParseError):
            make(kind).parse_version(other)


@pytest.mark.parametrize("kind", KINDS)
def test_a_missing_tool_fails_and_says_what_to_install(kind: str) -> None:
    where = {"home": "/no/such/hyperfoil"} if kind == "hyperfoil" else {"binary": "no-such-tool"}
    done = subprocess.run(make(kind, **where).version_command().argv, capture_output=True, check=False)
    assert done.returncode == 127
    assert b"on this host: " in done.stderr


@pytest.mark.parametrize(
    ("kind", "name", "command", "expected"),
    [
        ("hey", "basic", "hey -n 5000 -c20x http://sut/1k", None),
        ("hey", "basic", "hey -c 20 -H '-c 9' -z 1m30s http://sut/1k", (20, None, 90.0)),
        ("ab", "keepalive", "ab -kc20 -t5 http://sut/1k", (20, None, 5.0)),
        ("oha", "basic", "nice oha -q 100 -c 20 --latency-correction -z 5s http://sut/", (20, 100.0, 5.0)),
        ("vegeta", "refused", "vegeta attack -rate=300/1m -duration=10s | vegeta report", (None, 5.0, 10.0)),
        ("h2load", "http2", "h2load --rps=50 -c10 -t 2 -D 5 http://sut/", (10, 500.0, 5.0)),
    ],
)
def test_a_command_line_tells_what_the_report_does_not(
    kind: str, name: str, command: str, expected: tuple[int | None, float | None, float] | None
) -> None:
    text = next(case for case in cases(kind) if case.name == f"{kind}/{name}").text
    if expected is None:
        report = read_report(kind, text, command)
        assert report.connections is None
        return
    report = read_report(kind, text, command)
    assert (report.connections, report.offered_rate_rps, report.duration_nominal_s) == expected
    assert report.load_model == ("closed" if expected[1] is None else "open")


@pytest.mark.parametrize("command", ["ab -c 5 http://sut/", "ab -c x http://sut/", "ab -c '", "ab -t 5q http://sut/"])
def test_a_command_line_that_contradicts_the_report_is_refused(command: str) -> None:
    text = next(case for case in cases("ab") if case.name == "ab/keepalive").text
    with pytest.raises(ParseError):
        read_report("ab", text, command)
