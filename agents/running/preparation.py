"""What a run must know of its hosts before it changes anything."""

from __future__ import annotations

import time
from collections.abc import Callable

from agents.base.command import Command, script
from agents.base.cpuset import format_cpus, parse_cpus
from agents.base.errors import HostError, PlanError
from agents.base.process_start import Launch
from agents.base.session import Session
from agents.events import FactsCollected, Role
from agents.facts import collect
from agents.record import Record
from agents.recordings.tools import insist_on_recorders
from agents.remote.fencing import FencedSession, fence_directory
from agents.running.disk_room import Need, parse_room, room_command, shortage
from agents.spec import RunSpec
from agents.steps.base.step import LaunchStep

NEEDED_BYTES, NEEDED_FILES = 32 << 20, 2000
"""What a run writes in the login's home for an instance of the server, with some to spare: it and its logs, outputs."""

# The last thing that is asked of a host: one that cannot take part keeps no trace of the run.
_DIRECTORY = """
umask 077
mkdir -p -- "$HOME/.benchhub/runs/$1/files" "$HOME/.benchhub/runs/$1/jobs" || exit 1
cd -- "$HOME/.benchhub/runs/$1" && pwd -P
date +%s.%N
"""


async def look_at_host(
    session: Session, role: Role, spec: RunSpec, run_key: str, hold: Callable[[str], FencedSession]
) -> FactsCollected:
    """The host's facts, the version of what it must run, and the run's own directory on it (made, empty).

    `hold` gives the host behind the fence of that directory.
    PlanError when the tool, the server or a recorder is missing, with the words of the version command. FenceError when
    a newer holder has been there: a worker that slept must not leave a directory behind that nobody knows of.
    """
    tool_version = await _version(session, role, spec)
    await insist_on_recorders(session, spec.workload.recorders)
    home = await _home_with_room(session, spec.application.server.count)
    holder = hold(fence_directory(f"{home}/.benchhub/runs/{run_key}"))
    facts = await collect(session)
    access = facts.access
    asked_s = time.time()
    result = await holder.mutate(script(_DIRECTORY, run_key))
    answered_s = time.time()
    directory, _, clock = result.check(f"Making the run's directory on {session.host}").text.strip().partition("\n")
    return FactsCollected(
        role=role,
        digest=facts.digest(),
        profile=facts.profile(),
        directory=directory,
        boot_id=(access.boot_id if access else None) or "",
        clock_offset_s=_clock_offset_s(clock, asked_s, answered_s),
        tool_version=tool_version,
        clock_midpoint_s=_clock_midpoint_s(clock, asked_s, answered_s),
        clock_round_trip_s=round(answered_s - asked_s, 4),
    )


async def _home_with_room(session: Session, instances: int) -> str:
    """The home directory. HostError when its disk is too full: told before anything is changed, not in the middle."""
    home = (await session.run(script("cd && pwd -P"))).check(f"Finding the home directory on {session.host}")
    directories = (home.text.strip(),)
    found = parse_room(
        (await session.run(room_command(directories))).check("Reading the free space").stdout, directories
    )
    needed = (Need(directories[0], instances * NEEDED_BYTES, instances * NEEDED_FILES),)
    if (missing := shortage(session.host, found, needed)) is not None:
        raise HostError(missing, hint="Make room there, then launch the run again.")
    return directories[0]


def boot_id_command() -> Command:
    """Prints what a restart of the host changes."""
    return Command(("cat", "/proc/sys/kernel/random/boot_id"))


def insist_same_boot(facts: FactsCollected, host: str, boot_id: str | None) -> None:
    """HostError when the host was restarted since its facts were read; an unknown `boot_id` tells nothing."""
    if boot_id and facts.boot_id and boot_id != facts.boot_id:
        raise HostError(
            f"{host} was restarted during the run.",
            hint="Settings and processes of the run were lost with it, so nothing was measured. Launch the run again.",
        )


def _clock_offset_s(clock: str, asked_s: float, answered_s: float) -> float | None:
    """How far the host's clock is off for certain: what the round trip could explain is not held against it."""
    try:
        host_s = float(clock)
    except ValueError:
        return None  # its date knows no fractions of a second
    return max(0.0, host_s - answered_s) or min(0.0, host_s - asked_s)


def _clock_midpoint_s(clock: str, asked_s: float, answered_s: float) -> float | None:
    """The best estimate of how far the host's clock is off: that it was read half way between question and answer."""
    try:
        return round(float(clock) - (asked_s + answered_s) / 2, 4)
    except ValueError:
        return None


async def _version(session: Session, role: Role, spec: RunSpec) -> str:
    what = spec.application.server if role == "sut" else spec.workload.driver
    result = await session.run(what.version_command())
    if result.exit_status != 0:
        said = (result.stderr or result.stdout).decode("utf-8", "replace").strip().splitlines()
        raise PlanError(
            f"{session.host} cannot run {what.kind}: {said[-1] if said else 'no answer'}",
            hint="Install it on the host, or correct its path.",
        )
    return what.parse_version(result.stdout + result.stderr)


def check_cpus(spec: RunSpec, record: Record) -> None:
    """PlanError when server and load tool would share a CPU of one machine that has two or more.

    One machine = the same boot_id: two addresses of it do not make it two.
    """
    sut = record.facts["sut"]
    if not sut.boot_id or sut.boot_id not in {record.facts[role].boot_id for role in spec.driver_roles}:
        return
    online = set(parse_cpus(sut.profile.get("cpu.online", "")))
    server = set(parse_cpus(server_cpus(spec))) or online
    tool = set(parse_cpus(spec.workload.cpus)) or online
    shared = server & tool
    if len(online) > 1 and shared:
        raise PlanError(
            f"Server and load tool would share CPU {format_cpus(tuple(shared))} of one machine.",
            hint="Give the application and the workload CPU sets that do not overlap.",
        )


def check_drivers(spec: RunSpec, record: Record) -> None:
    """PlanError when the driver hosts have different versions of the load tool: their reports would not add up."""
    versions = {spec.hosts[role].name: record.facts[role].tool_version for role in spec.driver_roles}
    if len(set(versions.values())) > 1:
        found = ", ".join(f"{version} on {name}" for name, version in versions.items())
        raise PlanError(
            f"The driver hosts have different versions of {spec.workload.driver.kind}: {found}.",
            hint="Install the same version on each of them.",
        )


def server_cpus(spec: RunSpec) -> str:
    """The CPU set that the server will get: the recipe's affinity step wins over the application's own."""
    return launch_of(spec).cpus or spec.application.server.all_cpus


def launch_of(spec: RunSpec) -> Launch:
    """How the server is started: what the recipe's launch steps add up to."""
    launch = Launch()
    for step in spec.recipe.steps:
        if isinstance(step, LaunchStep):
            launch = step.contribute(launch)
    return launch
