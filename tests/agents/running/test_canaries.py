from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from agents.base.command import Command
from agents.base.errors import ParseError
from agents.running.canaries import (
    CANARIES,
    cpu_command,
    disk_command,
    network_commands,
    parse_cpu,
    parse_disk,
    parse_network,
)
from tests import needs
from tests.agents.run_lab import free_port
from tests.sshd import eventually


def said(command: Command) -> str:
    return subprocess.run(command.argv, capture_output=True, text=True, timeout=120, check=True).stdout


def test_the_cpu_check_of_this_machine_gives_a_figure() -> None:
    figure = parse_cpu(said(cpu_command()))
    assert figure is not None
    assert figure > 1000


def test_the_disk_check_reads_and_leaves_no_file(tmp_path: Path) -> None:
    needs.require_program("fio")
    figure = parse_disk(said(disk_command(str(tmp_path))))
    assert figure is not None
    assert figure > 1
    assert list(tmp_path.iterdir()) == []


async def test_the_network_check_listens_once_and_measures() -> None:
    needs.require_program("iperf3")
    listen, send = network_commands("127.0.0.1", free_port())
    said(listen)
    found: list[float | None] = []

    def measured() -> bool:
        done = subprocess.run(send.argv, capture_output=True, text=True, timeout=60, check=False)
        found.extend([parse_network(done.stdout)] if done.returncode == 0 else [])
        return bool(found)

    await eventually(measured, within_s=60)
    assert found[0] is not None
    assert found[0] > 1e6


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
