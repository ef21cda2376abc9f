"""Ids that every log line of a piece of work carries: run, host, step. Pure; whoever writes the log reads `current`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType

_ids: ContextVar[Mapping[str, str]] = ContextVar("log_ids", default=MappingProxyType({}))


@contextmanager
def bound(**ids: object) -> Iterator[None]:
    """Everything logged inside, also by tasks that start there, carries these ids; inner ones win."""
    token = _ids.set({**_ids.get(), **{name: str(value) for name, value in ids.items()}})
    try:
        yield
    finally:
        _ids.reset(token)


def current() -> Mapping[str, str]:
    """The ids of the present piece of work."""
    return _ids.get()
