"""The record of a run at the centre, for a worker that reaches it over HTTPS only."""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import json
import logging
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel

from agents.base.clock import RunClock
from agents.base.errors import FenceError, HostInUse, KeepError
from agents.base.installation import Installation
from agents.base.log_context import bound
from agents.base.session import Session
from agents.events import AnyEvent, Role, from_json
from agents.facts.access import Access
from agents.profiles.base.taken import TakenProfile
from agents.record import Record
from agents.remote.ssh import connect
from agents.running.canary_checks import CanaryReading
from agents.running.control import KeepReadings
from agents.site.delivery import Delivery
from agents.site.door import ANSWER_TIMEOUT_S, CONNECT_TIMEOUT_S, Door, NotOurs, RequestTooLarge, StoreLost, patiently
from agents.site.keys import Keys
from agents.site.spool import Spool
from agents.site.wire import (
    Admitted,
    Clock,
    End,
    Held,
    HostsShown,
    Kept,
    Leftovers,
    Reading,
    Readings,
    RunGiven,
    Stored,
)
from agents.spec import HostAddress, RunSpec
from agents.working.store import ClaimedRun, StoreAway, insist_on_key_of_launch

logger = logging.getLogger(__name__)

LAST_WORDS_S = 3.0

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")


def claimed(given: RunGiven, libraries: Path | None) -> ClaimedRun:
    """The run as the engine knows it. pydantic's ValidationError for a specification of a newer BenchHub."""
    return ClaimedRun(
        id=given.id,
        number=given.number,
        key=given.key,
        spec=RunSpec.model_validate(given.spec),
        fence=given.fence,
        attempts=given.attempts,
        heartbeat_s=given.heartbeat_s,
        patience_s=given.patience_s,
        deadman_s=given.deadman_s,
        max_file_bytes=given.max_file_bytes,
        installation=Installation(given.installation_id, given.installation_name),
        libraries=libraries,
    )


