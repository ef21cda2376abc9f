from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Callable

import pytest

from agents.base.command import Command, CommandResult
from agents.base.errors import CommandError, ParseError
from agents.facts import FACTS, collect, facts_command, java, lscpu, parse_facts
from agents.facts.access import Access
from agents.facts.cpu_quota import CpuQuota
from agents.facts.described import read_machine
from agents.facts.host import HostFacts
from agents.facts.java import Jdks
from agents.facts.kernel import Kernel
from agents.facts.lscpu import Lscpu
from agents.facts.memory import Memory
from agents.facts.network import Nics
from agents.facts.os_release import OsRelease
from agents.facts.power import Power
from agents.facts.topology import Topology
from agents.remote.ssh import SshSession
from tests.agents.recorded import Case, cases, damaged
from tests.properties import HealthCheck, given, settings

EVERY_CASE = [case for kind in FACTS for case in cases(kind)]
MARK = "==fact-test"


def lscpu_figures(facts: Lscpu) -> dict[str, object]:
    figures = dict(vars(facts))
    figures |= {f"cache_{name}_bytes": cache.size_bytes for name, cache in facts.caches.items()}
    figures |= {f"cache_{name}_text": cache.text for name, cache in facts.caches.items()}
    figures["numa"] = {str(node): list(cpus) for node, cpus in facts.numa.items()}
    figures["flags_count"] = len(facts.flags)
    if facts.flags:
        figures["flags_first"], figures["flags_last"] = facts.flags[0], facts.flags[-1]
    return figures


def kernel_figures(kernel: Kernel) -> dict[str, object]:
    own = {"kernel_name": kernel.name, "kernel_release": kernel.release, "node": kernel.node, "machine": kernel.machine}
    return {**own, "kernel_major": kernel.major, "kernel_minor": kernel.minor}


def memory_figures(memory: Memory) -> dict[str, object]:
    figures = {f"mem_{name}": getattr(memory, name) for name in ("total_bytes", "free_bytes", "available_bytes")}
    return {**figures, **vars(memory)}


def figures(case: Case) -> dict[str, object]:
    """What the parser of this case's fact finds, under the names of the expectation."""
    kind = case.name.partition("/")[0]
    if kind == "java" and case.format != "jdks":
        return dict(vars(java.parse_version(case.raw)))
    found = FACTS[kind].parse(case.raw)
    if isinstance(found, Lscpu):
        return lscpu_figures(found)
    if isinstance(found, Topology):
        return {"cpus": [vars(cpu) for cpu in found.cpus]}
    if isinstance(found, Memory):
        return memory_figures(found)
    if isinstance(found, Kernel):
        return kernel_figures(found)
    if isinstance(found, OsRelease):
        return dict(found.fields)
    if isinstance(found, Nics):
        return {nic.name: vars(nic) for nic in found.nics}
    if isinstance(found, Jdks):
        return dict(found.stable())
    assert isinstance(found, (Access, CpuQuota, Power))
    return dict(vars(found))


