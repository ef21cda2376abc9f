"""Shares of functions: own ones add up to one, and a function that calls itself counts once."""

from __future__ import annotations

import pytest

from agents.profiles.base.profile import UNKNOWN, Profile
from agents.profiles.functions import functions_of
from agents.profiles.reading import read_profile
from tests.agents.profiles.samples import profiles
from tests.properties import given


def test_a_function_that_calls_itself_counts_once_in_its_total() -> None:
    functions = functions_of(read_profile(b"main.a;main.b;main.a;main.b 6\nmain.a 2\n"))
    assert functions.self_ratio == {"main.b": 0.75, "main.a": 0.25}
    assert functions.total_ratio == {"main.a": 1.0, "main.b": 0.75}


def test_lambdas_and_threads_that_are_numbered_anew_are_one_function_and_none() -> None:
    text = (
        b"[exec-1 tid=11];A$$Lambda$7/0x0000000800066840.run 3\n[exec-2 tid=12];A$$Lambda$8.0x00007f84b4001448.run 5\n"
    )
    functions = functions_of(read_profile(text))
    assert functions.self_ratio == {"A$$Lambda.run": 1.0}
    assert functions.total_ratio == {"A$$Lambda.run": 1.0}
    assert functions.unknown_ratio == 0


def test_what_ends_in_an_unknown_frame_or_has_only_a_thread_is_unknown() -> None:
    functions = functions_of(read_profile(b"main.a;[unknown] 2\n[exec-1 tid=11] 1\nmain.a;[unknown];main.b 7\n"))
    assert functions.total_ratio[UNKNOWN] == pytest.approx(1)
    assert functions.unknown_ratio == pytest.approx(0.3)
    assert functions.self_ratio == pytest.approx({UNKNOWN: 0.3, "main.b": 0.7})
    assert functions.total_ratio["main.a"] == pytest.approx(0.9)


@given(profiles())
def test_own_shares_add_up_and_no_total_is_less_than_its_own(profile: Profile) -> None:
    functions = functions_of(profile)
    assert sum(functions.self_ratio.values()) == pytest.approx(1)
    for name, ratio in functions.self_ratio.items():
        assert functions.total_ratio[name] >= ratio - 1e-12
    assert max(functions.total_ratio.values()) <= 1 + 1e-9
