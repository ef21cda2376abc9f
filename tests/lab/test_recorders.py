"""nmon and mpstat on both hosts of a run: recorded beside the load, kept whole, and nothing of them is left behind."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import pytest

from agents import events as e
from agents.recordings import read_recording
from agents.recordings.tools import RECORDERS
from agents.spec import RunSpec
from tests import needs
from tests.agents.run_lab import WorkerDiedError
from tests.faults.lab_run import LIGHT, Play, play

__all__ = ["play"]

pytestmark = [
    pytest.mark.lab,
    needs.program("nmon"),
    needs.program("mpstat"),
]


def recording(spec: RunSpec) -> RunSpec:
    """The run with every recorder asked for."""
    workload = spec.workload.model_copy(update={"recorders": tuple(RECORDERS)})
    return spec.model_copy(update={"workload": workload})


def die() -> None:
    raise WorkerDiedError


async def test_both_hosts_are_recorded_across_the_death_of_a_worker(play: Play) -> None:
    play.at(e.LoadStarted, die, measured=True)
    with pytest.raises(WorkerDiedError):
        await play.run(recording(play.spec(*LIGHT, warm_up_s=2, measure_s=6)))
    record = await play.resume()

    assert record.failed is None
    assert set(record.recordings) == {(role, tool) for role in ("sut", "driver") for tool in RECORDERS}
    load = next(one for one in record.loads.values() if one.measured)
    for (role, tool), kept in record.recordings.items():
        content = play.kept[kept.kept]
        assert (len(content), hashlib.sha256(content).hexdigest()) == (kept.size_bytes, kept.sha256)
        found = read_recording(tool, content.decode())
        busy = found.channels["cpu.busy_ratio"]
        assert found.host == role
        assert found.started_at is not None
        begun_s = found.started_at.timestamp() - load.at_unix_s
        assert begun_s < load.duration_s < begun_s + busy.at_s[-1] + 4, "beside the load, to its end, on its clock"
    assert play.load_starts == 2
    await play.assert_restored()


async def test_a_run_that_is_cancelled_under_its_load_keeps_what_was_recorded(play: Play) -> None:
    play.at(e.LoadStarted, play.cancel, measured=True)
    await play.run(recording(play.spec(*LIGHT, warm_up_s=2, measure_s=600)))

    assert play.failed.cancelled
    assert set(play.record.recordings) == {(role, tool) for role in ("sut", "driver") for tool in RECORDERS}
    assert {kept.kept for kept in play.record.recordings.values()} <= set(play.kept)
    await play.assert_restored()


@pytest.fixture
def without_nmon(play: Play) -> Iterator[Play]:
    """The driver host lacks nmon."""
    play.driver.exec("mv", "/usr/bin/nmon", "/usr/bin/nmon.away")
    yield play
    play.driver.exec("mv", "/usr/bin/nmon.away", "/usr/bin/nmon")


async def test_a_host_without_the_tool_is_told_before_anything_is_changed(without_nmon: Play) -> None:
    play = without_nmon
    await play.run(recording(play.spec(*LIGHT)))

    assert (play.failed.phase, play.failed.cause) == ("facts", "specification")
    assert play.failed.message == "driver cannot record with nmon: not installed there."
    assert "apt-get install nmon" in play.failed.hint
    assert play.record.intended == {}
    assert not play.record.jobs
    await play.assert_restored()
