"""What a bug of BenchHub does to a run: the host is restored all the same."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest

from agents import events as e
from agents.remote.jobs import Job
from agents.running.restoring import Restoring
from tests.agents.run_lab import (
    REFUSED,
    Lab,
    Watched,
    assert_left_as_it_was,
    file_step,
    needs_wrk,
)
from tests.sshd import process_bytes

pytestmark = needs_wrk


async def test_a_process_that_cannot_be_ended_is_reported(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:

    kill = Job.kill

    async def spare_the_server(self: Job, **more: Any) -> tuple[str, ...]:
        return ("4711 python",) if self.directory.endswith("server") else await kill(self, **more)

    monkeypatch.setattr(Job, "kill", spare_the_server)
    watched = Watched(lab)
    record = await watched.run(lab.spec())
    assert record.restored == e.Restored({"sut": ("process 4711 python of server is still running",)})
    server = record.started_jobs["server"].pid
    assert server is not None
    assert b"http.server" in process_bytes(server, "cmdline")
    os.killpg(os.getpgid(server), signal.SIGKILL)


async def test_a_bug_is_a_failure_and_the_host_is_restored(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise KeyError("bug")

    monkeypatch.setattr("agents.running.serving.wait_until_ready", broken)
    record = await Watched(lab).run(lab.spec(file_step(lab)))
    assert record.failed is not None
    assert record.failed.message == "BenchHub made a mistake in the phase start."
    assert_left_as_it_was(lab, record)


async def test_a_bug_on_the_way_back_does_not_stop_the_rest(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise KeyError("bug")

    monkeypatch.setattr(Restoring, "_stop", broken)
    watched = Watched(lab)
    record = await watched.run(lab.spec(file_step(lab), REFUSED))
    assert record.restored is not None
    (difference,) = record.restored.differences["sut"]
    assert difference.startswith("stop: BenchHub made a mistake.")
    assert record.restored.differences["driver"] == (difference,), "whether the load has ended is not known either"
    assert (lab.etc / "app.conf").read_text() == "as it was\n"


async def test_a_bug_in_a_monitor_leaves_a_gap_and_nothing_else(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("agents.monitors.cpu.CpuMonitor.samples", broken)
    watched = Watched(lab)
    record = await watched.run(lab.spec(phases=(("measure", 2),)))
    assert record.failed is None
    assert "cpu gave what BenchHub cannot read and is left out" in watched.log
