"""A system of several hosts on the lab: what happens to a member's host, and that the others are proven."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from agents import events as e
from lab.lab import Lab
from tests.faults.lab_run import LIGHT, SYSCTL, TUNING, Play, play
from tests.lab.conftest import running_lab

__all__ = ["play"]

pytestmark = [pytest.mark.faults, pytest.mark.lab, pytest.mark.slow]


@pytest.fixture(scope="module")
def lab_of_module(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with running_lab(tmp_path_factory.mktemp("lab"), "sut", "database", "driver") as lab:
        yield lab


@pytest.fixture
def lab(lab_of_module: Lab) -> Iterator[Lab]:
    """A SUT, the host of a member, and a driver host; each test finds them on and their links whole."""
    yield lab_of_module
    lab_of_module.up()


def kill_server(play: Play) -> None:
    pid = play.record.started_jobs["server-database"].pid
    assert pid is not None
    play.lab.host("database").exec("kill", "-9", str(pid))


async def test_a_system_is_tuned_measured_and_put_back_on_every_host(play: Play) -> None:
    await play.run(play.spec(*TUNING))
    assert play.record.failed is None, play.log
    assert [e.payload["name"] for e in play.story().runs[0].of("job_started")][:2] == ["server-database", "server"]
    await play.assert_restored()


async def test_a_member_that_is_cut_off_for_a_while_costs_nothing(play: Play) -> None:
    play.once_loaded(lambda: play.cut_until_lost("database"))
    await play.run(play.spec(*LIGHT, measure_s=6))
    assert play.record.failed is None, play.log
    await play.assert_restored()


async def test_a_member_that_is_killed_under_load_fails_the_run_by_its_name(play: Play) -> None:
    play.once_loaded(lambda: kill_server(play))
    await play.run(play.spec(*LIGHT, measure_s=2))
    assert "database on database ended during the load with exit status 137" in play.failed.message
    assert "server-database.log" in play.kept
    await play.assert_restored()


@pytest.mark.parametrize(
    ("kind", "fields"),
    [(e.JobIntended, {"name": "server-database"}), (e.LoadStarted, {}), (e.PhaseStarted, {"phase": "restore"})],
    ids=("starting", "measuring", "restoring"),
)
async def test_a_restarted_member_is_put_back_and_the_run_says_that_it_restarted(
    play: Play, kind: type[e.AnyEvent], fields: dict[str, Any]
) -> None:
    play.at(kind, lambda: play.lab.reboot("database"), **fields)
    await play.run(play.spec(*TUNING, measure_s=2))
    if kind is not e.PhaseStarted:  # then all was measured
        assert "database was restarted" in play.failed.message
        assert play.failed.cause == "host"
    await play.assert_restored()


async def test_a_member_that_loses_power_is_away_the_others_are_proven_and_it_is_put_back_later(play: Play) -> None:
    def crash() -> None:
        play.lab.crash("database")
        play.give_up_soon()

    play.once_loaded(crash)
    await play.run(play.spec(*TUNING, measure_s=2))
    assert "database" in play.failed.message
    assert play.restored.away == ("database",)
    assert play.restored.differences.keys() == {"database"}
    assert play.values("sut") == play.befores["sut"]
    await play.assert_empty(play.sut, play.driver)

    play.lab.boot("database")
    assert await play.restore_again(roles=("database",)) == e.Restored({})
    assert play.values("database") == play.befores["database"]


async def test_a_member_that_somebody_changed_stays_as_it_is_and_the_others_are_proven(play: Play) -> None:
    def meddle() -> None:
        play.lab.host("database").exec("sh", "-c", f"echo 77 >/proc/sys/{SYSCTL.replace('.', '/')}")

    play.at(e.LoadStarted, meddle)
    await play.run(play.spec(*LIGHT))
    assert play.record.failed is None, play.log
    assert play.restored.differences.keys() == {"database"}
    assert any("someone else changed" in text for text in play.restored.differences["database"])
    assert play.values("sut") == play.befores["sut"]

    assert await play.restore_again(roles=("database",), force=True) == e.Restored({})
    assert {name: play.values(name) for name in play.befores} == play.befores


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (e.StepApplied, {"index": 100_003}),
        (e.JobStarted, {"name": "server-database"}),
        (e.LoadStarted, {}),
        (e.StepReverted, {"index": 100_002}),
    ],
    ids=("tuning the member", "starting the member", "measuring", "undoing the member"),
)
async def test_another_worker_goes_on_with_a_system(play: Play, kind: type[e.AnyEvent], fields: dict[str, Any]) -> None:
    class Died(BaseException):
        """As when the process is killed."""

    def die() -> None:
        raise Died

    play.at(kind, die, **fields)
    with pytest.raises(Died):
        await play.run(play.spec(*TUNING, measure_s=2))
    await play.resume()
    assert play.record.failed is None, play.log
    await play.assert_restored()
