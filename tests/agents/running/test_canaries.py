from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import threading
from pathlib import Path

import pytest

from agents.base.command import Command
from agents.base.errors import ParseError
from agents.remote.ssh import connect
from agents.running.canaries import (
    CANARIES,
    NETWORK_PORT,
    cpu_command,
    disk_command,
    parse_cpu,
    parse_disk,
    parse_network,
)
from agents.running.canary_checks import CanaryReading, check_way
from tests import needs
from tests.agents.run_lab import Lab, Watched, lab, lab_hosts, needs_wrk, port_is_free
from tests.sshd import eventually

__all__ = ["lab", "lab_hosts"]


def said(command: Command, **more: str) -> str:
    environment = {**os.environ, **more}
    return subprocess.run(command.argv, capture_output=True, text=True, env=environment, check=True).stdout


def test_the_cpu_check_of_this_machine_gives_a_figure() -> None:
    figure = parse_cpu(said(cpu_command()))
    assert figure is not None
    assert figure > 1000


def test_the_disk_check_reads_and_leaves_no_file(tmp_path: Path) -> None:
    needs.require_program("fio")
    figure = parse_disk(said(disk_command(), HOME=str(tmp_path)))
    assert figure is not None
    assert figure > 1
    assert list(tmp_path.iterdir()) == []


@needs_wrk
async def test_a_run_checks_its_hosts_before_it_changes_anything_and_leaves_nothing_of_that(lab: Lab) -> None:
    readings: list[CanaryReading] = []
    seen: list[str] = []

    async def keep(found: tuple[CanaryReading, ...]) -> None:
        readings.extend(found)
        seen.extend(type(event).__name__ for event in watched.events)

    watched = Watched(lab, keep_readings=keep)
    record = await watched.run(lab.spec())
    assert (record.failed, record.restored and record.restored.differences) == (None, {})
    assert "SnapshotTaken" not in seen
    assert [(one.role, one.check, one.to) for one in readings] == [
        ("sut", "cpu", ""),
        ("sut", "disk", ""),
        ("driver", "cpu", ""),
        ("driver", "network", "sut"),
    ]
    for one in readings:
        package = CANARIES[one.check].package
        if not package or needs.place(package):
            assert (one.problem, (one.value or 0) > 1) == ("", True), one
        else:
            assert (one.problem, one.value) == (f"{package} is not installed there.", None)
    for host in (lab.sut, lab.driver):
        assert not [path for path in host.home.rglob("canary*") if ".benchhub/runs" not in str(path)]
    await eventually(lambda: port_is_free(NETWORK_PORT))


async def test_a_check_that_cannot_be_made_says_why_and_ends_nothing(lab: Lab) -> None:
    needs.require_program("iperf3")
    sut, driver = [
        await connect(host.login(name), host.private_key) for name, host in (("sut", lab.sut), ("d", lab.driver))
    ]
    with socket.socket() as taken:  # somebody who is no iperf3 has the port
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        taken.settimeout(30)
        threading.Thread(target=_hang_up, args=(taken,), daemon=True).start()
        found = await check_way(driver, "driver", sut, "sut", "127.0.0.1", taken.getsockname()[1])
    assert found.value is None
    assert found.problem
    await sut.close()
    await driver.close()


def _hang_up(listening: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while True:
            listening.accept()[0].close()


@pytest.mark.parametrize("text", ["", "100 turns in 0 ns", "sh: date: not found"])
def test_what_is_no_answer_of_the_cpu_check_is_refused(text: str) -> None:
    with pytest.raises(ParseError):
        parse_cpu(text)


def test_a_host_without_the_program_has_no_figure_and_a_broken_report_is_none() -> None:
    assert parse_disk("") is None
    assert parse_network("\n") is None
    with pytest.raises(ParseError):
        parse_network('{"error": "unable to connect to server"}')
    assert [one.package for one in CANARIES.values()] == ["", "fio", "iperf3"]
