"""A look at the hosts of a run that is not made: its plan with the exact commands. Nothing on them is changed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from agents.events import Role
from agents.plan import Plan, build_plan
from agents.recordings.tools import insist_on_recorders
from agents.remote.address import Address
from agents.remote.ssh import connect
from agents.running.profiler_files import insist_on_profilers
from agents.running.step_programs import insist_on_step_programs
from agents.running.tuning import MEMBER
from agents.spec import Part, RunSpec
from agents.steps import is_host_step
from agents.steps.base.step import HostStep, State, StepContext

Login = tuple[Address, str]
"""Where a host answers, and the private key to log in with."""

MOST_READ_BYTES = 4 << 20


async def read_plan(spec: RunSpec, logins: Mapping[Role, Login], libraries: Path | None) -> Plan:
    """The plan with what the hosts say. `logins` has each host of the run by its part; `libraries` are the profilers'.

    Raises AgentError for what cannot be reached, and for a server, tool or program that is missing there.
    """
    found: dict[int, State] = {}
    for part in spec.parts:
        found |= await _read(spec, part, logins[part.role], libraries)
    for role, driver in zip(spec.driver_roles, spec.drivers, strict=True):
        session = await connect(*logins[role])
        try:
            version = await session.run(spec.workload.driver.version_command())
            version.check(f"Looking for {spec.workload.driver.kind} on {driver.name}", by_author=True)
            await insist_on_recorders(session, spec.workload.recorders)
        finally:
            await session.close()
    return build_plan(spec, found=found)


async def _read(spec: RunSpec, part: Part, login: Login, libraries: Path | None) -> dict[int, State]:
    """What the steps for a server find on its host, by their places; CommandError when it has no such server."""
    found: dict[int, State] = {}
    context = StepContext(instance="/nonexistent")
    session = await connect(*login)
    try:
        version = await session.run(part.server.version_command())
        version.check(f"Looking for {part.server.kind} on {login[0].name}", by_author=True)
        await insist_on_recorders(session, spec.workload.recorders)
        await insist_on_step_programs(session, part.steps)
        await insist_on_profilers(session, part, libraries)
        for index, step in enumerate(part.steps, start=part.place * MEMBER + 1):
            if is_host_step(step) and _readable(step):
                probe = step.probe(context)
                result = await session.run(probe, max_output_bytes=MOST_READ_BYTES)
                read = result.check(f"Reading: {step.title()}", by_author=probe.by_author)
                found[index] = step.parse(read.stdout)
    finally:
        await session.close()
    return found


def _readable(step: HostStep) -> bool:
    """Files of the instance do not exist before the run makes it."""
    path = getattr(step, "path", None)
    return step.shown_in_dry_run and (path is None or str(path).startswith("/"))
