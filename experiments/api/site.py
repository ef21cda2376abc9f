"""The door of a site's workers. Only a token with the scope `work` opens it, and it shows that site's runs alone."""

from __future__ import annotations

import asyncio
import hashlib
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import connection
from django.http import HttpRequest
from ninja import Router
from ninja.params.functions import Query
from pydantic import FiniteFloat, TypeAdapter, ValidationError

from agents.base.errors import FenceError, KeepError, ParseError
from agents.events import from_json
from agents.facts.access import Access
from agents.profiles.base.taken import TakenProfile
from agents.running.canary_checks import CanaryReading
from agents.site.wire import (
    AGE,
    DAMAGED,
    GAP,
    MOST_BATCH_BYTES,
    OLD_FENCE,
    PROTOCOL,
    Admitted,
    Claim,
    ClaimAsked,
    Clock,
    End,
    HostSeen,
    HostsShown,
    Kept,
    Leftovers,
    PlanRead,
    Readings,
    SiteShown,
    Stored,
)
from experiments.api.plumbing.auth import WORK, caller_of
from experiments.models import Run, Site, Team
from experiments.registry.database_clock import database_now
from experiments.registry.errors import Conflict, RequestError
from experiments.registry.runs.file_store import most_bytes
from experiments.running.executing.older_database import note_leftovers
from experiments.running.executing.recorder import EventsMissing, Recorder, Told
from experiments.running.pulling import recording
from experiments.running.pulling.checks import host_seen
from experiments.running.pulling.claims import claim
from experiments.running.pulling.dry_runs import plan_read
from experiments.running.queue.leases import look_over

router = Router(auth=WORK, tags=["site"])

LOOK_EVERY_S, LOOK_OVER_EVERY_S = 0.5, 5.0
PIECE_BYTES = 1 << 20
MAX_NAME = 255
_SECONDS: TypeAdapter[float] = TypeAdapter(FiniteFloat)
NO_FILE, NOTHING = Kept(file=""), Claim()

T = TypeVar("T")


@router.get("", response=SiteShown, include_in_schema=False)
def show_site(request: HttpRequest) -> SiteShown:
    """Which site and team the token is for."""
    team, site = _place(request)
    return SiteShown(site=site.name, team=team.slug, protocol=PROTOCOL, version=settings.VERSION)


@router.get("/clock", response=Clock, include_in_schema=False)
def read_clock(request: HttpRequest) -> Clock:
    """The clock by which runs are timed."""
    return Clock(unix_s=database_now().timestamp())


@router.post("/claims", response=Claim, include_in_schema=False)
async def claim_run(request: HttpRequest, payload: ClaimAsked) -> Claim:
    """The next run for this worker, as soon as there is one; null after `wait_s`."""
    _insist_on_same_version(payload)
    team, site = await sync_to_async(_place)(request)
    token_id = caller_of(request).token_id
    wait_s = min(payload.wait_s, settings.BENCHHUB_LEASE_S / 2)  # no lease of what it holds ends meanwhile
    until_s = time.monotonic() + wait_s
    if payload.holds:
        await sync_to_async(_looked)(lambda: recording.hold(team, site, payload.holds))
    over_s = 0.0
    while True:
        if time.monotonic() >= over_s:  # where beat stands still, nobody else does it at a site of such workers
            await sync_to_async(_looked)(look_over)
            over_s = time.monotonic() + LOOK_OVER_EVERY_S
        given = await sync_to_async(_looked)(lambda: claim(team, site, token_id, payload))
        left_s = until_s - time.monotonic()
        if given != NOTHING or left_s <= 0:
            return given
        await asyncio.sleep(min(LOOK_EVERY_S, left_s))


@router.post("/runs/{int:run_id}/events", response=Stored, include_in_schema=False)
def add_events(request: HttpRequest, run_id: int, fence: int, first: int = Query(ge=1), left: bool = False) -> Stored:
    """A batch of events, one as JSON a line; `first` is the number of the first. Repeating it changes nothing.

    Beside its fields an event may have `age_s`: it happened so long ago. `left`: the worker does not work on the run
    any more, so that this holds no lease.
    """
    run = _run(request, run_id)
    body = request.read(MOST_BATCH_BYTES + 1)
    if len(body) > MOST_BATCH_BYTES:
        raise RequestError(f"A batch has at most {MOST_BATCH_BYTES:,} bytes.", field="events")
    events = [_told(line) for line in body.split(b"\n") if line]
    with _fenced():
        try:
            return recording.store_events(run, fence, first, events, left=left)
        except EventsMissing as error:
            raise Conflict(f"Stored are the events up to {error.last_seq}.", field=GAP) from error


@router.post("/runs/{int:run_id}/lease", response=Stored, include_in_schema=False)
def hold_lease(request: HttpRequest, run_id: int, fence: int) -> Stored:
    """Hold the run for another while; the answer says whether a person asked for its end."""
    team, site = _place(request)
    run = recording.run_of(team, site, run_id)
    with _fenced():
        return recording.beat(run, site, fence)


@router.post("/runs/{int:run_id}/admit", response=Admitted, include_in_schema=False)
def admit_run(request: HttpRequest, run_id: int, payload: HostsShown, fence: int) -> Admitted:
    """Which machines the hosts are; the answer says whether the run has to wait for one of them."""
    run = _run(request, run_id)
    access = TypeAdapter(Access)
    try:
        shown = {role: access.validate_python(fields) for role, fields in payload.shown.items()}
    except ValidationError as error:
        raise RequestError("This is not what a host shows of itself.", field="shown") from error
    with _fenced():
        return recording.admit_hosts(run, fence, shown)


