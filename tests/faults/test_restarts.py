"""A host is restarted in the middle of a run: what ran is dead, and the run says that the host restarted."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest

from agents import events as e
from tests.faults.lab_run import LIGHT, TUNING, Play, play
from tests.lab.conftest import lab, lab_of_module

__all__ = ["lab", "lab_of_module", "play"]

pytestmark = [pytest.mark.faults, pytest.mark.lab, pytest.mark.slow]


@pytest.mark.parametrize(
    "kind, fields",
    [
        (e.StepApplied, {"index": 3}),
        (e.JobIntended, {"name": "server"}),
        (e.LoadStarted, {}),
        (e.PhaseStarted, {"phase": "restore"}),
    ],
    ids=("tuning", "starting", "measuring", "restoring"),
)
async def test_a_restarted_sut_is_put_back_and_the_run_says_that_it_restarted(
    play: Play, kind: type[e.AnyEvent], fields: dict[str, Any]
) -> None:
    boot_id = play.sut.boot_id
    play.at(kind, lambda: play.lab.reboot("sut"), **fields)
    await play.run(play.spec(*TUNING, measure_s=2))

    assert play.sut.boot_id != boot_id
    if kind is not e.PhaseStarted:  # then all was measured
        assert "sut was restarted" in play.failed.message
        assert play.failed.cause == "host"
        assert "again" in play.failed.hint
    assert play.load_starts <= 1
    await play.assert_restored()


async def test_a_restarted_driver_host_fails_the_run_and_nothing_is_started_again(play: Play) -> None:
    play.once_loaded(lambda: play.lab.reboot("driver"))
    await play.run(play.spec(*TUNING, measure_s=3))

    assert "driver" in play.failed.message
    assert "restarted" in f"{play.failed.message} {play.failed.hint}"
    assert play.failed.cause == "host"
    assert play.load_starts == 1
    await play.assert_restored()


async def test_a_sut_that_loses_power_for_good_is_quarantined_and_put_back_when_it_is_on_again(play: Play) -> None:
    def crash() -> None:
        play.lab.crash("sut")
        play.give_up_soon()

    play.at(e.StepApplied, crash, index=4)
    await play.run(play.spec(*TUNING))

    assert "sut" in play.failed.message
    assert play.restored.away == ("sut",)
    play.lab.boot("sut")
    assert await play.restore_again() == e.Restored({})
    assert play.values() == play.before


async def test_a_process_with_the_number_of_a_dead_job_is_not_taken_for_it_and_lives_on(play: Play) -> None:
    """The load tool is killed without a trace, and another program gets its number."""

    def swap() -> None:
        pid = play.record.started_jobs["load-0"].pid
        assert pid is not None
        play.driver.exec("sh", "-c", KILL_WITHOUT_TRACE, "sh", str(pid))
        start_as(play, pid)

    play.at(e.LoadStarted, swap)
    await play.run(play.spec(*LIGHT, measure_s=3))

    assert ("sleep", "600") in [process.argv for process in play.driver.processes()]
    play.driver.exec("pkill", "sleep")
    assert "is gone and nobody knows how it ended (state dead)" in play.failed.message
    await play.assert_restored()


# The supervisor first, else it would write down how the job ended.
KILL_WITHOUT_TRACE = """
kill -9 "$(cut -d' ' -f4 /proc/$1/stat)" "$1"
for pid in $(grep -lsF wrk /proc/[0-9]*/comm | cut -d/ -f3); do kill -9 "$pid"; done
while [ -e /proc/$1 ]; do sleep 0.02; done
"""


# The kernel is told which number was the last; the next process gets the one after it.
START_AS = "echo $(($1 - 1)) >/proc/sys/kernel/ns_last_pid; sleep 600 & echo $!; wait"


def start_as(play: Play, pid: int) -> None:
    """Starts a program on the driver host that has this number there."""
    assert play.driver.init is not None
    only_its_processes = ("nsenter", "-t", str(play.driver.init.pid), "-p")
    for _ in range(50):
        process = subprocess.Popen([*only_its_processes, "sh", "-c", START_AS, "sh", str(pid)], stdout=subprocess.PIPE)
        assert process.stdout is not None
        if int(process.stdout.readline()) == pid:
            return
        play.driver.exec("pkill", "sleep")
        process.wait()
    raise AssertionError(f"no process got the number {pid}")
