"""Snapshots of all settings: read for real, volatile ones left out, differences in plain words."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from agents.running import snapshot
from tests import needs


def read() -> dict[str, str]:
    command = snapshot.command()
    output = subprocess.run(command.argv, capture_output=True, timeout=300, check=True).stdout
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
        (
            b"/proc/swaps:/dev/sda2 priority -2\n/proc/swaps:/dev/zram0 priority 100\n",
            {"proc.swaps": "/dev/sda2 priority -2\n/dev/zram0 priority 100"},
        ),
        (
            b"/sys/kernel/mm/transparent_hugepage/defrag:always defer defer+madvise [madvise] never\n",
            {"sys.kernel.mm.transparent_hugepage.defrag": "always defer defer+madvise [madvise] never"},
        ),
        (
            b"/sys/devices/system/cpu/cpu3/cpufreq/scaling_governor:powersave\n",
            {"sys.devices.system.cpu.cpu3.cpufreq.scaling_governor": "powersave"},
        ),
        (b"grep: /proc/sys/x: binary file matches\nno colon\n", {}),
        (b"/proc/sys/kernel/random/uuid:1\n/proc/sys/fs/file-nr:1\n/proc/sys/net/ipv4/conf/eth0/mtu:1\n", {}),
        (b"/proc/sys/a/b:\xff\n", {"sysctl.a.b": "\ufffd"}),
    ],
)
def test_settings_are_read_from_text(output: bytes, values: dict[str, str]) -> None:
    assert snapshot.parse(output) == values


def test_the_snapshot_has_what_the_steps_of_this_machine_can_change() -> None:
    values = read()
    shown = {
        "/sys/kernel/mm/transparent_hugepage/defrag",
        "/sys/kernel/mm/transparent_hugepage/enabled",
        "/sys/kernel/mm/transparent_hugepage/shmem_enabled",
        "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
        "/sys/devices/system/cpu/cpu1/online",
        "/sys/devices/system/cpu/cpufreq/boost",
        "/sys/devices/system/cpu/intel_pstate/no_turbo",
    }
    there = {path.lstrip("/").replace("/", ".") for path in shown if Path(path).is_file()}
    assert there <= set(values)
    areas = Path("/proc/swaps").read_text().splitlines()[1:] if Path("/proc/swaps").exists() else []
    priorities = sorted(f"{line.split()[0]} priority {line.split()[-1]}" for line in areas)
    assert values.get("proc.swaps", "") == "\n".join(priorities)


def test_swap_areas_are_read_with_their_priorities(tmp_path: Path) -> None:
    areas = "/dev/zram0  partition\t419\t0\t\t100\n/swap\\040file\tfile\t8\t8\t-2\n/dev/a partition\t8 8\t-3\n"
    (tmp_path / "swaps").write_text(f"Filename\t\tType\t\tSize\t\tUsed\t\tPriority\n{areas}")
    own = [*needs.own_namespaces("mount"), "sh", "-ec", 'mount --bind "$1" /proc/swaps; shift; "$@"', "sh"]
    argv = [*own, str(tmp_path / "swaps"), *snapshot.command().argv]
    done = subprocess.run(argv, capture_output=True, timeout=300, check=True)
    expected = "/dev/a priority -3\n/dev/zram0 priority 100\n/swap\\040file priority -2"
    assert snapshot.parse(done.stdout)["proc.swaps"] == expected


def test_differences_are_sentences() -> None:
    before, after = {"a": "1", "b": "x", "same": "0"}, {"a": "2", "c": "y", "same": "0"}
    assert snapshot.differences(before, after) == (
        "a was '1' and is '2'",
        "b was 'x' and is not there",
        "c was not there and is 'y'",
    )


def test_a_difference_does_not_tell_the_value_of_a_secret() -> None:
    (line,) = snapshot.differences({"sysctl.net.ipv4.tcp_fastopen_key": "0-1-2-3"}, {})
    assert line == "sysctl.net.ipv4.tcp_fastopen_key was '(hidden)' and is not there"
