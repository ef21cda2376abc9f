"""Holding a run while it is worked on: the lease is renewed until the work ends, or the run is to be left."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Coroutine
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import close_old_connections

from experiments.registry.connections import lent
from experiments.registry.errors import DATABASE_AWAY
from experiments.running.executing.recorder import Recorder

logger = logging.getLogger(__name__)

handing_over = threading.Event()
"""Set when this worker process is told to stop: its runs are let go at once, and another worker adopts them."""

HAND_OVER_LOOK_S = 0.25
UNKNOWN_HOLDER_HINT = (
    "Another worker of this BenchHub has used the host since, or the database is an older copy. When nobody else uses "
    "the host, restore it on its page: BenchHub then looks at what is there."
)


class HandedOver(Exception):
    """The worker is told to stop; the run's lease has ended, so that another one goes on at once."""


class Heart:
    """Renews the lease and learns from the same look whether a person cancelled the run."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self.cancelled = False

    async def hold(self, work: Coroutine[Any, Any, None]) -> None:
        """Do the work while the heart beats. When the run is to be left, the work is stopped where it is.

        Raises what the work raises, HandedOver, or FenceError when the run is someone else's.
        """
        working = asyncio.create_task(work)
        beating = asyncio.create_task(self._beat())
        done, _ = await asyncio.wait({working, beating}, return_when=asyncio.FIRST_COMPLETED)
        if beating in done:  # it ends only when the run is to be left
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)
            if isinstance(beating.exception(), HandedOver):
                await sync_to_async(lent(self._recorder.let_go))()
            beating.result()
        beating.cancel()
        await asyncio.gather(beating, return_exceptions=True)
        await working

    async def _beat(self) -> None:
        while True:
            try:
                self.cancelled = await sync_to_async(lent(self._recorder.beat))() or self.cancelled
            except DATABASE_AWAY as error:
                logger.warning("run %s: no heartbeat (%s); the lease still runs", self._recorder.run_id, error)
                await sync_to_async(close_old_connections)()
            next_s = time.monotonic() + settings.BENCHHUB_HEARTBEAT_S
            while (left_s := next_s - time.monotonic()) > 0:
                if handing_over.is_set():
                    raise HandedOver
                await asyncio.sleep(min(left_s, HAND_OVER_LOOK_S))
