"""Executes claimed runs in a worker: holds the lease, feeds the recorder, lets the runner work."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import threading
from contextlib import suppress

from asgiref.sync import async_to_sync, sync_to_async
from django.conf import settings
from django.db import OperationalError, close_old_connections

from agents.errors import ConnectError, FenceError
from agents.events import AnyEvent
from agents.record import Record
from agents.runner import Control, Runner
from agents.session import Session
from agents.spec import HostAddress, RunSpec
from agents.ssh import connect as ssh_connect
from experiments.conclusion import conclude
from experiments.dispatch import claim_next
from experiments.host_keys import connect_args
from experiments.models import Host, Run
from experiments.recorder import Recorder

logger = logging.getLogger(__name__)

handing_over = threading.Event()
"""Set when this worker process is told to stop: its runs are let go at once, and another worker adopts them."""


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
    try:
        async_to_sync(_execute)(run)
    except FenceError:
        logger.warning("run %s: another worker took over; this one stops", run.pk)
    except _HandedOver:
        logger.info("run %s: handed over", run.pk)
    return True


class _HandedOver(Exception):
    pass


async def _execute(run: Run) -> None:
    recorder = Recorder(run.pk, run.fence)
    record: Record = await sync_to_async(recorder.record)()
    state = _Heart(recorder)
    runner = Runner(
        f"r{run.pk}",
        RunSpec.model_validate(run.spec),
        record,
        Control(
            connect=lambda address: _connect(run, address),
            emit=lambda event: _store(recorder, event),
            cancelled=lambda: state.cancelled,
            fence=run.fence,
            patience_s=settings.BENCHHUB_PATIENCE_S,
        ),
    )
    work = asyncio.create_task(runner.run())
    heart = asyncio.create_task(state.beat())
    done, _ = await asyncio.wait({work, heart}, return_when=asyncio.FIRST_COMPLETED)
    if heart in done:  # it ends only when the run is not ours any more
        work.cancel()
        with suppress(asyncio.CancelledError):
            await work
        heart.result()
    heart.cancel()
    with suppress(asyncio.CancelledError):
        await heart
    await work
    await sync_to_async(conclude)(run.pk, run.fence, record)


class _Heart:
    """Renews the lease and learns from the same look whether a person cancelled the run."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self.cancelled = False

    async def beat(self) -> None:
        """Beats until the run is handed over (raises _HandedOver) or someone newer holds it (raises FenceError)."""
        while True:
            if handing_over.is_set():
                await sync_to_async(self._recorder.let_go)()
                raise _HandedOver
            try:
                self.cancelled = await sync_to_async(self._recorder.beat)() or self.cancelled
            except OperationalError as error:
                logger.warning("run %s: no heartbeat (%s); the lease still runs", self._recorder.run_id, error)
            await asyncio.sleep(settings.BENCHHUB_HEARTBEAT_S)


async def _store(recorder: Recorder, event: AnyEvent) -> None:
    """Store an event; a database that restarts is waited for, because nothing may happen on a host unrecorded."""
    pause_s = 0.2
    while True:
        try:
            await sync_to_async(recorder.store)(event)
            return
        except OperationalError as error:
            logger.warning("run %s: the database is away (%s); waiting", recorder.run_id, error)
            await sync_to_async(close_old_connections)()
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, 5.0)


async def _connect(run: Run, address: HostAddress) -> Session:
    host_id = run.sut_id if run.spec and address.name == run.spec["sut"]["name"] else run.driver_id
    host = await sync_to_async(Host.objects.select_related("jump").get)(pk=host_id)
    if host.host_key != address.host_key:
        raise ConnectError(
            f"The approved host key of {host.name} is not the one that this run was launched with.",
            hint="Launch the run again if the new key is right.",
            permanent=True,
        )
    target, private_key = await sync_to_async(connect_args)(host)
    return await ssh_connect(target, private_key)
