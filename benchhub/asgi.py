"""ASGI entry point: Django's own handler, as `python -m benchhub.web` serves it."""

from __future__ import annotations

import os
import warnings
from typing import Any

from asgiref.sync import sync_to_async
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "benchhub.settings")
# Nobody waits longer for a page; workers, migrations and commands have no such limit.
os.environ.setdefault("DATABASE_STATEMENT_TIMEOUT_S", "15")

# WhiteNoise's files are small, so Django may read one whole before it sends it.
warnings.filterwarnings("ignore", message="StreamingHttpResponse must consume synchronous iterators")

_django = get_asgi_application()
from experiments.registry.workers import outbox  # noqa: E402  # Django is set up by the line above


async def application(scope: Any, receive: Any, send: Any) -> None:
    """Django, and at the end of the process its last messages to the workers: uvicorn leaves no time after this."""
    if scope["type"] != "lifespan":
        await _django(scope, receive, send)
        return
    await receive()
    await send({"type": "lifespan.startup.complete"})
    await receive()
    await sync_to_async(outbox.flush, thread_sensitive=False)()
    await send({"type": "lifespan.shutdown.complete"})
