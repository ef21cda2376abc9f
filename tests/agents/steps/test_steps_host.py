"""Steps on the kernel's files: plain trees in place of /sys and /proc, real ones where nothing is touched."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from pydantic import ValidationError

from agents.base.errors import PlanError
from agents.steps.base.step import HostStep, StepContext
from agents.steps.governor import GovernorStep
from agents.steps.irq_affinity import IrqAffinityStep
from agents.steps.packages.step import PackagesStep
from agents.steps.service import KEPT, ServiceStep
from agents.steps.swap import SwapStep
from agents.steps.thp import ThpStep
from tests import needs
from tests.agents.steps.step_shell import STEP, apply, context, host_step, results, revert, state, tree

__all__ = ["context"]

THP = {
    "kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
    "kernel/mm/transparent_hugepage/defrag": "always defer defer+madvise [madvise] never\n",
}


def files(root: str | Path) -> dict[str, str]:
    found = (path for path in Path(root).rglob("*") if path.is_file())
    return {str(path.relative_to(root)): path.read_text() for path in found}


def test_huge_pages_are_chosen_and_the_choice_comes_back(context: StepContext) -> None:
    tree(Path(context.sysfs), dict.fromkeys(THP, "madvise\n"))
    tree(Path(context.procfs), {"sys/vm/min_free_kbytes": "67584\n"})
    old = files(context.sysfs) | files(context.procfs)
    step = ThpStep(enabled="never", defrag="defer")
    before = apply(step, context)
    assert results(step, context, before) == {"enabled": "applied", "defrag": "applied"}
    tree(Path(context.procfs), {"sys/vm/min_free_kbytes": "11420\n"})  # as the kernel does by itself
    revert(step, context, before)
    assert files(context.sysfs) | files(context.procfs) == old


def test_huge_pages_are_read_as_the_kernel_shows_them(context: StepContext) -> None:
    tree(Path(context.sysfs), THP)
    step = ThpStep(enabled="madvise", defrag="always")
    before = state(step, context)
    assert (before["enabled"], before["defrag"], before["vm.min_free_kbytes"]) == ("madvise", "madvise", None)
    (command,) = step.apply(context, before)
    assert command.argv[6:] == ("defrag=always",)


def frequencies(context: StepContext, governors: Mapping[int, str], **more: str) -> Path:
    root = Path(context.sysfs) / "devices/system/cpu"
    for cpu, governor in governors.items():
        tree(
            root / f"cpu{cpu}/cpufreq",
            {
                "scaling_governor": f"{governor}\n",
                "scaling_available_governors": "performance powersave schedutil \n",
                "energy_performance_preference": "balance_performance\n",
            },
        )
    return tree(root, {"present": "0-11\n", **{name.replace("__", "/"): f"{value}\n" for name, value in more.items()}})


def test_every_cpu_gets_its_own_governor_back_and_offline_ones_are_left_alone(context: StepContext) -> None:
    root = frequencies(context, {0: "powersave", 2: "schedutil", 10: "performance"}, intel_pstate__no_turbo="0")
    (root / "cpu3").mkdir()
    old = files(root)
    step = GovernorStep(governor="performance", turbo=False)
    before = apply(step, context)
    assert files(root) == {
        **old,
        "cpu0/cpufreq/scaling_governor": "performance\n",
        "cpu2/cpufreq/scaling_governor": "performance\n",
        "intel_pstate/no_turbo": "1\n",
    }
    assert results(step, context, before) == {
        "scaling_governor of CPUs 0": "applied",
        "scaling_governor of CPUs 2": "applied",
        "scaling_governor of CPUs 10": "unchanged",
        "turbo": "applied",
    }
    tree(root, {"cpu0/cpufreq/energy_performance_preference": "performance\n"})  # as some drivers do by themselves
    revert(step, context, before)
    assert files(root) == old


SWAPS = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"

# What the kernel does: falling priorities for areas without one, and the others move up when an area goes off.
FAKE_SWAP = """#!{python}
import os, sys
proc, words = os.environ["FAKE_PROC"], sys.argv[1:]
lines = open(f"{{proc}}/swaps").read().splitlines()
path = words[-1].replace(" ", "\\\\040")
with open(f"{{proc}}/log", "a") as log:
    print(os.path.basename(sys.argv[0]), *words, file=log)
if sys.argv[0].endswith("swapon"):
    lowest = min([-1] + [int(line.split()[4]) for line in lines[1:]])
    priority = words[1] if words[0] == "-p" else lowest - 1
    lines.append(f"{{path}} file 1024 0 {{priority}}")
else:
    gone = next(line for line in lines[1:] if line.split()[0] == path).split()
    lines = [lines[0]] + [line.split() for line in lines[1:] if line.split()[0] != path]
    for fields in lines[1:]:
        if int(gone[4]) < 0 and int(fields[4]) < int(gone[4]):
            fields[4] = str(int(fields[4]) + 1)
    lines = [lines[0]] + [" ".join(fields) for fields in lines[1:]]
open(f"{{proc}}/swaps", "w").write("\\n".join(lines) + "\\n")
"""


@pytest.fixture
def swap(context: StepContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A host whose swapon and swapoff change a plain file; returns that file."""
    for name in ("swapon", "swapoff"):
        program = tree(tmp_path / "bin", {name: FAKE_SWAP.format(python=sys.executable)}) / name
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("FAKE_PROC", context.procfs)
    areas = "/dev/zram0 partition 4194300 10 100\n/dev/sda2 partition 8388604 0 -2\n/var/swap\\040file file 1024 0 -3\n"
    return tree(Path(context.procfs), {"swaps": SWAPS + areas, "meminfo": "MemAvailable:   21927820 kB\n"}) / "swaps"


def test_swap_goes_off_and_the_same_areas_come_back_with_their_priorities(context: StepContext, swap: Path) -> None:
    step = SwapStep(enabled=False)
    before = apply(step, context)
    assert swap.read_text() == SWAPS
    assert results(step, context, before) == {"swap": "applied"}
    revert(step, context, before)
    assert not step.differing(before, state(step, context))
    log = (Path(context.procfs) / "log").read_text().splitlines()
    assert log[3:] == ["swapon -p 100 -- /dev/zram0", "swapon -- /dev/sda2", "swapon -- /var/swap file"]


def test_areas_that_went_off_half_come_back_in_their_order(context: StepContext, swap: Path) -> None:
    step = SwapStep(enabled=False)
    before = state(step, context)
    lines = swap.read_text().splitlines()
    swap.write_text("\n".join([lines[0], lines[1], lines[3].replace("-3", "-2")]) + "\n")  # /dev/sda2 went off
    revert(step, context, before)
    assert not step.differing(before, state(step, context))


INTERRUPTS = """           CPU0       CPU1
 24:          1          0  IO-APIC   5-edge      ACPI:Ged
 41:       8327          0 PCI-MSIX-0000:00:04.0   1-edge      eth0-rx
 42:          0     173909 PCI-MSIX-0000:00:04.0   2-edge      eth0-tx
 43:          0     173909 PCI-MSIX-0000:00:04.0   2-edge      eth1-tx
NMI:          0          0   Non-maskable interrupts
"""


def interrupts(context: StepContext) -> Path:
    affinity = {f"irq/{irq}/smp_affinity_list": "0-1\n" for irq in (24, 41, 42, 43)}
    return tree(Path(context.procfs), {"interrupts": INTERRUPTS, "7/comm": "bash\n", **affinity})


def test_interrupts_of_a_device_move_and_come_back(context: StepContext) -> None:
    proc = interrupts(context)
    old = files(proc)
    step = IrqAffinityStep(cpus="1", devices=("eth0-*",))
    before = apply(step, context)
    assert {name for name, text in files(proc).items() if text == "1\n"} == {
        "irq/41/smp_affinity_list",
        "irq/42/smp_affinity_list",
    }
    assert results(step, context, before) == {"IRQ 41 (eth0-rx)": "applied", "IRQ 42 (eth0-tx)": "applied"}
    revert(step, context, before)
    assert files(proc) == old


def test_an_interrupt_that_went_with_its_device_or_belongs_to_another_one_is_no_failure(context: StepContext) -> None:
    proc = interrupts(context)
    step = IrqAffinityStep(cpus="1", devices=("eth0-*",))
    before = apply(step, context)
    lines = INTERRUPTS.replace("eth0-tx", "nvme0q1").splitlines(keepends=True)
    (proc / "interrupts").write_text("".join(line for line in lines if not line.startswith(" 41:")))
    revert(step, context, before)
    assert not step.differing(before, state(step, context))
    assert (proc / "irq/42/smp_affinity_list").read_text() == "1\n"


def test_a_running_irqbalance_is_told_and_what_it_moves_is_nobodys_fault(context: StepContext) -> None:
    tree(interrupts(context), {"812/comm": "irqbalance\n"})
    step = IrqAffinityStep(cpus="1", irqs=(41,))
    before = apply(step, context)
    (outcome,) = step.outcomes(before, state(step, context))
    assert (outcome.result, "service step" in outcome.detail) == ("applied", True)
    tree(Path(context.procfs), {"irq/41/smp_affinity_list": "0\n"})
    assert not step.differing(before, state(step, context))


@needs.root("it writes to /proc/irq")
def test_a_real_interrupt_is_written_as_it_is() -> None:
    context = StepContext("/")
    numbers = [int(name) for name in os.listdir("/proc/irq") if name.isdigit()]
    step = IrqAffinityStep(cpus="0", irqs=tuple(numbers))
    before = state(step, context)
    revert(step, context, before)
    assert not step.differing(before, state(step, context))


def test_kernel_parameters_of_a_network_namespace_are_set_and_come_back() -> None:
    values: dict[str, object] = {
        "net.core.somaxconn": 32768,
        "net.ipv4.ip_local_port_range": "1024 65000",
        "net.ipv4.tcp_rmem": "4096 131072 16777216",
        "net.ipv4.ip_local_reserved_ports": "8081,8080,9000-9002",
        "net.ipv4.tcp_fin_timeout": 30,
        "net.ipv4.tcp_tw_recycle": 1,
        "net.ipv4.tcp_max_orphans": 1,
        "net.ipv4.tcp_tw_reuse": 9,
    }
    script = """
import json, sys
from tests.agents.steps.step_shell import apply, host_step, revert, state
from agents.steps.base.step import StepContext
step, context = host_step(json.loads(sys.argv[1])), StepContext("/")
before = apply(step, context)
outcomes = [[o.setting, o.result, o.detail] for o in step.outcomes(before, state(step, context))]
revert(step, context, before)
print(json.dumps([outcomes, step.differing(before, state(step, context))]))
"""
    raw = json.dumps({"kind": "sysctl", "values": values, "unsupported": "skip"})
    own = [*needs.own_namespaces("net"), sys.executable, "-c", script, raw]
    done = subprocess.run(own, capture_output=True, cwd=Path(__file__).parents[3], timeout=300, check=True)
    outcomes, differing = json.loads(done.stdout)
    assert differing == []
    assert {setting: result for setting, result, _ in outcomes} == {
        "net.core.somaxconn": "applied",
        "net.ipv4.ip_local_port_range": "applied",
        "net.ipv4.tcp_rmem": "applied",
        "net.ipv4.ip_local_reserved_ports": "applied",
        "net.ipv4.tcp_fin_timeout": "applied",
        "net.ipv4.tcp_tw_recycle": "unsupported",
        "net.ipv4.tcp_max_orphans": "unsupported",
        "net.ipv4.tcp_tw_reuse": "refused",
    }


@pytest.mark.parametrize(
    "step",
    [
        ThpStep(enabled="never", unsupported="skip"),
        GovernorStep(governor="performance", turbo=True, unsupported="skip"),
        SwapStep(enabled=True, unsupported="skip"),
        IrqAffinityStep(cpus="0", devices=("no-such-device*",), unsupported="skip"),
        ServiceStep(name="no-such-service", running=True, unsupported="skip"),
        PackagesStep(packages=("no-such-package-at-all",), unsupported="skip"),
    ],
    ids=lambda step: step.kind,
)
def test_every_kind_reads_this_machine_and_leaves_it_alone(step: HostStep) -> None:
    before = state(step, StepContext("/"))
    assert {o.result for o in step.outcomes(before, before)} <= {"unsupported", "unchanged", "refused"}
    assert not step.differing(before, before)


def test_a_host_without_any_of_it_is_no_error(context: StepContext) -> None:
    for step in (
        ThpStep(enabled="never", unsupported="skip"),
        GovernorStep(governor="performance", turbo=True, unsupported="skip"),
        SwapStep(enabled=True, unsupported="skip"),
        IrqAffinityStep(cpus="0", devices=("eth0*",), unsupported="skip"),
    ):
        before = state(step, context)
        assert step.apply(context, before) == step.revert(context, before) == ()
        assert {o.result for o in step.outcomes(before, before)} == {"unsupported"}
        with pytest.raises(PlanError) as refusal:
            step.model_copy(update={"unsupported": "fail"}).apply(context, before)
        assert refusal.value.hint


def test_an_init_script_is_stopped_and_started_again(tmp_path: Path) -> None:
    systemd = Path("/run/systemd/system").is_dir()
    needs.require(not systemd, "a machine without systemd", "run it in a container or with bin/try-fresh")
    cases = 'start) : >"$flag";; stop) rm -f "$flag";; status) [ -e "$flag" ] || exit 3;;'
    init = f"#!/bin/sh\nflag={tmp_path}/flag\ncase $1 in {cases} esac\n"
    tree(tmp_path, {"benchhub-test": init, "flag": ""})
    (tmp_path / "benchhub-test").chmod(0o755)
    step, nowhere = ServiceStep(name="benchhub-test", running=False), StepContext("/")
    mounted = 'mount --bind "$1" /etc/init.d; shift; "$@"'
    own = [*needs.own_namespaces("mount"), "sh", "-ec", mounted, "sh", str(tmp_path)]

    def in_namespace(argv: tuple[str, ...]) -> bytes:
        path = f"{os.environ['PATH']}:/usr/sbin:/sbin"  # as sudo has it; a plain login may not
        environment = {**os.environ, "PATH": path}
        done = subprocess.run([*own, *argv], capture_output=True, env=environment, timeout=300, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    before = step.parse(in_namespace(step.probe(nowhere).argv))
    assert before["running"] == "yes"
    for command in step.apply(nowhere, before) * 2:
        in_namespace(command.argv)
    assert step.parse(in_namespace(step.probe(nowhere).argv))["running"] == "no"
    for command in step.revert(nowhere, before) * 2:
        in_namespace(command.argv)
    assert step.parse(in_namespace(step.probe(nowhere).argv)) == before


@pytest.mark.parametrize(
    "name",
    [
        "ssh",
        "sshd",
        "sshd.service",
        "ssh.socket",
        "sshd@1",
        "systemd-networkd",
        "systemd-logind",
        "dbus",
        "dbus-broker",
        "NetworkManager",
        "networking",
        "network",
        "wpa_supplicant@wlan0",
        "wg-quick@wg0",
        "firewalld",
        "nftables",
        "iptables",
        "getty@tty1",
        "sssd",
        "udev",
        "lvm2-monitor",
        "multi-user.target",
        "home.mount",
    ],
)
def test_services_that_would_cut_us_off_are_refused_by_name(name: str) -> None:
    with pytest.raises(ValidationError, match=r"may not start or stop|is no service"):
        ServiceStep(name=name, running=False)


def test_the_reason_for_a_service_that_is_kept_is_told() -> None:
    with pytest.raises(ValidationError, match="BenchHub itself comes in through it"):
        ServiceStep(name="sshd", running=False)
    assert len(set(KEPT.values())) == len(KEPT)


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ({"kind": "thp"}, "at least one"),
        ({"kind": "thp", "enabled": "sometimes"}, "enabled"),
        ({"kind": "governor"}, "at least one"),
        ({"kind": "governor", "governor": "../x"}, "governor"),
        ({"kind": "governor", "turbo": True, "cpus": "0"}, "whole host"),
        ({"kind": "swap"}, "enabled"),
        ({"kind": "irq_affinity", "cpus": "0"}, "name devices or irqs"),
        ({"kind": "irq_affinity", "cpus": "", "irqs": [1]}, "at least one CPU"),
        ({"kind": "irq_affinity", "cpus": "0", "devices": ["*"]}, "not every interrupt"),
        ({"kind": "service", "name": "-x", "running": True}, "name"),
        ({"kind": "service", "name": "a b", "running": True}, "name"),
        ({"kind": "packages", "packages": []}, "packages"),
        ({"kind": "packages", "packages": ["-y"]}, "packages"),
        ({"kind": "packages", "packages": ["htop; true"]}, "packages"),
        ({"kind": "packages", "packages": ["./x.deb"]}, "packages"),
        ({"kind": "packages", "packages": ["linux-image-amd64"]}, "how the host starts"),
        ({"kind": "packages", "packages": ["kernel-core=1"]}, "how the host starts"),
        ({"kind": "sysctl", "values": {"net.ipv6.conf.all.disable_ipv6": 1}}, "cannot be put back"),
        ({"kind": "sysctl", "values": {"vm.swappiness": "010"}}, "octal"),
    ],
)
def test_a_setting_that_makes_no_sense_is_refused(raw: dict[str, object], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        STEP.validate_python(raw)


def test_hexadecimal_numbers_are_what_the_kernel_will_show() -> None:
    step = host_step({"kind": "sysctl", "values": {"net.ipv4.tcp_fastopen": "0x403"}})
    assert step.wanted({"net.ipv4.tcp_fastopen": "1"}) == {"net.ipv4.tcp_fastopen": "1027"}
