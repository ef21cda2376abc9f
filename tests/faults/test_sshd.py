"""sshd is killed, frozen, told to allow less, given another key, or told to refuse us."""

from __future__ import annotations

import pytest

from agents import events as e
from tests.faults.lab_run import LIGHT, Play, play
from tests.lab.conftest import lab, lab_of_module

__all__ = ["lab", "lab_of_module", "play"]

pytestmark = [pytest.mark.faults, pytest.mark.lab, pytest.mark.slow]


@pytest.mark.parametrize("name", ["sut", "driver"])
async def test_an_sshd_that_is_killed_and_started_again_costs_no_run(play: Play, name: str) -> None:
    host = play.lab.host(name)

    def kill() -> None:
        host.kill_sshd()
        play.later(1.5, host.start_sshd)

    play.at(e.LoadStarted, kill)
    record = await play.run(play.spec(*LIGHT, measure_s=2))

    assert record.failed is None
    assert f"Lost {name}" in play.log or name == "driver"
    await play.assert_restored()


@pytest.mark.parametrize("name", ["sut", "driver"])
async def test_an_sshd_that_is_frozen_for_a_while_costs_no_run(play: Play, name: str) -> None:
    host = play.lab.host(name)

    def freeze() -> None:
        host.freeze_sshd()
        play.when_lost(name, host.thaw_sshd)

    play.at(e.JobIntended, freeze, name="load-0")
    record = await play.run(play.spec(*LIGHT))

    assert record.failed is None
    assert play.load_starts == 1
    await play.assert_restored()


async def test_a_host_that_allows_one_session_at_a_time_fails_the_run_and_says_what_to_set(play: Play) -> None:
    play.patience_s = 3600.0  # waiting does not help, so nothing waits for it
    play.driver.configure_sshd("MaxSessions 1")
    try:
        await play.run(play.spec(*LIGHT, measure_s=10))
    finally:
        play.driver.configure_sshd("")

    assert play.failed.phase == "measure"
    assert "driver" in play.failed.message
    assert "refuses another session on one connection" in play.failed.message
    assert "Set MaxSessions in its sshd_config to 10" in play.failed.hint
    await play.assert_restored()


async def test_a_host_with_another_key_is_refused_before_anything_is_done(play: Play) -> None:
    play.sut.new_host_key()
    try:
        await play.run(play.spec(*LIGHT))
    finally:
        play.sut.old_host_key()

    assert "did not prove to be the approved host" in play.failed.message
    assert "approve it" in play.failed.hint
    assert not play.directory("sut").exists()
    await play.assert_restored()


async def test_a_login_that_is_refused_is_told_before_anything_is_done(play: Play) -> None:
    play.driver.refuse_logins()
    try:
        await play.run(play.spec(*LIGHT))
    finally:
        play.driver.accept_logins()

    assert "driver" in play.failed.message
    assert "refuses the key of user root" in play.failed.message
    assert "authorized_keys" in play.failed.hint
    assert not play.directory("sut").exists()
    await play.assert_restored()


@pytest.mark.parametrize("fault", ["another host key", "logins refused"])
async def test_a_host_that_does_not_let_us_back_in_is_not_asked_for_long_and_is_put_back_later(
    play: Play, fault: str
) -> None:
    """Waiting cannot help: the run fails at once although it may wait for half a minute."""
    play.patience_s = 3600.0

    def lock_out() -> None:
        if fault == "another host key":
            play.sut.new_host_key()
        else:
            play.sut.refuse_logins()
        play.sut.end_connections()

    play.at(e.StepIntended, lock_out, index=2)
    try:
        await play.run(play.spec(*LIGHT))
    finally:
        play.sut.old_host_key()
        play.sut.accept_logins()

    assert play.failed.phase == "tune"
    words = "did not prove to be" if fault == "another host key" else "refuses the key"
    assert words in play.failed.message
    assert play.restored.differences
    await play.assert_sound()

    assert await play.restore_again() == e.Restored({})
    assert play.values() == play.before
    await play.assert_empty(play.sut, play.driver)
