"""Differences between effective configurations, in three groups."""

from __future__ import annotations

import pytest

from experiments.registry.documents.configuration import IN_PART, Difference, diff


def test_each_difference_is_asked_drift_or_noise() -> None:
    sides = [
        {"same": "1", "asked": "1", "kernel": "6.1", "cpu.0.mhz": "2400", "gone": "x", "process.pid": "1"},
        {"same": "1", "asked": "2", "kernel": "6.12", "cpu.0.mhz": "2500", "new": "y", "process.pid": "2"},
    ]
    found = diff(sides, asked=lambda path: path == "asked")
    assert found.asked == (Difference("asked", ("1", "2")),)
    assert found.drift == (
        Difference("gone", ("x", None)),
        Difference("kernel", ("6.1", "6.12")),
        Difference("new", (None, "y")),
    )
    assert [difference.path for difference in found.noise] == ["cpu.0.mhz", "process.pid"]
    assert not found.empty


def test_noise_alone_is_no_difference_and_what_was_asked_is_never_noise() -> None:
    assert diff([{"x.mhz": "1"}, {"x.mhz": "2"}], asked=lambda path: False).empty
    assert not diff([{"x.mhz": "1"}, {"x.mhz": "2"}], asked=lambda path: True).empty
    assert diff([{"a": "1"}, {"a": "2"}], asked=lambda path: False, noise=("a",)).empty


def test_more_than_two_sides() -> None:
    found = diff([{"a": "1"}, {"a": "1"}, {"a": "2"}], asked=lambda path: False)
    assert found.drift == (Difference("a", ("1", "1", "2")),)
    assert diff([], asked=lambda path: False).empty


def test_what_was_never_recorded_is_no_drift() -> None:
    full = {"kernel": "6.1", "vm.swappiness": "60"}
    partly = {IN_PART: "imported", "kernel": "6.12"}
    assert diff([full, partly], asked=lambda path: False).drift == (Difference("kernel", ("6.1", "6.12")),)
    assert diff([full, {}], asked=lambda path: False).empty
    assert diff([full, {"kernel": "6.1"}], asked=lambda path: False).drift == (
        Difference("vm.swappiness", ("60", None)),
    )


Case = tuple[str, list[str], list[str], dict[str, tuple[str | None, str | None]]]

ARGUMENTS: tuple[Case, ...] = (
    ("one option more", ["java", "-Xmx1g", "Main"], ["java", "-Xmx1g", "-Dv", "Main"], {"[2]": (None, "-Dv")}),
    ("one option less", ["java", "-Dv", "Main"], ["java", "Main"], {"[1]": ("-Dv", None)}),
    ("another value", ["java", "-Xmx1g", "Main"], ["java", "-Xmx2g", "Main"], {"[1]": ("-Xmx1g", "-Xmx2g")}),
    ("another order counts", ["-a", "-b"], ["-b", "-a"], {"[1]": ("-b", None), "[2]": (None, "-b")}),
    ("the same", ["java", "Main"], ["java", "Main"], {}),
    ("nothing on one side", ["java"], [], {"[0]": ("java", None)}),
)


@pytest.mark.parametrize(
    ("first", "second", "expected"), [case[1:] for case in ARGUMENTS], ids=[case[0] for case in ARGUMENTS]
)
def test_an_option_that_only_moved_does_not_differ(
    first: list[str], second: list[str], expected: dict[str, tuple[str | None, str | None]]
) -> None:
    sides = [{"x": "1", **{f"process.arguments[{at}]": text for at, text in enumerate(s)}} for s in (first, second)]
    found = diff(sides, asked=lambda path: True)
    assert {one.path.removeprefix("process.arguments"): one.values for one in found.asked} == expected


def test_of_the_jvms_options_only_those_are_shown_that_differ() -> None:
    sides = [{"jvm.arguments": f"-Xmx1g {option}-cp a b"} for option in ("", "-Dv=1 ", "-Dv=1 ")]
    assert diff(sides[:2], asked=lambda path: True).asked == (Difference("jvm.arguments", (None, "-Dv=1")),)
    assert diff(sides[1:], asked=lambda path: True).empty
    assert diff([sides[0], {"x": "1"}], asked=lambda path: path != "x").asked[0].values == ("-Xmx1g -cp a b", None)


NGINX = """
worker_processes {workers}; # as many as there are CPUs
events {{ worker_connections 1024; }}
http {{
    log_format main '$remote_addr {{x}}; "$request"';
    server {{
        listen 8080;
        location / {{ root /srv;{more} }}
    }}
}}
"""
REDIS = "# comment\nport 6379\nsave 900 1\nsave {save}\nappendonly no\n"
FILES: tuple[tuple[str, str, str, dict[str, tuple[str | None, str | None]]], ...] = (
    (
        "nginx.conf",
        NGINX.format(workers=1, more=""),
        NGINX.format(workers=4, more=" sendfile on;"),
        {"worker_processes": ("1", "4"), "http.server.location /.sendfile": (None, "on")},
    ),
    ("redis.conf", REDIS.format(save="60 10000"), REDIS.format(save="300 10"), {"save[2]": ("60 10000", "300 10")}),
    (
        "a.ini",
        "[pool]\nsize = 4\n; comment\n[log]\nsize: 1\n",
        "[pool]\nsize = 8\n[log]\nsize: 1\n",
        {"pool.size": ("4", "8")},
    ),
    ("start.sh", "a\nb\nc\n", "a\nx\nc\nd\n", {"line[2]": ("b", "x"), "line[4]": (None, "d")}),
    ("broken.conf", "a {\nb c;\n", "a {\nb d;\n", {"line[2]": ("b c;", "b d;")}),
    ("nginx.conf", "a b;\n# one\n", "# two\na   b;\n", {}),
)


@pytest.mark.parametrize(
    ("path", "first", "second", "expected"), FILES, ids=[f"{one[0]} {at}" for at, one in enumerate(FILES)]
)
def test_files_are_compared_by_their_settings_or_lines(
    path: str, first: str, second: str, expected: dict[str, tuple[str | None, str | None]]
) -> None:
    found = diff([{f"files.{path}": text} for text in (first, second)], asked=lambda path: False)
    assert {one.path.removeprefix(f"files.{path}@"): one.values for one in found.drift} == expected


def test_a_file_that_only_one_side_has_is_shown_by_what_it_says() -> None:
    found = diff([{"x": "1"}, {"x": "1", "files.a.conf": "b 1\nc 2\n"}], asked=lambda path: True)
    assert {one.path: one.values for one in found.asked} == {
        "files.a.conf@b": (None, "1"),
        "files.a.conf@c": (None, "2"),
    }
    found = diff([{"x": "1"}, {"x": "1", "files.a.sh": "b 1\nc 2\n"}], asked=lambda path: True)
    assert found.asked == (Difference("files.a.sh", (None, "b 1\nc 2\n")),)
