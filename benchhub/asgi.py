"""ASGI entry point: `uvicorn benchhub.asgi:application`."""

from __future__ import annotations

import gc
import os
from typing import Any

import django
from asgiref.sync import sync_to_async
from django.urls import get_resolver

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "benchhub.settings")
# Nobody waits longer for a page; workers, migrations and commands have no such limit.
os.environ.setdefault("DATABASE_STATEMENT_TIMEOUT_S", "15")

django.setup(set_prefix=False)
from benchhub.request_threads import RequestHandler  # noqa: E402  # Django must be set up before

_django = RequestHandler()


def _settle() -> None:
    """Load all views, then leave what is there out of every later collection of garbage: it stays, and is much."""
    get_resolver().url_patterns  # noqa: B018 - reading it loads them
    gc.collect()
    gc.freeze()


async def application(scope: Any, receive: Any, send: Any) -> None:
    """Django, and at the end of the process its last messages to the workers: uvicorn leaves no time after this."""
    if scope["type"] != "lifespan":
        await _django(scope, receive, send)
        return
    from experiments.registry.workers import outbox

    await receive()
    _settle()
    await send({"type": "lifespan.startup.complete"})
    await receive()
    await sync_to_async(outbox.flush, thread_sensitive=False)()
    await send({"type": "lifespan.shutdown.complete"})
