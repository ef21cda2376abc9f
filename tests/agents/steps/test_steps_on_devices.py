"""Steps on disks, network interfaces, control groups and NUMA nodes of this machine: made for the test, put back."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from agents.base.errors import PlanError
from agents.base.process_start import ProcessStart
from agents.steps.base.step import StepContext
from agents.steps.block_device import BlockDeviceStep
from agents.steps.cgroup import CgroupStep
from agents.steps.container_image import ContainerImageStep
from agents.steps.kernel_command_line import KernelCommandLineStep
from agents.steps.numa import NumaStep
from tests import needs
from tests.agents.steps.step_shell import apply, results, revert, state

HERE = Path(__file__).parents[3]
TRY = """
import json, sys
from tests.agents.steps.step_shell import apply, host_step, revert, state
from agents.steps.base.step import StepContext
step, context = host_step(json.loads(sys.argv[1])), StepContext("/run/1/instance")
before = apply(step, context)
outcomes = {o.setting: [o.before, o.effective, o.result] for o in step.outcomes(before, state(step, context))}
revert(step, context, before)
print(json.dumps([outcomes, step.differing(before, state(step, context))]))
"""


def tried(prepare: str, step: Mapping[str, object], *kinds: str) -> Any:
    """What became of each setting, and what was left; in namespaces of its own, after `prepare` has run there."""
    own = [*needs.own_namespaces(*kinds), "sh", "-ec", f'{prepare}\nexec "$@"', "sh"]
    path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    done = subprocess.run(
        [*own, sys.executable, "-c", TRY, json.dumps(step)],
        capture_output=True,
        cwd=HERE,
        env={**os.environ, "PATH": path},
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[str]:
    """The name of a loop device with an empty ext4 file system."""
    needs.require_root("it makes a loop device")
    needs.require_program("losetup", "mkfs.ext4")
    image = tmp_path / "image"
    with image.open("wb") as file:
        file.truncate(16 << 20)
    path = {**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"}
    subprocess.run(["mkfs.ext4", "-q", str(image)], env=path, check=True)
    made = subprocess.run(
        ["losetup", "-f", "--show", str(image)], capture_output=True, text=True, env=path, check=False
    )
    needs.require(made.returncode == 0, "a free loop device", needs.RIGHTS)
    yield made.stdout.strip().removeprefix("/dev/")
    subprocess.run(["losetup", "-d", made.stdout.strip()], env=path, check=True)


def test_a_mounted_file_system_gets_options_and_its_own_come_back(disk: str, tmp_path: Path) -> None:
    where = tmp_path / "mounted"
    where.mkdir()
    mount = f"mount -o discard /dev/{disk} {where}"
    options = ["noatime", "lazytime", "nobarrier", "nodiscard", "commit=30"]
    outcomes, left = tried(mount, {"kind": "mount", "path": str(where), "options": options}, "mount")
    assert {setting.removeprefix(f"{where} "): told for setting, told in outcomes.items()} == {
        "access time": ["relatime", "noatime", "applied"],
        "lazy times": ["nolazytime", "lazytime", "applied"],
        "write barriers": ["barrier", "nobarrier", "applied"],
        "discard": ["discard", "nodiscard", "applied"],
        "commit": ["commit=0", "commit=30", "applied"],
    }
    assert left == []


def test_an_option_that_a_file_system_lacks_and_has_not_does_not_hold_up_the_others() -> None:
    options = {"kind": "mount", "path": "/mnt", "options": ["noatime", "nodiscard"]}
    outcomes, left = tried("mount -t tmpfs none /mnt", options, "mount")
    assert outcomes == {
        "/mnt access time": ["relatime", "noatime", "applied"],
        "/mnt discard": ["nodiscard", "nodiscard", "unchanged"],
    }
    assert left == []


def test_a_disk_gets_another_scheduler_and_all_settings_of_its_own_come_back(disk: str) -> None:
    context, queue = StepContext("/run/1/instance"), Path(f"/sys/block/{disk}/queue")
    offered = (queue / "scheduler").read_text().replace("[", "").replace("]", "").split()
    needs.require("mq-deadline" in offered, "the scheduler mq-deadline", "modprobe mq-deadline")
    (queue / "scheduler").write_text("mq-deadline")
    (queue / "iosched/read_expire").write_text("320")
    (queue / "nr_requests").write_text("48")
    step = BlockDeviceStep(device=disk, scheduler="none", read_ahead_kb=512)
    before = apply(step, context)
    assert results(step, context, before) == {"scheduler": "applied", "read_ahead_kb": "applied"}
    assert not (queue / "iosched/read_expire").exists()
    revert(step, context, before)
    assert not step.differing(before, state(step, context))
    found = [(queue / name).read_text().strip() for name in ("iosched/read_expire", "nr_requests", "read_ahead_kb")]
    assert found == ["320", "48", before["read_ahead_kb"]]


def test_a_network_interface_gets_other_offloads_and_what_they_took_along_comes_back() -> None:
    needs.require_program("ethtool", "ip")
    pair = "ip link add one type veth peer name other"
    step: dict[str, object] = {"kind": "network_device", "interface": "one", "unsupported": "skip"}
    step["offloads"] = {"tx-checksumming": False, "generic-receive-offload": True, "large-receive-offload": True}
    outcomes, left = tried(pair, {**step, "rx_ring": 64}, "net")
    assert outcomes == {
        "offload tx-checksumming": ["on", "off", "applied"],
        "offload generic-receive-offload": ["off", "on", "applied"],
        "offload large-receive-offload": ["off", "off", "unsupported"],
        "ring rx": [None, None, "unsupported"],
    }
    assert left == []


@pytest.fixture
def group() -> Iterator[StepContext]:
    """A context whose control group is the test's own; none is left."""
    needs.require_root("it makes a control group")
    context = StepContext(f"/root/.benchhub/runs/test-{os.getpid()}/instance")
    found = state(CgroupStep(cpus=1, memory_max_bytes=1 << 30), context)
    needs.require(found["cpu"] and found["memory"], "control groups for CPU time and memory", needs.NOT_ALLOWED)
    yield context
    assert not list(Path("/sys/fs/cgroup").glob(f"**/benchhub-test-{os.getpid()}"))


