"""Executes claimed runs in a worker: holds the lease, feeds the recorder, lets the runner work."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import threading
import time
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from asgiref.sync import async_to_sync, sync_to_async
from django.conf import settings
from django.db import InterfaceError, OperationalError, close_old_connections

from agents.errors import MISTAKE_HINT, ConnectError, FenceError
from agents.record import Record
from agents.runner import Control, Runner
from agents.session import Session
from agents.spec import HostAddress, RunSpec
from agents.ssh import connect as ssh_connect
from experiments.conclusion import conclude, give_up
from experiments.dispatch import claim_next
from experiments.host_keys import connect_args
from experiments.models import Host, Run
from experiments.outbox import hint
from experiments.recorder import Recorder

logger = logging.getLogger(__name__)

handing_over = threading.Event()
"""Set when this worker process is told to stop: its runs are let go at once, and another worker adopts them."""

HAND_OVER_LOOK_S = 0.25
MAX_ATTEMPTS = 50
"""Workers that may begin with one run: one that kills each of them must come to an end, too."""
DATABASE_AWAY = (OperationalError, InterfaceError)

P = ParamSpec("P")
T = TypeVar("T")


def worker_name() -> str:
    return f"{socket.gethostname()}:{os.getpid()}:{threading.get_native_id()}"


def execute_next() -> bool:
    """Claim and execute one run, to its end or until it is handed over. False when there was none to claim."""
    if handing_over.is_set():
        return False
    run = claim_next(worker_name())
    if run is None:
        return False
    logger.info("run %s (#%s): claimed with fence %s, attempt %s", run.pk, run.number, run.fence, run.attempts)
    if run.attempts > MAX_ATTEMPTS:
        give_up(
            run.pk, run.fence, f"{MAX_ATTEMPTS} workers began with this run and none came to its end.", MISTAKE_HINT
        )
        return True
    try:
        async_to_sync(_execute)(run)
    except FenceError as error:
        _taken_over(run, error)
    except _HandedOver:
        logger.info("run %s: handed over", run.pk)
        hint(run.pk)
    except DATABASE_AWAY as error:
        logger.warning("run %s: the database is away (%s); the run is adopted when its lease is over", run.pk, error)
        return False
    except Exception:
        logger.exception("run %s: given up, in a way that nobody foresaw", run.pk)
        give_up(run.pk, run.fence, "BenchHub made a mistake and could not carry on with this run.", MISTAKE_HINT)
    return True


def _taken_over(run: Run, error: FenceError) -> None:
    """Stop; but when this database knows of no newer holder, the host is used by somebody whom it does not know."""
    if Run.objects.filter(pk=run.pk, fence=run.fence).exclude(state=Run.State.FINISHED).exists():
        give_up(
            run.pk,
            run.fence,
            error.message,
            "Another BenchHub uses this host, or the database is another one than before. When nobody else uses it, "
            "remove the directory .benchhub/fence in the home of the login there.",
        )
        return
    logger.warning("run %s: another worker took over; this one stops", run.pk)


class _HandedOver(Exception):
    pass


async def _execute(run: Run) -> None:
    recorder = Recorder(run.pk, run.fence)
    record: Record = await _with_database(run, recorder.record)
    state = _Heart(recorder)
    runner = Runner(
        # The time makes the key unique for ever: a new database counts its runs from 1 again, on the same hosts.
        f"r{run.pk}-{int(run.queued_at.timestamp()):x}",
        RunSpec.model_validate(run.spec),
        record,
        Control(
            connect=lambda address: _connect(run, address),
            emit=lambda event: _with_database(run, recorder.store, event),
            cancelled=lambda: state.cancelled,
            fence=run.fence,
            patience_s=settings.BENCHHUB_PATIENCE_S,
        ),
    )
    work = asyncio.create_task(runner.run())
    heart = asyncio.create_task(state.beat())
    done, _ = await asyncio.wait({work, heart}, return_when=asyncio.FIRST_COMPLETED)
    if heart in done:  # it ends only when the run is to be left
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        if isinstance(heart.exception(), _HandedOver):
            await sync_to_async(recorder.let_go)()
        heart.result()
    heart.cancel()
    await asyncio.gather(heart, return_exceptions=True)
    await work
    await _with_database(run, conclude, run.pk, run.fence, record)


class _Heart:
    """Renews the lease and learns from the same look whether a person cancelled the run."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self.cancelled = False

    async def beat(self) -> None:
        """Beats until the run is to be handed over (raises _HandedOver) or is someone else's (raises FenceError)."""
        while True:
            try:
                self.cancelled = await sync_to_async(self._recorder.beat)() or self.cancelled
            except DATABASE_AWAY as error:
                logger.warning("run %s: no heartbeat (%s); the lease still runs", self._recorder.run_id, error)
                await sync_to_async(close_old_connections)()
            next_s = time.monotonic() + settings.BENCHHUB_HEARTBEAT_S
            while (left_s := next_s - time.monotonic()) > 0:
                if handing_over.is_set():
                    raise _HandedOver
                await asyncio.sleep(min(left_s, HAND_OVER_LOOK_S))


async def _with_database(run: Run, action: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do it once the database answers: one that restarts is waited for, as nothing may happen on a host unrecorded."""
    pause_s = 0.2
    while True:
        try:
            return await sync_to_async(action)(*args, **kwargs)
        except DATABASE_AWAY as error:
            logger.warning("run %s: the database is away (%s); waiting", run.pk, error)
            await sync_to_async(close_old_connections)()
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, 5.0)


async def _connect(run: Run, address: HostAddress) -> Session:
    host_id = run.sut_id if run.spec and address.name == run.spec["sut"]["name"] else run.driver_id
    host = await _with_database(run, Host.objects.select_related("jump").get, pk=host_id)
    if host.host_key != address.host_key:
        raise ConnectError(
            f"The approved host key of {host.name} is not the one that this run was launched with.",
            hint="Launch the run again if the new key is right.",
            permanent=True,
        )
    target, private_key = connect_args(host)
    return await ssh_connect(target, private_key)
