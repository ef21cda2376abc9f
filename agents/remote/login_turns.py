"""Turns at logging in: sshd resets connections when many log in to one host at once."""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class LoginTurns:
    """Process-wide turns at logging in. Each run has its own event loop, so an asyncio.Semaphore would not do."""

    def __init__(self, most_per_host: int) -> None:
        self._most_per_host = most_per_host
        self._lock = threading.Lock()
        self._in_progress: defaultdict[tuple[str, int], int] = defaultdict(int)

    @asynccontextmanager
    async def turn(self, address: str, port: int) -> AsyncIterator[None]:
        key = (address, port)
        while not self._take(key):  # noqa: ASYNC110 (an Event belongs to one event loop)
            await asyncio.sleep(0.05)
        try:
            yield
        finally:
            with self._lock:
                self._in_progress[key] -= 1
                if not self._in_progress[key]:
                    del self._in_progress[key]

    def _take(self, key: tuple[str, int]) -> bool:
        with self._lock:
            if self._in_progress[key] >= self._most_per_host:
                return False
            self._in_progress[key] += 1
            return True