def test_a_server_joins_its_control_group_with_what_it_starts_and_the_group_goes(
    group: StepContext, tmp_path: Path
) -> None:
    step = CgroupStep(cpus=0.5, memory_max_bytes=64 << 20)
    before = apply(step, group)
    assert results(step, group, before) == {"cpu.max": "applied", "memory.max": "applied"}
    instance = tmp_path / Path(group.instance).parent.name / "instance"
    instance.mkdir(parents=True)
    launch = step.contribute(ProcessStart())
    of_a_child = ["sh", "-c", "cat /proc/self/cgroup; :"]
    done = subprocess.run(
        [*launch.prefix, *of_a_child], cwd=instance, capture_output=True, text=True, timeout=60, check=True
    )
    joined = [line for line in done.stdout.splitlines() if line.endswith(f"/benchhub-test-{os.getpid()}")]
    assert len(joined) in (1, 2)  # one tree, or one of each controller
    revert(step, group, before)
    assert not step.differing(before, state(step, group))


def test_members_of_a_system_on_one_host_have_control_groups_of_their_own(group: StepContext, tmp_path: Path) -> None:
    run = Path(group.instance).parent
    places = {"instance": "", "instance-2": "", "instance-database": "-database", "instance-database-2": "-database"}
    limits = {"": CgroupStep(cpus=0.5), "-database": CgroupStep(cpus=1)}
    before = {own: apply(step, StepContext(f"{run}/instance{own}")) for own, step in limits.items()}
    for name, own in places.items():
        context, instance = StepContext(f"{run}/{name}"), tmp_path / run.name / name
        assert results(limits[own], context, before[own])["cpu.max"] == "applied"
        instance.mkdir(parents=True)
        show = [*limits[own].contribute(ProcessStart()).prefix, "cat", "/proc/self/cgroup"]
        done = subprocess.run(show, cwd=instance, capture_output=True, text=True, timeout=60, check=True)
        assert f"/benchhub-{run.name}{own}\n" in done.stdout
    for own, step in limits.items():
        revert(step, StepContext(f"{run}/instance{own}"), before[own])
    assert not list(Path("/sys/fs/cgroup").glob(f"**/benchhub-{run.name}*"))


