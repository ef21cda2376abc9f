"""A TCP proxy that behaves like a bad link: slow, late, silent, or cut after some bytes. Needs no root."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass

CHUNK_BYTES = 16 << 10


@dataclass
class Trouble:
    """What is wrong with the link, each way; it may change while connections are open."""

    rate_bytes_per_s: float | None = None
    delay_s: float = 0.0
    silent: bool = False
    """Connections are accepted and stay open, and nothing passes."""
    cut_after_bytes: int | None = None
    """A connection is reset when this much has passed, both ways together."""


class Proxy:
    """Passes connections on to one address while its context is open; `port` on 127.0.0.1 is where it listens."""

    def __init__(self, address: str, port: int, trouble: Trouble | None = None) -> None:
        self.trouble = trouble or Trouble()
        self.port = 0
        self.connections = 0
        self._target = (address, port)
        self._open: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self._woken = asyncio.Condition()

    async def __aenter__(self) -> Proxy:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        self.reset()
        await asyncio.gather(*self._open, return_exceptions=True)

    def reset(self) -> None:
        """Reset every connection that is open."""
        for task, writer in self._open.items():
            writer.transport.abort()
            task.cancel()

    async def change(self, trouble: Trouble) -> None:
        """Another trouble from now on; what waited in a silent link goes on."""
        async with self._woken:
            self.trouble = trouble
            self._woken.notify_all()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a server's callback is a task
        self._open[task] = writer
        self.connections += 1
        passed = _Passed()
        try:
            await self._speaking()
            target_reader, target_writer = await asyncio.open_connection(*self._target)
            try:
                async with asyncio.TaskGroup() as both:
                    both.create_task(self._pass(reader, target_writer, passed))
                    both.create_task(self._pass(target_reader, writer, passed))
            finally:
                target_writer.transport.abort()
        except* (OSError, _CutError):
            pass
        finally:
            writer.transport.abort()
            del self._open[task]

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, passed: _Passed) -> None:
        while data := await reader.read(CHUNK_BYTES):
            await self._speaking()
            trouble = self.trouble
            slow_s = len(data) / trouble.rate_bytes_per_s if trouble.rate_bytes_per_s else 0.0
            await asyncio.sleep(trouble.delay_s + slow_s)
            passed.count += len(data)
            if trouble.cut_after_bytes is not None and passed.count > trouble.cut_after_bytes:
                raise _CutError
            writer.write(data)
            await writer.drain()
        with suppress(OSError):
            writer.write_eof()

    async def _speaking(self) -> None:
        async with self._woken:
            await self._woken.wait_for(lambda: not self.trouble.silent)


@dataclass
class _Passed:
    count: int = 0


class _CutError(Exception):
    """The link is cut as it was asked to be."""
