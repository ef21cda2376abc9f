"""Load tools that hang, will not die, hide, multiply, or leave nonsense behind; and clocks that are wrong."""

from __future__ import annotations

import time

import pytest

from agents import events as e
from tests.faults.lab_run import INSIDE, LIGHT, Play, play
from tests.faults.programs import write_program
from tests.lab.conftest import lab, lab_of_module

__all__ = ["lab", "lab_of_module", "play"]

pytestmark = [pytest.mark.faults, pytest.mark.lab, pytest.mark.slow]

LOAD_S = 3600

_TOOL = """#!/bin/sh
[ "$1" != -v ] || exec wrk -v
echo "start $BENCHHUB_JOB" >>{inside}/starts
{body}
"""

STUBBORN = {
    "hangs": "exec sleep 3600",
    "ignores TERM": "trap '' TERM HUP INT; while :; do sleep 1; done",
    "leaves its session": "trap '' TERM; setsid sh -c 'setsid sleep 3601 & exec sleep 3602' & exec sleep 3603",
    "forgets its name and cookie": "setsid env -i sleep 3604 & env -i setsid sh -c 'sleep 3605 & sleep 3606' & wait",
    "has 500 children": "n=0; while [ $n -lt 500 ]; do sleep 3607 & n=$((n + 1)); done; wait",
    "is stopped": "kill -STOP $$; exec sleep 3608",
}


@pytest.mark.parametrize("habit", STUBBORN)
async def test_a_cancelled_load_is_gone_as_a_whole(play: Play, habit: str) -> None:
    tool(play, STUBBORN[habit])
    play.once_loaded(lambda: play.later(2.0, play.cancel))
    await play.run(play.spec(*LIGHT, binary=f"{INSIDE}/tool", measure_s=LOAD_S))

    assert play.failed.cancelled
    assert play.load_starts == 1
    assert [process.argv for process in play.driver.processes() if process.name in ("sleep", "tool")] == []
    await play.assert_restored()


RC = {
    "empty": ": >rc",
    "words": "echo it went well >rc",
    "too great": "echo 4294967296 >rc",
    "a NUL": r"printf '0\0000\n' >rc",
    "a directory": "mkdir rc",
}


@pytest.mark.parametrize("content", RC)
async def test_an_exit_status_that_is_none_is_never_a_success(play: Play, content: str) -> None:
    tool(play, f"cd ../jobs/load-0; rm -f rc.part; {RC[content]}; exec sleep 3600")
    await play.run(play.spec(*LIGHT, binary=f"{INSIDE}/tool"))

    assert "nobody knows how it ended" in play.failed.message
    assert play.record.reports == {}
    assert play.load_starts == 1
    await play.assert_restored()


@pytest.mark.parametrize("status", [1, 137])
async def test_a_tool_that_fails_is_a_run_that_fails(play: Play, status: int) -> None:
    tool(play, f"echo 'unable to connect to the server: Connection refused'; exit {status}")
    await play.run(play.spec(*LIGHT, binary=f"{INSIDE}/tool"))

    assert play.failed.phase == "measure"
    assert play.load_starts == 1
    await play.assert_restored()


SLOW_S = 600
"""How far a time may be off on a machine that stands still in between; the wrong clocks are an hour off or more."""


@pytest.mark.parametrize("offset_s", [3_600, 86_400])
async def test_clocks_that_are_wrong_are_noted_and_do_no_harm(play: Play, offset_s: int) -> None:
    play.lab.clock("sut", offset_s)
    play.lab.clock("driver", -offset_s)
    before_s = time.time()
    try:
        record = await play.run(play.spec(*LIGHT))
    finally:
        for name in play.lab.names:
            play.lab.clock(name, 0)

    assert record.failed is None
    for role, expected_s in (("sut", offset_s), ("driver", -offset_s)):
        found_s = record.facts[role].clock_offset_s
        assert found_s is not None
        assert abs(found_s - expected_s) < SLOW_S
    assert before_s <= record.loads[0].at_unix_s <= time.time()
    samples = [event.at_unix_s for event, _, _ in play.events if isinstance(event, e.Samples)]
    assert samples
    assert all(before_s - SLOW_S <= at_s <= time.time() + SLOW_S for at_s in samples)
    await play.assert_restored()


def tool(play: Play, body: str) -> None:
    """Make `tool` of the driver host what pretends to be wrk."""
    write_program(play.root(play.driver) / "tool", _TOOL.format(inside=INSIDE, body=body))
