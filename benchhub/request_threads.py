"""How the web process answers: each request for an ordinary view has one thread from its first byte to its last.

Django's own handler is for asynchronous views: an ordinary one it gives a new thread, and each of its middlewares
changes between that and the event loop. docs/performance.md has what a request costs with it and without.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import io
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from tempfile import SpooledTemporaryFile
from typing import IO, Any, cast

from asgiref.sync import iscoroutinefunction
from django.core import signals
from django.core.exceptions import RequestAborted
from django.core.handlers.asgi import ASGIHandler, ASGIRequest, get_script_prefix
from django.core.handlers.base import BaseHandler
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.urls import Resolver404, ResolverMatch, resolve, set_script_prefix

from benchhub.probes import LIVE, METRICS, READY
from experiments.api.plumbing.problems import problem

THREADS = 40
"""Requests at once in one process; a slow database is noticed by the pool of connections before they are used up."""
STREAMS = 4
"""Of these, answers without an end in sight: many exports at once must not take all connections to the database."""
PART_BYTES = 64 * 1024
LONG_PATH_CHARS = 200
"""Paths of so many characters are nobody's own, and not remembered."""

Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class RequestHandler(ASGIHandler):
    """Django's handler for asynchronous views; requests for the other ones stay in one thread of a pool."""

    def __init__(self) -> None:
        super().__init__()
        self._ordinary = _OrdinaryHandler()
        self._ordinary.load_middleware()
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="request")
        self._streams = threading.BoundedSemaphore(STREAMS)

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or _needs_event_loop(scope["path"]):
            await super().__call__(scope, receive, send)
            return
        try:
            body = await self.read_body(receive)
        except RequestAborted:
            return
        loop = asyncio.get_running_loop()
        stream = _Stream(loop)
        run = contextvars.copy_context().run
        try:
            made = loop.run_in_executor(self._threads, run, self._answer, scope, body, stream)
            await stream.send_on(made, receive, send)
            for message in await made:
                await send(message)
        finally:
            stream.close()
            body.close()

    def _answer(self, scope: dict[str, Any], body: IO[bytes], stream: _Stream) -> list[Message]:
        """All that a request needs. Returns what is still to be sent: of an answer that is no stream, the whole."""
        set_script_prefix(get_script_prefix(scope))
        signals.request_started.send(sender=type(self), scope=scope)
        request, refusal = self.create_request(scope, body)
        response = refusal or self._ordinary.get_response(cast(ASGIRequest, request))
        try:
            if isinstance(response, HttpResponse):
                return _whole(response)
            if "Content-Length" in response:
                return _made(cast(StreamingHttpResponse, response), stream)
            if not self._streams.acquire(blocking=False):
                return _whole(_busy())
            try:
                return _made(cast(StreamingHttpResponse, response), stream)
            finally:
                self._streams.release()
        finally:
            response.close()  # also gives back the connection to the database, which belongs to this thread


class _OrdinaryHandler(BaseHandler):
    """Django's, which looks for the view of each request among all addresses; here the last ones are remembered."""

    def resolve_request(self, request: HttpRequest) -> ResolverMatch:
        request.resolver_match = found = _view_at(request.path_info)
        return found


class _Stream:
    """What a thread has made of a stream and the event loop has yet to send.

    A reader, however slow, holds up neither the thread nor its connection to the database.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._head: Message | None = None
        self._more = asyncio.Event()
        self._lock = threading.Lock()
        self._made = SpooledTemporaryFile(max_size=16 * PART_BYTES)  # noqa: SIM115 - `close` does it
        self._sent_bytes = 0
        self._over = False

    def begin(self, head: Message) -> None:
        """Called in the thread."""
        self._head = head

    def add(self, part: bytes) -> bool:
        """Called in the thread. False when nobody reads any more."""
        with self._lock:
            if self._over:
                return False
            self._made.seek(0, io.SEEK_END)
            self._made.write(part)
        self._loop.call_soon_threadsafe(self._more.set)
        return True

    async def send_on(self, made: asyncio.Future[list[Message]], receive: Receive, send: Send) -> None:
        """Send the parts as they come, until the thread has `made` all of them or the reader has left."""
        made.add_done_callback(lambda _: self._more.set())
        await self._more.wait()
        if self._head is None:
            return
        gone = asyncio.create_task(_left(receive))
        try:
            await send(self._head)
            while not gone.done():
                self._more.clear()
                if part := self._next():
                    await send({"type": "http.response.body", "body": part, "more_body": True})
                elif made.done():
                    break
                else:
                    await self._more.wait()
        finally:
            gone.cancel()
            self.close()

    def close(self) -> None:
        with self._lock:
            self._over = True
            self._made.close()

    def _next(self) -> bytes:
        with self._lock:
            self._made.seek(self._sent_bytes)
            part = self._made.read(PART_BYTES)
        self._sent_bytes += len(part)
        return part


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _needs_event_loop(path: str) -> bool:
    """Whether the view waits without a thread. Probes too keep out of the pool: they are asked when it hangs."""
    if path in (LIVE, READY, METRICS):
        return True
    try:
        return bool(iscoroutinefunction(_view_at(path).func))
    except Resolver404:
        return False


def _view_at(path: str) -> ResolverMatch:
    """What answers at this address, and what it says about it; Resolver404 when nothing does."""
    return _remembered(path) if len(path) < LONG_PATH_CHARS else resolve(path)


_remembered = functools.lru_cache(1024)(resolve)


def _head(response: HttpResponseBase) -> Message:
    headers = [(name.encode("ascii"), value.encode("latin1")) for name, value in response.items()]
    headers += [(b"Set-Cookie", c.output(header="").encode("ascii").strip()) for c in response.cookies.values()]
    return {"type": "http.response.start", "status": response.status_code, "headers": headers}


def _whole(response: HttpResponse) -> list[Message]:
    return [_head(response), {"type": "http.response.body", "body": response.content}]


def _made(response: StreamingHttpResponse, stream: _Stream) -> list[Message]:
    stream.begin(_head(response))
    for part in _parts(response):
        if not stream.add(part):
            break
    return [{"type": "http.response.body", "body": b""}]


def _busy() -> HttpResponse:
    response = problem(503, f"{STREAMS} long downloads are being made already; ask again in a few seconds.")
    response["Retry-After"] = "10"
    return response


def _parts(response: Iterable[bytes]) -> Iterator[bytes]:
    """A stream in parts that are worth being handed over."""
    held: list[bytes] = []
    held_bytes = 0
    for part in response:
        held.append(part)
        held_bytes += len(part)
        if held_bytes >= PART_BYTES:
            yield b"".join(held)
            held, held_bytes = [], 0
    yield b"".join(held)
