"""The link to a host fails in every way that a link fails: no run is lost for it, and no host is left changed."""

from __future__ import annotations

from typing import Any

import pytest

from agents import events as e
from agents.remote.ssh import KEEPALIVE_INTERVAL_S
from tests.faults.lab_run import LIGHT, Play, play
from tests.lab.conftest import lab, lab_of_module

__all__ = ["lab", "lab_of_module", "play"]

pytestmark = [pytest.mark.faults, pytest.mark.lab, pytest.mark.slow]

BLIP_S = 1.0
"""A cut that nobody notices: here a dead link is noticed after two seconds."""

Moment = tuple[type[e.AnyEvent], dict[str, Any]]
TUNE: Moment = (e.StepIntended, {"index": 1})
START: Moment = (e.JobIntended, {"name": "server"})
LOAD: Moment = (e.JobIntended, {"name": "load-0"})
MEASURE: Moment = (e.LoadStarted, {})
STOP: Moment = (e.PhaseStarted, {"phase": "stop"})
RESTORE: Moment = (e.StepReverted, {"index": 2})


@pytest.mark.parametrize(
    "names, moment, blip",
    [
        (("sut",), TUNE, False),
        (("sut",), START, False),
        (("sut",), MEASURE, True),
        (("sut",), RESTORE, False),
        (("driver",), LOAD, False),
        (("driver",), MEASURE, False),
        (("sut", "driver"), MEASURE, False),
        (("driver",), STOP, False),
    ],
)
async def test_a_cut_of_the_link_costs_no_run(play: Play, names: tuple[str, ...], moment: Moment, blip: bool) -> None:
    def cut() -> None:
        for name in names:
            if blip:
                play.cut(name, BLIP_S)
            else:
                play.cut_until_lost(name)

    play.at(moment[0], cut, **moment[1])
    record = await play.run(play.spec(*LIGHT, measure_s=2))

    assert record.failed is None
    assert play.load_starts == 1
    assert blip or all(f"Lost {name}" in play.log for name in names)
    await play.assert_restored()


@pytest.mark.parametrize("name, moment", [("sut", TUNE), ("driver", LOAD)])
async def test_a_link_that_passes_only_one_way_costs_no_run(play: Play, name: str, moment: Moment) -> None:
    play.at(moment[0], lambda: play.cut_until_lost(name, half_open=True), **moment[1])
    record = await play.run(play.spec(*LIGHT))

    assert record.failed is None
    assert play.load_starts == 1
    await play.assert_restored()


async def test_a_slow_and_lossy_link_costs_time_only(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    # The limit that users have; by the hasty one of `play` such a link counts as away every now and then.
    monkeypatch.setattr("agents.remote.ssh.KEEPALIVE_INTERVAL_S", KEEPALIVE_INTERVAL_S)
    play.lab.rate(1_000_000, kind="management")
    play.lab.loss(5, kind="management")
    record = await play.run(play.spec(*LIGHT))

    assert record.failed is None
    assert play.load_starts == 1
    play.lab.heal()
    await play.assert_restored()


@pytest.mark.parametrize("name, moment", [("sut", TUNE), ("sut", MEASURE), ("driver", MEASURE), ("sut", RESTORE)])
async def test_a_host_that_stays_away_fails_the_run_and_is_put_back_later(
    play: Play, name: str, moment: Moment
) -> None:
    def take_away() -> None:
        play.lab.cut(name, kinds=("management",))
        play.give_up_soon()

    play.at(moment[0], take_away, **moment[1])
    record = await play.run(play.spec(*LIGHT, measure_s=4))

    if moment != RESTORE:
        assert record.failed is not None
        assert name in record.failed.message
        assert record.failed.hint
        assert record.failed.cause == "host"
    assert play.restored.away == (name,)
    assert play.restored.differences[name]
    play.lab.heal()
    await play.assert_sound()

    assert await play.restore_again() == e.Restored({})
    assert play.values() == play.before
    await play.assert_empty(play.sut, play.driver)
    assert not play.directory("sut").exists()
    assert not play.directory("driver").exists()


async def test_a_cut_between_the_hosts_ends_with_a_report_and_everything_put_back(play: Play) -> None:
    def cut() -> None:
        if play.is_connected():
            play.lab.cut_data()
        else:
            play.later(0.05, cut)

    play.at(e.LoadStarted, cut)
    play.at(e.PhaseStarted, play.lab.heal, phase="collect")
    await play.run(play.spec(*LIGHT, measure_s=4))

    assert [report.exit_status for report in play.record.reports.values()] == [0]
    await play.assert_restored()
