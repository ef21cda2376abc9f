"""Holding a run while it is worked on: the lease is renewed until the work ends, or the run is to be left."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Coroutine
from typing import Any

from agents.working.store import RunStore, StoreAway

logger = logging.getLogger(__name__)

handing_over = threading.Event()
"""Set when this worker process is told to stop: its runs are let go at once, and another worker adopts them."""

HAND_OVER_LOOK_S = 0.25


class HandedOver(Exception):
    """The worker is told to stop; the run's lease has ended, so that another one goes on at once."""


class Heart:
    """Renews the lease and learns from the same look whether a person cancelled the run."""

    def __init__(self, store: RunStore, heartbeat_s: float) -> None:
        self._store = store
        self._heartbeat_s = heartbeat_s
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
                await self._store.let_go()
            beating.result()
        beating.cancel()
        await asyncio.gather(beating, return_exceptions=True)
        await working

    async def _beat(self) -> None:
        while True:
            try:
                self.cancelled = await self._store.beat() or self.cancelled
            except StoreAway as error:
                logger.warning("no heartbeat (%s); the lease still runs", error)
            next_s = time.monotonic() + self._heartbeat_s
            while (left_s := next_s - time.monotonic()) > 0:
                if handing_over.is_set():
                    raise HandedOver
                await asyncio.sleep(min(left_s, HAND_OVER_LOOK_S))
