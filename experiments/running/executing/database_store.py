"""The record of a run in the database, for a worker that reaches it; it may be away for a while."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import ParamSpec, TypeVar

from asgiref.sync import sync_to_async
from django.db import close_old_connections

from agents.base.clock import RunClock
from agents.base.errors import FenceError
from agents.base.log_context import bound
from agents.base.session import Session
from agents.events import AnyEvent, Role
from agents.facts.access import Access
from agents.profiles.base.taken import TakenProfile
from agents.record import Record
from agents.remote.ssh import connect as ssh_connect
from agents.running.canary_checks import CanaryReading
from agents.running.control import KeepReadings
from agents.spec import HostAddress, RunSpec
from agents.working.store import StoreAway, insist_on_key_of_launch
from experiments.models import Host, Run
from experiments.registry.connections import lent
from experiments.registry.database_clock import database_clock
from experiments.registry.errors import DATABASE_AWAY
from experiments.registry.hosts import canaries
from experiments.registry.hosts.driver_sets import hosts_by_role
from experiments.registry.hosts.host_keys import connect_args
from experiments.registry.workers.outbox import hint
from experiments.running.ending.conclusion import conclude, give_up
from experiments.running.executing.admission import admit, put_back
from experiments.running.executing.newer_holder import stop_or_go_on_above
from experiments.running.executing.older_database import note_leftovers
from experiments.running.executing.recorder import Recorder

logger = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")


class DatabaseStore:
    """A `RunStore`. What waits does so until the database answers: one that restarts fails no run."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._recorder = Recorder(run.pk, run.fence)

    async def clock(self) -> RunClock:
        return await self._once_there(database_clock)

    async def record(self) -> Record:
        return await self._once_there(self._recorder.record)

    async def store(self, event: AnyEvent) -> None:
        await self._once_there(self._recorder.store, event)

    async def keep_file(self, name: str, content: bytes | Path, media_type: str) -> None:
        await self._once_there(self._recorder.keep_file, name, content, media_type)

    async def keep_profile(self, taken: TakenProfile, content: bytes) -> str:
        return await self._once_there(self._recorder.keep_profile, taken, content)

    async def readings(self) -> KeepReadings | None:
        return await self._once_there(self._canaries)

    async def admit(self, shown: Mapping[Role, Access]) -> None:
        await self._once_there(admit, self._run, shown)

    async def note_leftovers(self, role: Role, found: tuple[str, ...]) -> None:
        await self._once_there(note_leftovers, self._run, role, found)

    async def connect(self, address: HostAddress) -> Session:
        host = await self._once_there(_host_named, self._run, address.name)
        if self._run.state != Run.State.FINISHED:
            insist_on_key_of_launch(host.name, approved=host.host_key, at_launch=address.host_key)
        target, private_key = connect_args(host)
        with bound(host=host.name):
            return await ssh_connect(target, private_key)

    async def beat(self) -> bool:
        return await self._now(self._recorder.beat)

    async def let_go(self) -> None:
        await self._now(self._recorder.let_go)
        await self._now(hint, self._run.pk)

    async def conclude(self, record: Record) -> None:
        await self._once_there(conclude, self._run.pk, self._run.fence, record)

    async def give_up(self, message: str, hint: str) -> None:
        await self._now(give_up, self._run.pk, self._run.fence, message, hint)

    async def put_back(self) -> None:
        await self._now(put_back, self._run.pk, self._run.fence)

    async def taken_over(self, refused: FenceError) -> None:
        await self._now(stop_or_go_on_above, self._run, refused)

    async def _once_there(self, action: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        pause_s = 0.2
        while True:
            try:
                return await sync_to_async(lent(action))(*args, **kwargs)
            except DATABASE_AWAY as error:
                logger.warning("run %s: the database is away (%s); waiting", self._run.pk, error)
                await sync_to_async(close_old_connections)()
                await asyncio.sleep(pause_s)
                pause_s = min(pause_s * 2, 5.0)

    async def _now(self, action: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await sync_to_async(lent(action))(*args, **kwargs)
        except DATABASE_AWAY as error:
            await sync_to_async(close_old_connections)()
            raise StoreAway(f"the database is away: {error}") from error

    def _canaries(self) -> KeepReadings | None:
        run, hosts = self._run, hosts_by_role(self._run)
        if run.experiment is None or not canaries.are_due(run.experiment, hosts):
            return None

        async def keep(readings: tuple[CanaryReading, ...]) -> None:
            await self._once_there(canaries.keep_readings, readings, hosts, run.experiment)

        return keep


def _host_named(run: Run, name: str) -> Host:
    """The host that the run's specification calls so, whatever it is called now."""
    spec = RunSpec.model_validate(run.spec)
    hosts = hosts_by_role(run)
    role = next(role for role, address in spec.hosts.items() if address.name == name)
    host: Host = Host.objects.select_related("jump", "site").get(pk=hosts[role])
    return host
