"""How a worker reaches a run's hosts, and PostgreSQL, when either may be away for a while."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import close_old_connections

from agents.base.errors import ConnectError
from agents.base.log_context import bound
from agents.base.session import Session
from agents.record import Record
from agents.remote.ssh import connect as ssh_connect
from agents.runner import Runner
from agents.running.control import Control, KeepReadings
from agents.spec import HostAddress, RunSpec
from experiments.models import Host, Run
from experiments.registry.connections import lent
from experiments.registry.errors import DATABASE_AWAY
from experiments.registry.hosts.driver_sets import hosts_by_role
from experiments.registry.hosts.host_keys import connect_args
from experiments.registry.hosts.installation import installation
from experiments.registry.runs.file_store import most_bytes
from experiments.running.executing.admission import admit
from experiments.running.executing.older_database import note_leftovers
from experiments.running.executing.recorder import Recorder

logger = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")


def run_key(run: Run) -> str:
    """The name of the run's directories. The time makes it unique for ever: a new database counts from 1 again."""
    return f"r{run.pk}-{int(run.queued_at.timestamp()):x}"


async def with_database(run: Run, action: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do it once the database answers: one that restarts is waited for, as nothing may happen on a host unrecorded."""
    pause_s = 0.2
    while True:
        try:
            return await sync_to_async(lent(action))(*args, **kwargs)
        except DATABASE_AWAY as error:
            logger.warning("run %s: the database is away (%s); waiting", run.pk, error)
            await sync_to_async(close_old_connections)()
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, 5.0)


async def runner_for(
    run: Run,
    recorder: Recorder,
    record: Record,
    *,
    cancelled: Callable[[], bool],
    patience_s: float,
    keep_readings: KeepReadings | None = None,
) -> Runner:
    """What works on the run's hosts under the recorder's fence; all that happens there goes through the recorder."""
    control = Control(
        installation=await with_database(run, installation),
        tell_leftovers=lambda role, found: with_database(run, note_leftovers, run, role, found),
        admit=lambda shown: with_database(run, admit, run, shown),
        connect=lambda address: connect_to(run, address),
        emit=lambda event: with_database(run, recorder.store, event),
        cancelled=cancelled,
        fence=recorder.fence,
        patience_s=patience_s,
        deadman_s=settings.BENCHHUB_DEADMAN_S,
        libraries=settings.BENCHHUB_PROFILERS,
        keep_profile=lambda taken, content: with_database(run, recorder.keep_profile, taken, content),
        keep_readings=keep_readings,
        max_file_bytes=most_bytes(),
        keep_file=lambda name, content, media: with_database(run, recorder.keep_file, name, content, media),
    )
    return Runner(run_key(run), RunSpec.model_validate(run.spec), record, control)


async def connect_to(run: Run, address: HostAddress) -> Session:
    """Log in to a host of the run. ConnectError, permanent, when its approved key is another one than at launch."""
    host = await with_database(run, _host_named, run, address.name)
    if host.host_key != address.host_key and run.state != Run.State.FINISHED:
        raise ConnectError(
            f"The approved host key of {host.name} is not the one that this run was launched with.",
            hint="Launch the run again if the new key is right.",
            permanent=True,
        )
    target, private_key = connect_args(host)
    with bound(host=host.name):
        return await ssh_connect(target, private_key)


def _host_named(run: Run, name: str) -> Host:
    """The host that the run's specification calls so, whatever it is called now."""
    spec = RunSpec.model_validate(run.spec)
    hosts = hosts_by_role(run)
    role = next(role for role, address in spec.hosts.items() if address.name == name)
    host: Host = Host.objects.select_related("jump").get(pk=hosts[role])
    return host
