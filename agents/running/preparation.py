"""What a run must know of its hosts before it changes anything."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import combinations
from pathlib import Path

from agents.base.clock import ahead_of_run_s, run_clock_s
from agents.base.command import Command, script
from agents.base.cpuset import format_cpus, parse_cpus
from agents.base.errors import AgentError, CommandError, ConnectError, HostError, PlanError
from agents.base.process_start import ProcessStart
from agents.base.session import Session
from agents.events import FactsCollected, Role
from agents.facts import access, collect
from agents.facts.access import Access
from agents.facts.host import collect_facts
from agents.record import Record
from agents.recordings.tools import insist_on_recorders
from agents.remote.claiming import Taken
from agents.remote.fencing import FencedSession
from agents.running.needs import insist_on_needs, missing_room
from agents.running.profiler_files import insist_on_profilers
from agents.running.step_programs import insist_on_step_programs
from agents.spec import Part, RunSpec
from agents.system import LOADED

_CLOCK = "date +%s.%N"

# Another part of the run may have the directory as well, on a host that is SUT and driver.
_FORGET = """
rm -f -- "$2" "$1/claim-$3"
for other in "$1"/claim-*; do [ ! -e "$other" ] || exit 0; done
rm -rf -- "$1"
"""


async def identify(session: Session) -> Access | None:
    """Which machine this is; None for a host that does not say. One small command, as somebody may measure there."""
    return (await collect_facts(session, {access.FACT.name: access.FACT})).access


async def look_at_host(
    session: Session,
    role: Role,
    spec: RunSpec,
    take: Callable[[], Awaitable[Taken]],
    hold: Callable[[Taken], FencedSession],
    libraries: Path | None = None,
) -> FactsCollected:
    """The host's facts, the version of what it must run, and the run's own directory on it (made, empty).

    `take` gets the machine for this run, and `hold` what is behind its fence from then on. A host that cannot take part
    keeps no trace of the run.
    PlanError when something that every run needs, the tool, the server, a recorder, a program of a step or what a
    profiler needs is missing, with the words of the version command. FenceError when a newer holder has been there: a
    worker that slept must not leave a directory behind that nobody knows of. OccupiedError when another installation of
    BenchHub does not leave the machine in time.
    """
    parts = {part.role: part for part in spec.parts}
    asks = any(role in part.asked_from for part in parts.values())
    home = await insist_on_needs(session, "driver" if asks else "all", spec.hosts[role].user)
    await _insist_on_room(session, home, parts.get(role, parts[LOADED]).server.count)
    taken = await take()
    try:
        return await _facts(session, role, spec, taken, libraries)
    except AgentError:
        with suppress(CommandError, ConnectError):
            await hold(taken).mutate(script(_FORGET, taken.directory, taken.claim, role))
        raise


async def _facts(session: Session, role: Role, spec: RunSpec, taken: Taken, libraries: Path | None) -> FactsCollected:
    tool_version = await _version(session, role, spec)
    await insist_on_recorders(session, spec.workload.recorders)
    for part in spec.parts:
        if part.role == role:
            await insist_on_step_programs(session, part.steps)
            await insist_on_profilers(session, part, libraries)
    facts = await collect(session)
    who = facts.access
    asked_s = run_clock_s()
    result = await session.run(script(_CLOCK))
    answered_s = run_clock_s()
    clock = result.check(f"Reading the clock of {session.host}").text.strip()
    return FactsCollected(
        role=role,
        digest=facts.digest(),
        profile=facts.profile(),
        directory=taken.directory,
        boot_id=(who.boot_id if who else None) or "",
        clock_offset_s=_clock_offset_s(clock, asked_s, answered_s),
        tool_version=tool_version,
        clock_midpoint_s=_clock_midpoint_s(clock, asked_s, answered_s),
        clock_round_trip_s=round(answered_s - asked_s, 4),
        claim=taken.claim,
    )


async def _insist_on_room(session: Session, home: str, instances: int) -> None:
    """HostError when the disk of the home is too full: told before anything is changed, not in the middle."""
    if (missing := await missing_room(session, home, instances)) is not None:
        raise HostError(missing, hint="Make room there, then launch the run again.")


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
    """How far the host's clock is off for certain."""
    try:
        return ahead_of_run_s(float(clock), asked_s, answered_s)
    except ValueError:
        return None  # its date knows no fractions of a second


def _clock_midpoint_s(clock: str, asked_s: float, answered_s: float) -> float | None:
    """The best estimate of how far the host's clock is off: that it was read half way between question and answer."""
    try:
        return round(float(clock) - (asked_s + answered_s) / 2, 4)
    except ValueError:
        return None


async def _version(session: Session, role: Role, spec: RunSpec) -> str:
    parts = {part.role: part.server for part in spec.parts}
    what = parts.get(role, spec.workload.driver)
    result = await session.run(what.version_command())
    if result.exit_status != 0:
        said = (result.stderr or result.stdout).decode("utf-8", "replace").strip().splitlines()
        raise PlanError(
            f"{session.host} cannot run {what.kind}: {said[-1] if said else 'no answer'}",
            hint="Install it on the host, or correct its path.",
        )
    return what.parse_version(result.stdout + result.stderr)


def check_cpus(spec: RunSpec, record: Record) -> None:
    """PlanError when two servers, or a server and the load tool, would share a CPU of one machine with two or more.

    One machine = the same boot_id: two addresses of it do not make it two.
    """
    users = [(part.role, _called(spec, part), server_cpus(part)) for part in spec.parts]
    users += [(role, "load tool", spec.workload.cpus) for role in spec.driver_roles]
    for (one_role, one, one_cpus), (other_role, other, other_cpus) in combinations(users, 2):
        facts, others = record.facts[one_role], record.facts[other_role]
        if one == other or not facts.boot_id or facts.boot_id != others.boot_id:
            continue
        online = set(parse_cpus(facts.profile.get("cpu.online", "")))
        shared = (set(parse_cpus(one_cpus)) or online) & (set(parse_cpus(other_cpus)) or online)
        if len(online) > 1 and shared:
            raise PlanError(
                f"{one[0].upper()}{one[1:]} and {other} would share CPU {format_cpus(tuple(shared))} of one machine.",
                hint="Give the application and the workload CPU sets that do not overlap.",
            )


def _called(spec: RunSpec, part: Part) -> str:
    return part.title if spec.members else "server"


def check_drivers(spec: RunSpec, record: Record) -> None:
    """PlanError when the driver hosts have different versions of the load tool: their reports would not add up."""
    versions = {spec.hosts[role].name: record.facts[role].tool_version for role in spec.driver_roles}
    if len(set(versions.values())) > 1:
        found = ", ".join(f"{version} on {name}" for name, version in versions.items())
        raise PlanError(
            f"The driver hosts have different versions of {spec.workload.driver.kind}: {found}.",
            hint="Install the same version on each of them.",
        )


def server_cpus(of: RunSpec | Part) -> str:
    """The CPU set that the (loaded) server will get: the recipe's affinity step wins over the application's own."""
    part = of.part(LOADED) if isinstance(of, RunSpec) else of
    return launch_of(part).cpus or part.server.all_cpus


def launch_of(of: RunSpec | Part) -> ProcessStart:
    """How the (loaded) server is started: what the recipe's steps for it add up to."""
    launch = ProcessStart()
    for step in of.recipe.steps if isinstance(of, RunSpec) else of.steps:
        launch = step.contribute(launch)
    return launch
