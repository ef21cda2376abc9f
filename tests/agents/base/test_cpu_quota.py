"""The limits of control groups: the shell that walks up to the root, and what is read from its lines."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from agents.base.cpu_quota import SCRIPT, CpuLimit, parse_limits
from tests import needs

OWN = "0::/user.slice/user-1000.slice/session-3.scope\n"
CONTAINER = "12:cpu,cpuacct:/docker/0123456789ab\n11:memory:/docker/0123456789ab\n0::/\n"


def limits(tmp_path: Path, membership: str, files: dict[str, str]) -> list[tuple[str, float, int, int]]:
    """What the script finds for this /proc/PID/cgroup in a tree of plain files."""
    for name, text in files.items():
        path = tmp_path / "cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "membership").write_text(membership)
    text = SCRIPT.replace("/sys/fs/cgroup", f"{tmp_path}/cgroup") + 'show_cpu_limits "$1"'
    said = subprocess.run(
        ["sh", "-eu", "-c", text, "sh", f"{tmp_path}/membership"], capture_output=True, text=True, check=True
    )
    assert said.stderr == ""
    return [(limit.group, limit.cpus, limit.periods, limit.throttled) for limit in parse_limits(said.stdout)]


STAT = "usage_usec 5\nnr_periods 40\nnr_throttled 7\nthrottled_usec 99\n"
V2 = {"cgroup.procs": "", "user.slice/user-1000.slice/cgroup.procs": ""}
V1 = {"cpu/cgroup.procs": ""}


@pytest.mark.parametrize(
    ("membership", "files", "found"),
    [
        (OWN, V2, []),
        (OWN, V2 | {"user.slice/cpu.max": "max 100000\n", "user.slice/cpu.stat": STAT}, []),
        (
            OWN,
            V2 | {"user.slice/user-1000.slice/cpu.max": "150000 100000\n", "user.slice/user-1000.slice/cpu.stat": STAT},
            [("/user.slice/user-1000.slice", 1.5, 40, 7)],
        ),
        ("0::/\n", V2 | {"cpu.max": "50000 100000\n", "cpu.stat": STAT}, [("/", 0.5, 40, 7)]),
        ("0::/../../elsewhere\n", V2 | {"cpu.max": "50000 100000\n", "cpu.stat": STAT}, [("/", 0.5, 40, 7)]),
        (
            CONTAINER,
            V1 | {"cpu/cpu.cfs_quota_us": "200000\n", "cpu/cpu.cfs_period_us": "100000\n", "cpu/cpu.stat": STAT},
            [("/", 2.0, 40, 7)],
        ),
        (CONTAINER, V1 | {"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, []),
        ("3:cpuset:/a\n2:cpuacct:/a\n", V1 | {"cpu/a/cpu.cfs_quota_us": "1000\n"}, []),
    ],
)
def test_the_limits_of_a_process_are_those_of_its_group_and_all_above(
    tmp_path: Path, membership: str, files: dict[str, str], found: list[tuple[str, float, int, int]]
) -> None:
    assert limits(tmp_path, membership, files) == found


@pytest.mark.parametrize("text", ["", "limit 1 0 /x\n", "limit max 100000 /x\n", "nr_periods 5\n", "limit 5\n"])
def test_what_is_no_limit_is_none(text: str) -> None:
    assert parse_limits(text) == ()


@pytest.fixture
def real_group() -> Iterator[Path]:
    group = Path(f"/sys/fs/cgroup/cpu/benchhub-test-{os.getpid()}")
    try:
        group.mkdir()
        (group / "cpu.cfs_quota_us").write_text("150000")
    except OSError:
        with suppress(OSError):
            group.rmdir()
        needs.require(False, "control groups that limit CPUs (version 1)", needs.RIGHTS)
    yield group
    group.rmdir()


def test_a_real_group_of_one_and_a_half_cpus(real_group: Path) -> None:
    text = f'echo $$ >"$1/cgroup.procs"\n{SCRIPT}\nshow_cpu_limits /proc/self/cgroup\necho $$ >"$1/../cgroup.procs"'
    said = subprocess.run(["sh", "-eu", "-c", text, "sh", real_group], capture_output=True, text=True, check=True)
    [limit] = [limit for limit in parse_limits(said.stdout) if limit.group == f"/{real_group.name}"]
    assert limit == CpuLimit(limit.group, 1.5, limit.periods, limit.throttled)
