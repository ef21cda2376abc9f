"""Snapshots of all settings: read for real, volatile ones left out, differences in plain words."""

from __future__ import annotations

import subprocess

import pytest

from agents import snapshot


def read() -> dict[str, str]:
    command = snapshot.command()
    output = subprocess.run(command.argv, capture_output=True, timeout=60, check=True).stdout
    assert len(output) < snapshot.MAX_BYTES
    return snapshot.parse(output)


def test_two_snapshots_of_an_idle_host_are_equal() -> None:
    first = read()
    assert "sysctl.vm.swappiness" in first
    assert snapshot.differences(first, read()) == ()


@pytest.mark.parametrize(
    "output, values",
    [
        (b"", {}),
        (b"/proc/sys/vm/swappiness:60\n", {"sysctl.vm.swappiness": "60"}),
        (b"/proc/sys/net/ipv4/tcp_rmem:4096\t131072  6291456\n", {"sysctl.net.ipv4.tcp_rmem": "4096 131072 6291456"}),
        (b"/proc/sys/a/b:1\n/proc/sys/a/b:2\n", {"sysctl.a.b": "1\n2"}),
        (b"/proc/sys/a/b:\n", {"sysctl.a.b": ""}),
        (b"/sys/devices/system/cpu/online:0-3\n", {"sys.devices.system.cpu.online": "0-3"}),
        (b"/proc/swaps:/dev/sda2\n", {"proc.swaps": "/dev/sda2"}),
        (b"grep: /proc/sys/x: binary file matches\nno colon\n", {}),
        (b"/proc/sys/kernel/random/uuid:1\n/proc/sys/fs/file-nr:1\n/proc/sys/net/ipv4/conf/eth0/mtu:1\n", {}),
        (b"/proc/sys/a/b:\xff\n", {"sysctl.a.b": "\ufffd"}),
    ],
)
def test_settings_are_read_from_text(output: bytes, values: dict[str, str]) -> None:
    assert snapshot.parse(output) == values


def test_differences_are_sentences() -> None:
    before, after = {"a": "1", "b": "x", "same": "0"}, {"a": "2", "c": "y", "same": "0"}
    assert snapshot.differences(before, after) == (
        "a was '1' and is '2'",
        "b was 'x' and is not there",
        "c was not there and is 'y'",
    )
