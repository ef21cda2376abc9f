"""Server and load tool on one machine: CPU sets that overlap are refused before anything is queued."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from agents.base.cpuset import format_cpus, parse_cpus
from agents.running.preparation import server_cpus
from agents.spec import RunSpec
from agents.system import LOADED
from experiments.models import Host
from experiments.registry.errors import RequestError
from experiments.registry.hosts.machines import are_one


@dataclass(frozen=True)
class CpuSets:
    """A division of one machine's CPUs. `server` is "" where recipes or instances decide it for every variant."""

    server: str
    tool: str

    def __str__(self) -> str:
        """For people: `the application CPU 0-1 and the workload CPU 2-3`."""
        tool = f"the workload CPU {self.tool}"
        return f"the application CPU {self.server} and {tool}" if self.server else tool


def shared_cpus(spec: RunSpec, sut: Host) -> tuple[int, ...]:
    """The CPUs that server and load tool would share if both ran on the SUT; nothing else can be done with one CPU.

    Without a CPU set of its own each has all that were online when the host was last seen.
    """
    online = set(_online(sut))
    server = set(parse_cpus(server_cpus(spec))) or online
    tool = set(parse_cpus(spec.workload.cpus)) or online
    return () if len(online) == 1 else tuple(sorted(server & tool))


def check_cpu_sets(spec: RunSpec, sut: Host, drivers: Sequence[Host], members: Mapping[str, Host]) -> None:
    """RequestError (field `workload.cpus`) when a driver host is the SUT's machine and the two would share a CPU, and
    (field `members`) when a member of a system shares one with another or with a load tool.

    Two hosts that nobody has looked at yet are told to be one machine by the run itself, which sees it.
    """
    _check_members(spec, sut, drivers, members)
    same = next((host for host in drivers if are_one(sut, host)), None)
    if same is None or not (shared := shared_cpus(spec, sut)):
        return
    where = sut.name if same.pk == sut.pk else f"one machine ({sut.name} and {same.name})"
    proposal = propose([(spec, sut)])
    example = f" Free would be, for example: {proposal}." if proposal else ""
    raise RequestError(
        f"Server and load tool would share CPU {format_cpus(shared)} of {where}; give the application "
        f"and the workload CPU sets that do not overlap.{example}",
        field="workload.cpus",
    )


def _check_members(spec: RunSpec, sut: Host, drivers: Sequence[Host], members: Mapping[str, Host]) -> None:
    hosts = {LOADED: sut, **members}
    servers = [(part.title, part.role in members, server_cpus(part), hosts[part.role]) for part in spec.parts]
    tools = [("the load tool", False, spec.workload.cpus, driver) for driver in drivers]
    for (one, is_member, cpus, host), (other, other_is, other_cpus, other_host) in combinations([*servers, *tools], 2):
        if not (is_member or other_is) or not are_one(host, other_host):
            continue
        online = set(_online(host))
        shared = (set(parse_cpus(cpus)) or online) & (set(parse_cpus(other_cpus)) or online)
        if shared and len(online) != 1:
            raise RequestError(
                f"{one} and {other} would share CPU {format_cpus(tuple(shared))} of {host.name}; give each CPUs "
                "of its own (`cpus` of the server, of the workload), or another host.",
                field="members",
            )


def propose(setups: Iterable[tuple[RunSpec, Host]]) -> CpuSets | None:
    """CPU sets for variants whose load tool runs on the machine of the server. None when there are too few CPUs.

    A server that its recipe or its instances bind keeps its CPUs, and the tool gets the others. Else each gets one half
    of the cores, as all threads of a core are one's. Only CPUs that all of the machines have online are divided.
    """
    setups = list(setups)
    online = set.intersection(*(set(_online(sut)) for _, sut in setups)) if setups else set()
    kept = [cpus for spec, _ in setups if (cpus := kept_cpus(spec))]
    taken = {cpu for cpus in kept for cpu in parse_cpus(cpus)}
    cores = _cores(online, setups[0][1]) if setups else []
    free = [core for core in cores if not taken & set(core)]
    if not kept:
        half = (len(free) + 1) // 2
        server, tool = free[:half], free[half:]
    else:
        server, tool = [core for core in cores if taken & set(core)], free
    if not tool or not server:
        return None
    free_server = "" if len(kept) == len(setups) else _joined(server)
    return CpuSets(free_server, _joined(tool))


def kept_cpus(spec: RunSpec) -> str:
    """The CPUs of a server that no field of its application can change."""
    own = spec.application.server
    bound = server_cpus(spec)
    return bound if own.instance_cpus or bound != own.cpus else ""


def _cores(online: set[int], sut: Host) -> list[tuple[int, ...]]:
    """The CPUs by the core that they are threads of, in the order of their numbers."""
    facts: Mapping[str, str] = sut.profile.facts if sut.profile is not None else {}
    cores: dict[str, list[int]] = {}
    for cpu in sorted(online):
        cores.setdefault(facts.get(f"cpu.core_of.{cpu}", str(cpu)), []).append(cpu)
    return [tuple(core) for core in cores.values()]


def _joined(cores: Iterable[tuple[int, ...]]) -> str:
    return format_cpus([cpu for core in cores for cpu in core])


def _online(host: Host) -> tuple[int, ...]:
    return parse_cpus(host.profile.facts.get("cpu.online", "")) if host.profile is not None else ()