def listed(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


@pytest.mark.parametrize("kind", FACTS)
def test_every_fact_has_cases(kind: str) -> None:
    assert cases(kind)


@pytest.mark.parametrize("case", EVERY_CASE, ids=lambda case: case.name)
def test_a_fact_gives_the_expected_figures(case: Case) -> None:
    found = figures(case)
    for key, want in case.expected.items():
        have = listed(found.get(key))
        if isinstance(want, dict) and isinstance(have, dict):
            have = {name: value for name, value in have.items() if name in want}
        assert have == want, key


@pytest.mark.parametrize(("version", "major"), [("1.8.0_412", 8), ("11.0.2", 11), ("21", 21), ("25.0.3", 25)])
def test_java_8_is_called_1_8(version: str, major: int) -> None:
    assert java.parse_version(f'openjdk version "{version}"\n'.encode()).major == major


@pytest.mark.parametrize(
    ("text", "size_bytes"), [("32K", 32768), ("1.5 MiB (3 instances)", 1572864), ("64 KiB", 65536), ("unknown", None)]
)
def test_cache_sizes_of_every_age(text: str, size_bytes: int | None) -> None:
    found = lscpu.parse(f"Architecture: x86_64\nCPU(s): 2\nL2 cache: {text}\n".encode())
    assert (found.caches["l2"].size_bytes if "l2" in found.caches else None) == size_bytes


def test_the_nested_json_of_newer_lscpu_is_read_too() -> None:
    output = b"""{"lscpu": [{"field": "Architecture:", "data": "aarch64", "children": [
        {"field": "Byte Order:", "data": "Little Endian"}]}, {"field": "CPU(s):", "data": "144", "children": [
        {"field": "Off-line CPU(s) list:", "data": "8-143"}]}, {"field": "Socket(s):", "data": "-"}]}"""
    found = lscpu.parse(output)
    assert found.byte_order == "Little Endian"
    assert found.offline_cpus == tuple(range(8, 144))
    assert found.sockets is None


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(damaged([case.text for case in EVERY_CASE]))
def test_damaged_output_gives_a_fact_or_a_parse_error(text: str) -> None:
    parsers: list[Callable[[bytes], object]] = [fact.parse for fact in FACTS.values()]
    for parse in [*parsers, java.parse_version]:
        try:
            parse(text.encode("utf-8", "surrogatepass"))
        except ParseError:
            continue


@pytest.mark.parametrize("deep", [b"[" * 100_000, b'{"lscpu": ' * 50_000])
def test_json_without_end_is_a_parse_error(deep: bytes) -> None:
    with pytest.raises(ParseError):
        lscpu.parse(b'{"lscpu": ' + deep)


def local(command: Command, path: str) -> bytes:
    done = subprocess.run(command.argv, capture_output=True, check=False, env={"PATH": path}, timeout=300)
    assert done.returncode == 0
    assert done.stderr == b""
    return done.stdout


def test_the_script_reads_this_very_machine() -> None:
    facts = parse_facts(FACTS, MARK, local(facts_command(FACTS, MARK), os.environ["PATH"]))
    assert facts.unread == {}
    assert facts.kernel
    assert facts.kernel.release == os.uname().release
    assert facts.memory
    assert facts.memory.total_bytes == os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert facts.access
    assert facts.access.uid == os.getuid()
    flat = facts.to_json()
    assert list(flat) == sorted(flat)
    assert flat.items() >= facts.profile().items()
    assert "boot.id" not in facts.profile()


def test_a_host_without_any_tool_has_fewer_facts_but_no_error() -> None:
    facts = parse_facts(FACTS, MARK, local(Command(("/bin/sh", *facts_command(FACTS, MARK).argv[1:])), "/nowhere"))
    assert facts.cpu is None
    assert facts.java is None or facts.java.on_path is None
    assert set(facts.to_json()) >= set(facts.profile())


def test_the_profile_is_the_same_twice_and_tells_machines_apart() -> None:
    command = facts_command(FACTS, MARK)
    first, second = (parse_facts(FACTS, MARK, local(command, os.environ["PATH"])) for _ in range(2))
    assert first.digest() == second.digest()
    other = HostFacts({"lscpu": FACTS["lscpu"].parse(cases("lscpu")[0].raw)})
    assert other.digest() != first.digest()
    assert len(other.digest()) == 64


def test_what_moves_by_itself_is_not_in_the_profile() -> None:
    text = "Architecture: x86_64\nCPU(s): 2\nCPU MHz: {}\nBogoMIPS: {}\n"
    one, two = (HostFacts({"lscpu": lscpu.parse(text.format(mhz, mhz).encode())}) for mhz in (800, 3000.5))
    assert one.digest() == two.digest()
    assert one.to_json() != two.to_json()


def test_a_section_that_cannot_be_read_is_named_and_costs_no_other() -> None:
    output = (
        f"motd\n{MARK} lscpu\nBusyBox: no such applet\n\n{MARK} kernel\nLinux h 6.1.0 #1 SMP x86_64\n\n{MARK} end\n"
    )
    facts = parse_facts(FACTS, MARK, output.encode())
    assert facts.kernel
    assert facts.kernel.major == 6
    assert list(facts.unread) == ["lscpu"]
    assert "unread.lscpu" in facts.to_json()


@pytest.mark.parametrize("output", [b"", b"/bin/false\n", f"{MARK} lscpu\nx\n".encode()])
def test_output_without_its_end_is_an_error(output: bytes) -> None:
    with pytest.raises(CommandError, match="did not print all"):
        parse_facts(FACTS, MARK, output)


async def test_all_facts_come_over_ssh_in_one_command(session: SshSession, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[Command] = []
    run = session.run

    async def counting(command: Command, *, max_output_bytes: int = 1 << 20) -> CommandResult:
        ran.append(command)
        return await run(command, max_output_bytes=max_output_bytes)

    monkeypatch.setattr(session, "run", counting)
    facts = await collect(session)
    assert len(ran) == 1
    assert facts.cpu
    assert facts.cpu.architecture == os.uname().machine
    assert facts.access
    assert facts.access.boot_id


MEMINFO = "MemTotal:       32617276 kB\nMemFree:         1000000 kB\nHugePages_Total:       0\n"
RELEASE = 'PRETTY_NAME="openEuler 20.03 (LTS)"\nNAME="openEuler"\nID="openEuler"\nHOME_URL="https://openeuler.org/"\n'
UNAME = "Linux arm 4.19.90-2003.4 #1 SMP Mon Mar 23 19:10:41 UTC 2020 aarch64 aarch64 aarch64 GNU/Linux\n"


@pytest.mark.parametrize("kind", ["text", "json"])
def test_a_machine_is_read_from_what_a_few_commands_printed(kind: str) -> None:
    name = {"text": "lscpu/seed-arm64.", "json": "lscpu/x86-vm-json."}[kind]
    processors = next(case.raw.decode() for case in EVERY_CASE if case.name.startswith(name.rstrip(".")))
    profile = read_machine(f"{processors}\n{UNAME}{RELEASE}{MEMINFO}").profile()
    alone = read_machine(processors).profile()
    assert profile == alone | {
        "kernel.machine": "aarch64",
        "kernel.name": "Linux",
        "kernel.release": "4.19.90-2003.4",
        "kernel.version": "#1 SMP Mon Mar 23 19:10:41 UTC 2020",
        "memory.total_bytes": str(32617276 * 1024),
        "memory.hugepages_total": "0",
        "os.id": "openEuler",
        "os.name": "openEuler 20.03 (LTS)",
    }


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(damaged([MEMINFO + RELEASE + UNAME + case.text for case in cases("lscpu")]))
def test_a_description_of_no_machine_is_a_parse_error_and_nothing_else(text: str) -> None:
    with contextlib.suppress(ParseError):
        assert read_machine(text).profile()
