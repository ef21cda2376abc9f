"""A site's way to the database, the broker or the web server of the centre: relays that can be cut like a cable.

They have a process of their own, `python -m bench.fleet.relay PLAN`: a cable does not wait for what hosts do.
Questions come on standard input (bench/fleet/questions.py).
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from bench.fleet.questions import answer_questions
from bench.fleet.site_plan import SitePlan, read_plan

CHUNK_BYTES = 1 << 16
SSL_REQUEST_BYTES = 8


class Relay:
    """Takes connections on a port of the loopback address and carries their bytes to a Unix socket, or to a port."""

    def __init__(self, target: Path | int, *, counts_statements: bool = False) -> None:
        self._target = target
        self._counts = counts_statements
        self.statements = 0
        self._open: set[asyncio.StreamWriter] = set()
        self._cut = False

    async def listen(self, port: int) -> asyncio.Server:
        return await asyncio.start_server(self._carry, "127.0.0.1", port)

    def cut(self) -> None:
        """Nothing passes any more, and who tries is turned away, until `mend`."""
        self._cut = True
        for writer in list(self._open):
            writer.transport.abort()

    def mend(self) -> None:
        self._cut = False

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._cut:
            writer.transport.abort()
            return
        try:
            if isinstance(self._target, int):
                there, away = await asyncio.open_connection("127.0.0.1", self._target)
            else:
                there, away = await asyncio.open_unix_connection(self._target)
        except OSError:
            writer.transport.abort()
            return
        both = {writer, away}
        self._open |= both
        try:
            await asyncio.gather(self._copy(reader, away, StatementCounter()), self._copy(there, writer))
        finally:
            self._open -= both
            for one in both:
                one.close()

    async def _copy(
        self, source: asyncio.StreamReader, into: asyncio.StreamWriter, counter: StatementCounter | None = None
    ) -> None:
        with suppress(OSError):
            while data := await source.read(CHUNK_BYTES):
                if counter is not None and self._counts:
                    self.statements += counter.feed(data)
                into.write(data)
                await into.drain()
        with suppress(OSError, RuntimeError):
            into.write_eof()


class StatementCounter:
    """Counts the statements in what a client sends to PostgreSQL: its messages Query and Execute (protocol 3)."""

    def __init__(self) -> None:
        self._rest = b""
        self._began = False

    def feed(self, data: bytes) -> int:
        """How many statements begin in these bytes, which may break anywhere."""
        self._rest += data
        found = at = 0
        while len(self._rest) - at >= 5:
            head = 0 if self._began else -1  # the first message of a connection has no type
            length = int.from_bytes(self._rest[at + 1 + head : at + 5 + head])
            if len(self._rest) - at < length + 1 + head:
                break
            found += self._began and self._rest[at : at + 1] in (b"Q", b"E")
            at += length + 1 + head
            # Asking for TLS or GSS is answered by a byte, and the first message comes again.
            self._began = self._began or length != SSL_REQUEST_BYTES
        self._rest = self._rest[at:]
        return found


class Way:
    """All relays of one site."""

    def __init__(self, plan: SitePlan) -> None:
        ways: tuple[tuple[int, Path | int, bool], ...] = (
            (plan.database_port, Path(plan.database_socket), True),
            (plan.broker_port, Path(plan.broker_socket), False),
            (plan.web_port, plan.web_target, False),
        )
        self._relays = {port: Relay(target, counts_statements=counts) for port, target, counts in ways if port}

    async def serve(self) -> None:
        """Open everything; answer questions until standard input ends."""
        await self.open()
        await answer_questions(self.do)

    async def open(self) -> None:
        """Relays take connections."""
        for port, relay in self._relays.items():
            await relay.listen(port)

    def do(self, what: str) -> dict[str, Any]:
        for relay in self._relays.values():
            match what:
                case "cut":
                    relay.cut()
                case "mend":
                    relay.mend()
        return {"statements": sum(relay.statements for relay in self._relays.values())}


if __name__ == "__main__":
    asyncio.run(Way(read_plan(Path(sys.argv[1]))).serve())
