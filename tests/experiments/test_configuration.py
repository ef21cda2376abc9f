"""Differences between effective configurations, in three groups."""

from __future__ import annotations

from experiments.configuration import IN_PART, Difference, diff


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
