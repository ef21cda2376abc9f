"""A look at something that may hang: whoever asks gets an answer in time, and no two looks hang at once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

T = TypeVar("T")


class NoAnswer(Exception):
    """The look takes longer than whoever asks can wait."""


class BoundedLook(Generic[T]):
    """Runs `look` in a thread of its own, at most one at a time, and keeps what it found for `kept_s`."""

    def __init__(self, look: Callable[[], T], *, limit_s: float, kept_s: float) -> None:
        self._look = look
        self._limit_s = limit_s
        self._kept_s = kept_s
        self._lock = threading.Lock()
        self._current: Future[T] | None = None
        self._done_at = 0.0

    def __call__(self) -> T:
        """What the look found, or raised. NoAnswer when it is not back after `limit_s`."""
        try:
            return self._started().result(timeout=self._limit_s)
        except TimeoutError as error:
            raise NoAnswer(f"no answer in {self._limit_s:g} s") from error

    def _started(self) -> Future[T]:
        with self._lock:
            current = self._current
            if current is None or (current.done() and time.monotonic() - self._done_at > self._kept_s):
                current = self._current = Future()
                threading.Thread(target=self._work, args=(current,), name="bounded-look", daemon=True).start()
            return current

    def _work(self, future: Future[T]) -> None:
        try:
            found = self._look()
        except Exception as error:
            self._done_at = time.monotonic()
            future.set_exception(error)
        else:
            self._done_at = time.monotonic()
            future.set_result(found)
