"""A dry run on the hosts: connect, read, and make the plan with the exact commands. Runs in workers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from django.conf import settings
from django.db.models import Prefetch

from agents.base.errors import MISTAKE_HINT, AgentError
from agents.events import Role
from agents.plan import Plan, build_plan
from agents.recordings.tools import insist_on_recorders
from agents.remote.ssh import connect
from agents.running.profiler_files import insist_on_profilers
from agents.running.step_programs import insist_on_step_programs
from agents.running.tuning import MEMBER
from agents.spec import Part, RunSpec
from agents.steps import is_host_step
from agents.steps.base.step import HostStep, State, StepContext
from agents.system import LOADED
from experiments.models import DryRun, Host, Run
from experiments.registry.hosts.host_keys import connect_args
from experiments.registry.hosts.machines import sisters_of

logger = logging.getLogger(__name__)


def perform_dry_run(dry_run_id: int) -> None:
    """Read all hosts and store the plan, or why it cannot be made. Runs in workers."""
    dry_run = (
        DryRun.objects.select_related("sut__jump", "sut__leased_by", "sut__site", "drivers")
        .prefetch_related(Prefetch("drivers__hosts", Host.objects.select_related("jump", "leased_by", "site")))
        .filter(pk=dry_run_id, state="pending")
        .first()
    )
    if dry_run is None:
        return
    drivers, members = dry_run.drivers.in_order, dry_run.drivers.members
    if busy := _measured(dry_run.sut, *dry_run.drivers.everyone):
        dry_run.state, dry_run.message = DryRun.State.FAILED, busy
        dry_run.hint = "Ask again when it has ended. A run that is launched now waits by itself, and looks first, too."
        dry_run.save(update_fields=["state", "message", "hint"])
        return
    try:
        spec = RunSpec.model_validate(dry_run.spec)
        plan = asyncio.run(_plan(spec, {LOADED: dry_run.sut, **members}, drivers))
    except AgentError as error:
        dry_run.state, dry_run.message, dry_run.hint = DryRun.State.FAILED, error.message, error.hint
    except Exception:  # nobody would ever see it: the page waits for the row
        logger.exception("dry run %s", dry_run.pk)
        dry_run.state, dry_run.message = DryRun.State.FAILED, "BenchHub made a mistake in looking at the hosts."
        dry_run.hint = MISTAKE_HINT
    else:
        dry_run.state, dry_run.plan = DryRun.State.READY, asdict(plan)
    dry_run.save(update_fields=["state", "message", "hint", "plan"])


async def _plan(spec: RunSpec, servers: Mapping[Role, Host], driver_hosts: Sequence[Host]) -> Plan:
    found: dict[int, State] = {}
    for part in spec.parts:
        found |= await _read(spec, part, servers[part.role])
    for driver_host in driver_hosts:
        driver = await connect(*connect_args(driver_host))
        try:
            version = await driver.run(spec.workload.driver.version_command())
            version.check(f"Looking for {spec.workload.driver.kind} on {driver_host.name}", by_author=True)
            await insist_on_recorders(driver, spec.workload.recorders)
        finally:
            await driver.close()
    return build_plan(spec, found=found)


async def _read(spec: RunSpec, part: Part, host: Host) -> dict[int, State]:
    """What the steps for a server find on its host, by their places; CommandError when it has no such server."""
    found: dict[int, State] = {}
    context = StepContext(instance="/nonexistent")
    session = await connect(*connect_args(host))
    try:
        version = await session.run(part.server.version_command())
        version.check(f"Looking for {part.server.kind} on {host.name}", by_author=True)
        await insist_on_recorders(session, spec.workload.recorders)
        await insist_on_step_programs(session, part.steps)
        await insist_on_profilers(session, part, settings.BENCHHUB_PROFILERS)
        for index, step in enumerate(part.steps, start=part.place * MEMBER + 1):
            if is_host_step(step) and _readable(step):
                probe = step.probe(context)
                result = await session.run(probe, max_output_bytes=4 << 20)
                read = result.check(f"Reading: {step.title()}", by_author=probe.by_author)
                found[index] = step.parse(read.stdout)
    finally:
        await session.close()
    return found


def _measured(*hosts: Host) -> str:
    """Why these hosts must not be looked at now: a login beside a measurement is load of our own."""
    sisters = sisters_of(hosts)
    for host in hosts:
        run = next((one.leased_by for one in (host, *sisters.of(host.pk)) if one.leased_by is not None), None)
        if run is not None and run.state in (Run.State.WARMING_UP, Run.State.MEASURING):
            whose = f"run #{run.number}" if run.team_id == host.team_id else "a run of another team"
            return f"{host.name} is being measured by {whose}, and a look at it would change the figures."
    return ""


def _readable(step: HostStep) -> bool:
    """Files of the instance do not exist before the run makes it."""
    path = getattr(step, "path", None)
    return step.shown_in_dry_run and (path is None or str(path).startswith("/"))
