"""Server and load tool of one host: CPU sets that overlap are refused before anything is queued."""

from __future__ import annotations

from collections.abc import Sequence

from agents.base.cpuset import format_cpus, parse_cpus
from agents.running.preparation import server_cpus
from agents.spec import RunSpec
from experiments.models import Host
from experiments.registry.errors import RequestError


def shared_cpus(spec: RunSpec, sut: Host) -> tuple[int, ...]:
    """The CPUs that server and load tool would share if both ran on the SUT; nothing else can be done with one CPU.

    Without a CPU set of its own each has all that were online when the host was last seen.
    """
    online = set(parse_cpus(sut.profile.facts.get("cpu.online", ""))) if sut.profile is not None else set()
    server = set(parse_cpus(server_cpus(spec))) or online
    tool = set(parse_cpus(spec.workload.cpus)) or online
    return () if len(online) == 1 else tuple(sorted(server & tool))


def check_cpu_sets(spec: RunSpec, sut: Host, drivers: Sequence[Host]) -> None:
    """RequestError (field `workload.cpus`) when the SUT is a driver host as well and the two would share a CPU.

    Two hosts that turn out to be one machine are refused by the run itself, which sees it.
    """
    if all(host.pk != sut.pk for host in drivers):
        return
    if shared := shared_cpus(spec, sut):
        raise RequestError(
            f"Server and load tool would share CPU {format_cpus(shared)} of {sut.name}; give the application "
            "and the workload CPU sets that do not overlap.",
            field="workload.cpus",
        )
