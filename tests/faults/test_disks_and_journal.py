"""Full disks, damaged journals, changes by others, steps that fail half-way, and no controller at all."""

from __future__ import annotations

from typing import Any

import pytest

from agents import events as e
from tests.agents.run_lab import WorkerDiedError
from tests.faults.lab_run import CPUS, FILE, INSIDE, KEY, LIGHT, SETTING, SYSCTL, TUNING, Play, play
from tests.lab.conftest import lab, lab_of_module

__all__ = ["lab", "lab_of_module", "play"]

pytestmark = [pytest.mark.faults, pytest.mark.lab, pytest.mark.slow]

JOURNAL = f"/root/.benchhub/runs/{KEY}/journal"


@pytest.mark.parametrize("name", ["sut", "driver"])
async def test_a_full_disk_fails_the_run_before_anything_is_changed(play: Play, name: str) -> None:
    play.lab.fill_disk(name)
    try:
        await play.run(play.spec(*TUNING))
    finally:
        play.lab.exec(name, "rm", "/root/.filler")

    assert play.failed.phase in ("connect", "facts")
    assert f"{name} has 0 MB" in play.failed.message
    assert "disk" in play.failed.message
    assert not play.record.intended
    assert play.lines(play.sut, "changes") == ()
    assert not play.directory("sut").exists()
    assert not play.directory("driver").exists()
    await play.assert_restored()


async def test_a_disk_that_fills_up_under_the_load_leaves_the_host_quarantined_until_there_is_room(play: Play) -> None:
    """What is undone without room is undone; a file that cannot be written back is named, and put back later."""
    play.at(e.LoadStarted, lambda: play.lab.fill_disk("sut"))
    await play.run(play.spec(FILE, SETTING, measure_s=2))
    await play.assert_sound()
    if play.restored != e.Restored({}):
        assert any("app.conf" in line or "No space left" in line for line in play.restored.differences["sut"])

    play.lab.exec("sut", "rm", "/root/.filler")
    if play.restored != e.Restored({}):
        await play.restore_again()
    assert play.restored == e.Restored({})
    assert play.values() == play.before


DAMAGE = {
    "torn": f"cd {JOURNAL} && for f in *; do head -c 20 $f >part && cat part >$f; done; rm part",
    "empty": f"cd {JOURNAL} && for f in *; do : >$f; done",
    "duplicated": f"cd {JOURNAL} && cp 0001.json 0009.json && cat restore.sh restore.sh >two && mv two restore.sh",
    "gone": f"rm -r {JOURNAL}",
    "another run's": f"cd {JOURNAL} && sed -i s/tuned/other/ *.json && echo 'echo 0 >/root/oops' >restore.sh",
}


@pytest.mark.parametrize("damage", DAMAGE)
async def test_a_damaged_journal_on_the_host_does_not_matter_while_there_is_the_record(play: Play, damage: str) -> None:
    play.at(e.PhaseFinished, lambda: play.sut.exec("sh", "-c", DAMAGE[damage]), phase="tune")
    record = await play.run(play.spec(*LIGHT))

    assert record.failed is None
    assert not (play.sut.home / "oops").exists()
    await play.assert_restored()


REFUSED: dict[str, Any] = {"kind": "command", "run": ":", "undo": ":", "observe": "echo 1", "expect": "2"}


@pytest.mark.parametrize("place", range(4))
async def test_a_step_that_fails_takes_the_ones_before_it_back(play: Play, place: int) -> None:
    steps = [FILE, SETTING, CPUS]
    steps.insert(place, REFUSED)
    await play.run(play.spec(*steps))

    assert play.failed.phase == "tune"
    assert play.failed.cause == "specification"
    assert len(play.record.applied) == place + 2  # with the instance, and with the one that was refused
    assert play.load_starts == 0
    await play.assert_restored()


@pytest.mark.parametrize(
    "change, key",
    [
        (f"echo foreign >{INSIDE}/etc/app.conf", "app.conf"),
        ("echo 77 >/proc/sys/net/ipv4/tcp_fin_timeout", "net.ipv4.tcp_fin_timeout"),
        ("echo 0 >/sys/devices/system/cpu/cpu2/online", "online"),
    ],
)
async def test_what_somebody_else_changed_is_left_alone_and_shown(play: Play, change: str, key: str) -> None:
    play.at(e.LoadStarted, lambda: play.sut.exec("sh", "-c", change))
    await play.run(play.spec(FILE, SETTING, CPUS))
    foreign = play.values()

    [first, *_] = play.restored.differences["sut"]
    assert "someone else changed" in first
    assert key in first
    assert "was left as it is" in first
    assert foreign != play.before
    assert [name for name in foreign if foreign[name] != play.before[name]] == [
        name for name in foreign if foreign[name] != play.before[name] and key.rpartition(".")[2] in name
    ]
    await play.assert_sound()

    await play.restore_again()
    assert play.values() == foreign  # asking again changes nothing
    await play.restore_again(force=True)
    assert play.restored == e.Restored({})
    assert play.values() == play.before


async def test_a_kernel_parameter_that_somebody_else_changed_does_not_keep_the_others_of_its_step(play: Play) -> None:
    interval = "/proc/sys/net/ipv4/tcp_keepalive_intvl"
    before = play.sut.exec("cat", interval).stdout
    both = {"kind": "sysctl", "values": {SYSCTL: "31", "net.ipv4.tcp_keepalive_intvl": "41"}}
    tuned: list[bytes] = []

    def meddle() -> None:
        tuned.append(play.sut.exec("cat", interval).stdout)
        play.sut.exec("sh", "-c", "echo 77 >/proc/sys/net/ipv4/tcp_fin_timeout")

    play.at(e.LoadStarted, meddle)
    await play.run(play.spec(both))

    [conflict, *_] = play.restored.differences["sut"]
    assert f"someone else changed {SYSCTL} during the run, so it was left as it is" in conflict
    assert tuned == [b"41\n"]
    assert play.sut.exec("cat", interval).stdout == before
    await play.restore_again(force=True)
    assert play.restored == e.Restored({})
    assert play.values() == play.before


@pytest.mark.parametrize("moment", [(e.StepApplied, {"index": 3}), (e.LoadStarted, {})], ids=("tuning", "measuring"))
async def test_restore_sh_puts_the_host_back_without_any_controller(
    play: Play, moment: tuple[type[e.AnyEvent], dict[str, Any]]
) -> None:
    def die() -> None:
        raise WorkerDiedError

    play.at(moment[0], die, **moment[1])
    with pytest.raises(WorkerDiedError):
        await play.run(play.spec(*TUNING, measure_s=2))
    assert play.values() != play.before

    play.sut.exec("sh", f"{JOURNAL}/restore.sh")

    assert play.values() == play.before
    assert not [process for process in play.sut.processes() if "server" in " ".join(process.argv)]
    play.sut.exec("sh", f"{JOURNAL}/restore.sh")  # as often as you like
    assert play.values() == play.before
    await play.resume()  # the worker that comes back finds nothing to do
    assert play.values() == play.before
    assert play.restored == e.Restored({})
    assert play.load_starts <= 1
    await play.assert_empty(play.sut, play.driver)