class HttpStore:
    """A `RunStore`. A centre that is away is waited for as long as a host would be; then the run is left."""

    def __init__(self, given: RunGiven, door: Door, keys: Keys, folder: Path) -> None:
        self._given, self._door, self._keys = given, door, keys
        spool = Spool(folder, given.id, given.fence, given.last_seq + 1)
        self._delivery = Delivery(door, given.id, given.fence, given.last_seq, spool, given.patience_s)
        self._heard_at_s = self._beat_at_s = time.monotonic()

    @property
    def held(self) -> Held | None:
        """What this store is of, for a claim; None when nothing beats here any more: somebody else is to take it up."""
        beats = time.monotonic() - self._beat_at_s < self._given.lease_s + CONNECT_TIMEOUT_S + ANSWER_TIMEOUT_S
        return Held(run=self._given.id, fence=self._given.fence) if beats else None

    async def clock(self) -> RunClock:
        return await self._patiently(lambda: RunClock.read(lambda: self._door.ask(Clock, "GET", "/clock").unix_s))

    async def record(self) -> Record:
        return Record.fold(from_json(event) for event in self._given.events)

    async def store(self, event: AnyEvent) -> None:
        await self._delivery.store(event)

    async def keep_file(self, name: str, content: bytes | Path, media_type: str) -> None:
        query = {"name": name, "media_type": media_type, "sha256": await asyncio.to_thread(_sha256, content)}
        await self._send(Kept, "PUT", "/files", content, query)

    async def keep_profile(self, taken: TakenProfile, content: bytes) -> str:
        kept = await self._send(Kept, "PUT", "/profiles", content, {"taken": json.dumps(dataclasses.asdict(taken))})
        return kept.file

    async def readings(self) -> KeepReadings | None:
        return self._keep_readings if self._given.checks_first else None

    async def admit(self, shown: Mapping[Role, Access]) -> None:
        told = HostsShown(shown={role: dataclasses.asdict(access) for role, access in shown.items()})
        admitted = await self._ask(Admitted, "/admit", told)
        if admitted.in_use:
            raise HostInUse(admitted.in_use, hint=admitted.hint)

    async def note_leftovers(self, role: Role, found: tuple[str, ...]) -> None:
        await self._ask(Kept, "/leftovers", Leftovers(role=role, found=list(found)))

    async def connect(self, address: HostAddress) -> Session:
        target = self._given.ways[address.name].plain()  # by the name that the host has by now, as is its key
        if self._given.work == "run":
            insist_on_key_of_launch(target.name, approved=target.host_key, at_launch=address.host_key)
        with bound(host=target.name):
            return await connect(target, self._keys.of(target.name))

    async def beat(self) -> bool:
        asked_s = self._beat_at_s = time.monotonic()
        try:
            stored = await asyncio.to_thread(self._request, Stored, "/lease", None)
        except StoreAway as error:
            if time.monotonic() - self._heard_at_s > self._given.patience_s:
                raise StoreLost(str(error)) from error
            raise
        self._heard_at_s = asked_s
        return stored.cancelled

    async def let_go(self) -> None:
        with suppress(TimeoutError, FenceError, StoreLost):  # readings that are on their way may still be told
            await asyncio.wait_for(self._delivery.flush(), LAST_WORDS_S)
        await self._end_now(End(how="let_go"))

    async def conclude(self, record: Record) -> None:
        await self._delivery.flush()  # the centre folds its own events: they are the same
        await self._ask(Kept, "/end", End(how="conclude"))

    async def restored(self) -> None:
        """The way back was taken once more, and its events say how that ended."""
        await self._delivery.flush()
        await self._ask(Kept, "/end", End(how="restored"))

    async def give_up(self, message: str, hint: str) -> None:
        await self._end_now(End(how="give_up", message=message, hint=hint))

    async def put_back(self) -> None:
        await self._end_now(End(how="put_back"))

    async def taken_over(self, refused: FenceError) -> None:
        logger.warning("run %s: another worker took over; this one stops: %s", self._given.id, refused)
        if isinstance(refused, NotOurs):
            return  # the centre would take it for the word of a host: somebody unknown works there
        await self._end_now(End(how="refused", message=refused.message, seen=refused.seen))

    async def close(self) -> Path | None:
        """Store nothing more from here. Returns the file of the events that could not be delivered."""
        return await self._delivery.close()

    async def _keep_readings(self, readings: tuple[CanaryReading, ...]) -> None:
        told = [Reading(**dataclasses.asdict(one)) for one in readings]
        await self._ask(Kept, "/readings", Readings(readings=told))

    async def _end_now(self, end: End) -> None:
        await asyncio.to_thread(self._request, Kept, "/end", end)

    async def _ask(self, shape: type[M], path: str, body: BaseModel) -> M:
        return await self._patiently(lambda: self._request(shape, path, body))

    async def _send(self, shape: type[M], method: str, path: str, content: bytes | Path, query: Mapping[str, str]) -> M:
        whole, fenced = f"/runs/{self._given.id}{path}", {**query, "fence": str(self._given.fence)}

        def once() -> M:
            try:
                return self._door.send(shape, method, whole, content, query=fenced)
            except RequestTooLarge as error:  # else it would be sent again and again while the hosts wait
                logger.warning("run %s: a file is not kept: %s", self._given.id, error)
                size_mb = (len(content) if isinstance(content, bytes) else content.stat().st_size) / 1e6
                raise KeepError(
                    f"A proxy between the site's worker and BenchHub takes no file of {size_mb:.3g} MB (HTTP 413).",
                    hint="An operator must let it take files as large as BenchHub does.",
                ) from error

        return await self._patiently(once)

    async def _patiently(self, action: Callable[[], T]) -> T:
        return await patiently(action, patience_s=self._given.patience_s)

    def _request(self, shape: type[M], path: str, body: BaseModel | None) -> M:
        query = {"fence": str(self._given.fence)}
        return self._door.ask(shape, "POST", f"/runs/{self._given.id}{path}", body, query=query)


def _sha256(content: bytes | Path) -> str:
    if isinstance(content, bytes):
        return hashlib.sha256(content).hexdigest()
    with content.open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()