@router.post("/runs/{int:run_id}/leftovers", response=Kept, include_in_schema=False)
def tell_leftovers(request: HttpRequest, run_id: int, payload: Leftovers, fence: int) -> Kept:
    """What other runs had left on a host, once it was put back."""
    run = _run(request, run_id)
    with _fenced():
        recording.insist_on_fence(run, fence)
        note_leftovers(run, payload.role, tuple(payload.found))
    return NO_FILE


@router.post("/runs/{int:run_id}/readings", response=Kept, include_in_schema=False)
def add_readings(request: HttpRequest, run_id: int, payload: Readings, fence: int) -> Kept:
    """The checks of the run's hosts."""
    run = _run(request, run_id)
    readings = [CanaryReading(**one.model_dump()) for one in payload.readings]
    with _fenced():
        recording.keep_readings(run, fence, readings)
    return NO_FILE


@router.put("/runs/{int:run_id}/files", response=Kept, include_in_schema=False)
def put_file(
    request: HttpRequest,
    run_id: int,
    fence: int,
    name: str = Query(min_length=1, max_length=MAX_NAME),
    media_type: str = Query(min_length=1, max_length=100),
    sha256: str = Query(pattern="^[0-9a-f]{64}$"),
) -> Kept:
    """A file of the run, as it is; the same name again replaces it."""
    run = _run(request, run_id)
    if not name.isprintable() or "/" in name:
        raise RequestError("A file's name is one word without slashes.", field="file")
    with _fenced(), tempfile.NamedTemporaryFile(prefix="benchhub-site-") as whole:
        recording.insist_on_fence(run, fence)  # before anything is read
        digest, size = hashlib.sha256(), 0
        while piece := request.read(PIECE_BYTES):
            size += len(piece)
            if size > most_bytes():
                raise RequestError(f"A file of a run has at most {most_bytes():,} bytes.", field="file")
            digest.update(piece)
            whole.write(piece)
        whole.flush()
        if digest.hexdigest() != sha256:
            raise Conflict("The file has arrived damaged; send it again.", field=DAMAGED)
        try:
            Recorder(run.pk, fence).keep_file(name, Path(whole.name), media_type)
        except KeepError as error:
            raise RequestError(error.message, field="file") from error
    return Kept(file=name)


@router.put("/runs/{int:run_id}/profiles", response=Kept, include_in_schema=False)
def put_profile(request: HttpRequest, run_id: int, fence: int, taken: str) -> Kept:
    """A profile of the run, as it is; `taken` says how, as JSON."""
    run = _run(request, run_id)
    try:
        how = TypeAdapter(TakenProfile).validate_json(taken)
    except ValidationError as error:
        raise RequestError("This does not say how a profile was taken.", field="taken") from error
    content = request.read(most_bytes() + 1)
    if len(content) > most_bytes():
        raise RequestError(f"A profile has at most {most_bytes():,} bytes.", field="profile")
    with _fenced():
        try:
            return Kept(file=Recorder(run.pk, fence).keep_profile(how, content))
        except ParseError as error:
            raise RequestError(error.message, field="profile") from error


@router.post("/runs/{int:run_id}/end", response=Kept, include_in_schema=False)
def end_run(request: HttpRequest, run_id: int, payload: End, fence: int) -> Kept:
    """The worker's last word on the run. Safe to repeat."""
    run = _run(request, run_id)
    with _fenced():
        recording.end_work(run, fence, payload)
    return NO_FILE


@router.post("/hosts/{int:host_id}/seen", response=Kept, include_in_schema=False)
def tell_host(request: HttpRequest, host_id: int, payload: HostSeen) -> Kept:
    """What a look at a host brought, when its connection was to be tested."""
    host_seen(*_place(request), host_id, payload)
    return NO_FILE


@router.post("/dry-runs/{int:dry_run_id}/plan", response=Kept, include_in_schema=False)
def tell_plan(request: HttpRequest, dry_run_id: int, payload: PlanRead) -> Kept:
    """The plan of a run that is not made, with what its hosts say."""
    plan_read(*_place(request), dry_run_id, payload)
    return NO_FILE


def _insist_on_same_version(asked: ClaimAsked) -> None:
    """Conflict says what to install. Only of claims: whoever has runs of before brings them to their end."""
    if (asked.protocol, asked.version) == (PROTOCOL, settings.VERSION):
        return
    theirs = f"of version {asked.version}" if asked.version else "older"
    if asked.version == settings.VERSION:
        theirs = "another build of it"
    raise Conflict(
        f"The centre is BenchHub {settings.VERSION}, and this worker is {theirs}: install {settings.VERSION} at the "
        "site and start the worker again. Until then it is given nothing new; the runs that it has go on.",
        field="version",
    )


def _place(request: HttpRequest) -> tuple[Team, Site]:
    caller = caller_of(request)
    return caller.member.team, Site.objects.get(pk=caller.site_id or 0)


def _run(request: HttpRequest, run_id: int) -> Run:
    return recording.run_of(*_place(request), run_id)


def _told(line: bytes) -> Told:
    try:
        data = json.loads(line)
        if not isinstance(data, dict):
            raise ValueError("no event")
        age_s = _SECONDS.validate_python(data.pop(AGE, 0.0))
        return Told(from_json(data), age_s)
    except ValueError as error:
        raise RequestError("There is an event that this BenchHub does not know.", field="events") from error


@contextmanager
def _fenced() -> Iterator[None]:
    try:
        yield
    except FenceError as error:
        raise Conflict(error.message, field=OLD_FENCE) from error


def _looked(look: Callable[[], T]) -> T:
    try:
        return look()
    finally:
        if not connection.in_atomic_block:
            connection.close()  # many workers may wait at a time, and PostgreSQL's connections are few