def test_what_is_still_in_a_control_group_does_not_keep_it_there(group: StepContext) -> None:
    step = CgroupStep(cpus=1)
    before = apply(step, group)
    left = subprocess.Popen(["sleep", "600"])
    try:
        tree = before["cpu"]
        Path(f"{tree}/benchhub-test-{os.getpid()}/cgroup.procs").write_text(str(left.pid))
        revert(step, group, before)
        assert left.poll() is None
    finally:
        left.kill()
        left.wait()


def test_a_control_group_limits_the_memory_of_the_server(group: StepContext, tmp_path: Path) -> None:
    step = CgroupStep(memory_max_bytes=24 << 20)
    before = apply(step, group)
    instance = tmp_path / Path(group.instance).parent.name / "instance"
    instance.mkdir(parents=True)
    eat = [sys.executable, "-c", "x = bytearray(200 << 20); print(len(x))"]
    done = subprocess.run(
        [*step.contribute(ProcessStart()).prefix, *eat], cwd=instance, capture_output=True, timeout=120, check=False
    )
    revert(step, group, before)
    assert done.returncode != 0, "200 MiB were had in a group of 24 MiB"


def test_a_server_that_cannot_join_its_group_does_not_start(group: StepContext, tmp_path: Path) -> None:
    step = CgroupStep(cpus=1)
    before = apply(step, group)
    tree = before["cpu"]
    instance = tmp_path / Path(group.instance).parent.name / "instance"
    instance.mkdir(parents=True)
    Path(f"{tree}/benchhub-test-{os.getpid()}/child").mkdir()
    try:
        words = step.contribute(ProcessStart()).prefix
        broken = tuple(word.replace('"$pid" >', '"not a process" >') for word in words)
        done = subprocess.run([*broken, "echo", "started"], cwd=instance, capture_output=True, timeout=60, check=False)
        assert (done.returncode, done.stdout) == (78, b"")
    finally:
        Path(f"{tree}/benchhub-test-{os.getpid()}/child").rmdir()
        revert(step, group, before)


def test_the_memory_of_a_server_is_bound_to_a_node() -> None:
    needs.require_program("numactl")
    words = NumaStep(policy="bind", nodes="0").contribute(ProcessStart()).prefix
    done = subprocess.run([*words, "cat", "/proc/self/numa_maps"], capture_output=True, text=True, check=False)
    needs.require(done.returncode == 0, "NUMA nodes", needs.NOT_ALLOWED)
    assert done.stdout.split()[1] == "bind:0"


def test_what_this_kernel_was_started_with_is_seen_and_what_it_was_not_is_refused() -> None:
    words = [word for word in Path("/proc/cmdline").read_text().split() if '"' not in word]
    context = StepContext("/")
    present = next((word for word in words if re.fullmatch(r"[A-Za-z0-9_.=-]+", word)), None)
    needs.require(present, "arguments of the kernel", needs.NOT_ALLOWED)
    step = KernelCommandLineStep.model_validate({"present": [present], "absent": ["no.such.argument"]})
    before = state(step, context)
    assert step.apply(context, before) == step.revert(context, before) == ()
    assert {o.result for o in step.outcomes(before, before)} == {"unchanged"}
    other = KernelCommandLineStep(present=("benchhub.never=1",))
    with pytest.raises(PlanError, match=r"without benchhub\.never=1") as refusal:
        other.apply(context, state(other, context))
    assert "restarts no host" in refusal.value.hint


def test_an_image_that_is_there_already_is_neither_fetched_nor_removed() -> None:
    image = "localhost/benchhub/none@sha256:" + "0" * 64
    step, context = ContainerImageStep(image=image), StepContext("/")
    found = state(step, context)
    needs.require(found["engine"], "a container engine that answers", "apt-get install podman")
    before = {**found, "image": "there"}
    assert step.apply(context, before) == step.revert(context, before) == ()
    for command in step.revert(context, found) * 2:
        done = subprocess.run(command.argv, capture_output=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr
