"""The lab's hosts are machines of their own, and their faults are the real ones."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agents.base.command import Command, script
from agents.base.cpuset import format_cpus, parse_cpus
from agents.base.errors import ConnectError
from agents.facts import collect
from agents.remote.jobs import Job
from agents.remote.ssh import connect
from agents.steps.base.step import StepContext
from agents.steps.cpu_online import CpuOnlineStep
from lab.lab import Lab, LabError
from lab.links import namespaces
from lab.processes import ProcessId, in_namespace, start_ticks
from tests.lab.conftest import LogIn, login, running_lab
from tests.sshd import eventually, exists

pytestmark = pytest.mark.lab


def of_the_machine(path: str) -> str:
    """A file of the machine itself."""
    return Path(path).read_text()


def is_of_the_machine(path: str) -> bool:
    return Path(path).exists()


async def said(session: object, text: str) -> str:
    result = await session.run(script(text))  # type: ignore[attr-defined]
    return result.check("asking a lab host").text.strip()  # type: ignore[no-any-return]


async def test_each_host_has_settings_of_its_own_and_the_machine_keeps_its(lab: Lab, log_in: LogIn) -> None:
    machine = {key: of_the_machine(f"/proc/sys/{key}") for key in ("net/ipv4/tcp_fin_timeout", "vm/swappiness")}
    sut, driver = await log_in("sut"), await log_in("driver")

    for key in machine:
        await said(sut, f"echo 17 >/proc/sys/{key}")

    for key, value in machine.items():
        assert await said(sut, f"cat /proc/sys/{key}") == "17"
        assert await said(driver, f"cat /proc/sys/{key}") == value.strip()
        assert of_the_machine(f"/proc/sys/{key}") == value


async def test_a_host_sees_its_own_name_processes_users_and_files(lab: Lab, log_in: LogIn) -> None:
    sut, plain = await log_in("sut"), await log_in("sut", "bench")

    await said(sut, "echo hello >/root/note; echo hello >/etc/note; (setsid sleep 1000 >/dev/null 2>&1 &)")

    assert await said(sut, "hostname; id -un") == "sut\nroot"
    assert await said(plain, "id -un; pwd") == "bench\n/home/bench"
    assert (lab.host("sut").home / "note").read_text() == "hello\n"
    assert (lab.host("sut").root / "etc/note").read_text() == "hello\n"
    assert not is_of_the_machine("/etc/note")
    assert [process.argv for process in lab.processes("sut") if process.name == "sleep"] == [("sleep", "1000")]
    assert not any(process.name == "sleep" for process in lab.processes("driver"))
    await said(sut, "pkill sleep; rm /root/note /etc/note")


@pytest.mark.parametrize(
    "command", ["mount -t tmpfs none /mnt", "mknod /root/disk b 254 0", "date -s '+1 day'", "echo b >/sys/power/state"]
)
async def test_root_on_a_host_cannot_reach_the_machine(lab: Lab, log_in: LogIn, command: str) -> None:
    result = await (await log_in("sut")).run(script(command))

    assert result.exit_status != 0


async def test_hosts_reach_each_other_by_name_on_the_data_network_only(lab: Lab, log_in: LogIn) -> None:
    sut, driver = await log_in("sut"), await log_in("driver")
    job = Job(sut, "/root/web/job")
    await job.start(Command(("python3", "-m", "http.server", "80")), cookie="a" * 16, cwd="/srv")
    lab.exec("sut", "sh", "-c", "until curl -s http://sut/ >/dev/null; do sleep 0.05; done")

    assert await said(driver, "curl -s -o /dev/null -w '%{http_code}' http://sut/") == "200"
    assert lab.exec("driver", "getent", "hosts", "sut").stdout.decode().split()[0] == lab.host("sut").data_address
    assert await job.kill() == ()


async def test_a_reboot_ends_every_process_and_keeps_the_disk(lab: Lab, log_in: LogIn) -> None:
    look = "cat /proc/sys/kernel/random/boot_id /proc/sys/vm/swappiness /root/note"
    first = await log_in("sut")
    await said(first, "(setsid sleep 1000 >/dev/null 2>&1 &); echo 3 >/proc/sys/vm/swappiness; echo hello >/root/note")
    before, pids = await said(first, look), [process.pid for process in lab.processes("sut")]

    lab.reboot("sut")

    boot_id, swappiness, note = (await said(await log_in("sut"), look)).split()
    assert boot_id not in before
    assert boot_id == lab.host("sut").boot_id
    assert swappiness == of_the_machine("/proc/sys/vm/swappiness").strip()
    assert note == "hello"
    assert pids
    assert not any(exists(pid) for pid in pids)
    with pytest.raises(ConnectError):
        await first.run(script("true"))


async def test_a_crash_leaves_no_process_and_says_goodbye_to_nobody(lab: Lab, log_in: LogIn) -> None:
    session, host = await log_in("driver"), lab.host("driver")
    await said(session, "(setsid sleep 1000 >/dev/null 2>&1 &)")
    inside = [*lab.processes("driver"), *host.sshd_processes()]

    lab.crash("driver")

    assert len(inside) >= 3
    assert not any(exists(process.pid) for process in inside)
    assert lab.processes("driver") == ()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.5):
            await session.run(script("true"))
    with pytest.raises(LabError, match="driver is off; boot it first"):
        lab.exec("driver", "true")
    lab.boot("driver")
    assert await said(await log_in("driver"), "hostname") == "driver"


WAIT = "until [ -e /root/go ]; do sleep 0.05; done; echo done >/root/result"


async def test_nobody_is_told_of_a_cut_and_what_runs_goes_on(lab: Lab, log_in: LogIn) -> None:
    session = await log_in("sut")
    await said(
        session, "(setsid sh -c 'until [ -e /root/go ]; do sleep 0.05; done; echo done >/root/result' >&- 2>&- &)"
    )
    connections = len(lab.host("sut").sshd_processes())

    lab.cut("sut")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.5):
            await session.run(script("true"))
    lab.exec("sut", "touch", "/root/go")
    await eventually(lambda: (lab.host("sut").home / "result").exists())

    assert len(lab.host("sut").sshd_processes()) == connections
    assert lab.faults()
    lab.heal("sut")
    assert lab.faults() == ()
    assert await said(session, "cat /root/result; rm /root/result /root/go") == "done"


async def test_a_half_open_host_hears_and_is_not_heard(lab: Lab, log_in: LogIn) -> None:
    session = await log_in("sut")
    process = await session.connection.create_process("cat >/root/heard; echo done", encoding=None)

    lab.cut("sut", half_open=True)
    process.stdin.write(b"hello")
    process.stdin.write_eof()

    heard = lab.host("sut").home / "heard"
    await eventually(lambda: heard.exists() and heard.read_text() == "hello")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.5):
            await process.stdout.read()
    lab.heal("sut")
    assert await process.stdout.read() == b"done\n"


async def test_a_cut_between_the_hosts_leaves_the_controller_both(lab: Lab, log_in: LogIn) -> None:
    sut, driver = await log_in("sut"), await log_in("driver")
    ask = "curl -s --connect-timeout 0.4 http://sut:9/; echo $?"
    assert await said(driver, ask) == "7"  # refused: somebody is there

    lab.cut_data()

    assert await said(driver, ask) == "28"  # silence
    assert await said(sut, "echo here") == "here"
    lab.heal()
    assert await said(driver, ask) == "7"


async def test_a_slow_link_passes_what_it_can(lab: Lab, log_in: LogIn) -> None:
    driver = await log_in("driver")

    lab.rate(1_000_000)
    lab.loss(20)

    assert len(lab.faults()) == 8
    assert "1Mbit" in lab.faults()[1]
    assert await said(driver, "curl -s --retry 5 --connect-timeout 5 http://sut:9/; echo $?") == "7"
    lab.heal()
    assert lab.faults() == ()


async def test_a_full_disk_is_full_for_real_and_of_this_host_only(lab: Lab, log_in: LogIn) -> None:
    session = await log_in("sut")

    lab.fill_disk("sut")

    result = await session.run(script("head -c 100000 /dev/zero >/root/more"))
    assert result.exit_status != 0
    assert b"No space left on device" in result.stderr
    assert os.statvfs(lab.host("sut").disk).f_bavail == 0
    assert os.statvfs(lab.host("driver").disk).f_bavail > 0
    assert await said(session, "rm /root/.filler /root/more; echo hello >/root/note; cat /root/note") == "hello"


async def test_cpus_are_switched_by_the_real_step_and_the_machine_keeps_all_of_its_own(lab: Lab, log_in: LogIn) -> None:
    machine, sut = of_the_machine("/sys/devices/system/cpu/online"), await log_in("sut")
    step, context = CpuOnlineStep(online="0-2,5"), StepContext(instance="/root")

    async def state() -> object:
        return step.parse((await sut.run(step.probe(context))).check("reading").stdout)

    before = step.parse((await sut.run(step.probe(context))).check("reading").stdout)
    for command in step.apply(context, before):
        (await sut.run(command)).check("switching")

    online = lab.host("sut").root / "sys/devices/system/cpu/online"
    await eventually(lambda: format_cpus(parse_cpus(online.read_text().strip())) == "0-2,5")
    facts = await collect(sut)
    assert facts.cpu is not None
    assert (facts.cpu.online_cpus, facts.cpu.offline_cpus) == ((0, 1, 2, 5), (3, 4, 6, 7))
    assert facts.topology is not None
    assert [cpu.cpu for cpu in facts.topology.cpus if not cpu.online] == [3, 4, 6, 7]
    for command in step.revert(context, before):
        (await sut.run(command)).check("switching back")
    await eventually(lambda: online.read_text().strip() == "0-7")
    assert await state() == before
    assert of_the_machine("/sys/devices/system/cpu/online") == machine


@pytest.mark.parametrize(
    "file, written, shown",
    [
        ("sys/kernel/mm/transparent_hugepage/enabled", "never", "always madvise [never]"),
        ("sys/devices/system/cpu/cpu3/cpufreq/scaling_governor", "performance", "performance"),
        ("sys/devices/system/cpu/cpu3/cpufreq/scaling_governor", "no such", "performance"),
        ("proc/sys/vm/dirty_bytes", "100000000", "100000000"),
        ("proc/sys/vm/dirty_ratio", None, "0"),
        ("proc/irq/24/smp_affinity_list", "1", "1"),
    ],
)
async def test_settings_of_the_whole_machine_are_played_by_files(
    lab: Lab, log_in: LogIn, file: str, written: str | None, shown: str
) -> None:
    if written is not None:
        await said(await log_in("sut"), f"echo '{written}' >/{file}")

    await eventually(lambda: (lab.host("sut").root / file).read_text().strip() == shown)


async def test_the_clock_of_a_host_can_be_wrong(lab: Lab, log_in: LogIn) -> None:
    session = await log_in("driver")

    lab.clock("driver", -86_400)

    assert abs(float(await said(session, "date +%s.%N")) - time.time() + 86_400) < 60
    lab.clock("driver", 0)
    assert abs(float(await said(session, "date +%s.%N")) - time.time()) < 60


async def test_sshd_can_be_killed_frozen_configured_and_given_another_key(lab: Lab, log_in: LogIn) -> None:
    session, host = await log_in("driver"), lab.host("driver")
    await said(session, "(setsid sleep 1000 >/dev/null 2>&1 &)")

    host.kill_sshd()
    with pytest.raises(ConnectError, match="refused"):
        await connect(login(host), host.private_key)
    assert any(process.name == "sleep" for process in host.processes())
    host.exec("pkill", "sleep")
    host.start_sshd()

    host.freeze_sshd()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.5):
            await connect(login(host), host.private_key)
    host.thaw_sshd()

    host.configure_sshd("MaxSessions 1")
    single = await log_in("driver")
    stream = await single.start(script("sleep 1000"))
    with pytest.raises(ConnectError, match="refuses another session"):
        await single.run(script("true"))
    await stream.close()
    host.configure_sshd("")

    host.new_host_key()
    with pytest.raises(ConnectError, match="did not prove to be the approved host"):
        await connect(login(host), host.private_key)
    host.old_host_key()

    host.refuse_logins()
    with pytest.raises(ConnectError, match="refuses the key"):
        await connect(login(host), host.private_key)
    host.accept_logins()
    assert await said(await log_in("driver"), "hostname") == "driver"


async def test_two_labs_side_by_side_do_not_touch_each_other(lab: Lab, tmp_path: Path) -> None:
    with running_lab(tmp_path / "other", "sut", "third") as other:
        mine, theirs = lab.host("sut"), other.host("sut")
        other.cut("sut")

        assert {host.address for host in lab.hosts()}.isdisjoint(host.address for host in other.hosts())
        assert mine.boot_id != theirs.boot_id
        assert lab.faults() == ()
        session = await connect(login(mine), mine.private_key)
        assert await said(session, "hostname") == "sut"
        await session.close()


def left_of(lab: Lab, processes: list[ProcessId]) -> list[object]:
    """What a lab that had those processes still has on this machine."""
    mounts = [line for line in Path("/proc/self/mounts").read_text().splitlines() if str(lab.directory) in line]
    return [*mounts, *(process for process in processes if process.alive)]


def processes_in(prefix: str) -> list[ProcessId]:
    """The processes in the networks of a lab. Only by them it is known later: another one's networks get its inodes."""
    inodes = [os.stat(f"/run/netns/{name}").st_ino for name in namespaces() if name.startswith(prefix)]
    pids = [process.pid for inode in inodes for process in in_namespace("net", inode)]
    return [ProcessId(pid, start_ticks(pid) or 0) for pid in pids]


def test_down_leaves_nothing_and_may_come_from_another_process(tmp_path: Path) -> None:
    with running_lab(tmp_path / "short", "alone") as lab:
        host = lab.host("alone")
        prefix, interface = host.namespace.removesuffix("alone"), host.namespace.removesuffix("-alone")
        host.exec("sh", "-c", "setsid sleep 1000 >/dev/null 2>&1 &")
        processes = processes_in(prefix)
        assert len(left_of(lab, processes)) > 2

        Lab.found(lab.directory).down()

        assert left_of(lab, processes) == []
        assert not [name for name in namespaces() if name.startswith(prefix)]
        assert not Path("/sys/class/net", interface).exists()
        assert not lab.is_claimed
        lab.down()  # once more does no harm
        key = host.host_key
        lab.up()
        assert lab.host("alone").host_key == key


MAKE_AND_DIE = """
import os, sys
from pathlib import Path
from lab.lab import Lab
Lab(Path(sys.argv[1]), ("orphan",), of_this_process=True, disk_bytes=1 << 24).up()
os._exit(0)
"""


def test_the_next_lab_clears_up_after_a_process_that_died_with_one(tmp_path: Path) -> None:
    with running_lab(tmp_path / "first", "first"):  # skips without root
        subprocess.run([sys.executable, "-c", MAKE_AND_DIE, str(tmp_path / "dead")], check=True, timeout=300)
        dead = Lab.found(tmp_path / "dead")
        processes = processes_in(dead.host("orphan").namespace)
        assert processes
        assert left_of(dead, processes)

        with running_lab(tmp_path / "next", "next"):
            assert left_of(dead, processes) == []
            assert not dead.is_claimed


def test_up_again_mends_links_and_starts_what_is_off(tmp_path: Path) -> None:
    with running_lab(tmp_path / "again", "one", "two") as lab:
        boot_ids = [host.boot_id for host in lab.hosts()]
        lab.crash("one")
        lab.cut("two")

        lab.up()

        assert lab.faults() == ()
        assert lab.host("one").boot_id != boot_ids[0]
        assert lab.host("two").boot_id == boot_ids[1]


def test_without_root_it_says_why_there_is_no_lab(tmp_path: Path) -> None:
    user = os.geteuid()
    if user == 0:
        os.seteuid(65_534)
    try:
        with pytest.raises(LabError, match="only root may do that"):
            Lab(tmp_path / "none").up()
    finally:
        os.seteuid(user)
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("hosts", [(), ("sut", "sut"), ("Sut",), ("switch",), ("a/b",), ("x" * 16,)])
def test_names_that_cannot_be_hosts_are_refused(tmp_path: Path, hosts: tuple[str, ...]) -> None:
    with pytest.raises(LabError):
        Lab(tmp_path, hosts)
