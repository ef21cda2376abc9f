"""What the runner needs from a connection to a host, whatever carries it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

from agents.base.command import Command, CommandResult


class Stream(Protocol):
    """A command that runs on and whose standard output is read as it comes."""

    def __aiter__(self) -> AsyncIterator[bytes]: ...

    async def close(self) -> None:
        """Stop reading; the remote side sees its pipe close."""


class Session(Protocol):
    """An open connection to one host. All bytes, never decoded on the way."""

    @property
    def host(self) -> str:
        """The host's name, for messages."""

    async def run(self, command: Command, *, max_output_bytes: int = 1 << 20) -> CommandResult:
        """Run to the end. Output over the bound is cut and `truncated` set.

        Raises ConnectError when the connection is gone before the command could be sent, CommandError when the
        command exceeds its `timeout_s`. A connection that dies under the command gives `exit_status=None`.
        """

    async def mutate(self, command: Command, *, max_output_bytes: int = 1 << 20) -> CommandResult:
        """Like `run`, for a command that changes the host. FenceError when a newer holder of it exists."""

    async def start(self, command: Command) -> Stream:
        """Start a long reader (a monitor). It ends with the connection; it is never the load tool."""

    async def put(self, path: str, data: bytes, *, mode: int = 0o600) -> None:
        """Write a whole file: temporary name beside it, fsync, rename. ConnectError when the connection ends."""

    async def get(self, path: str, *, offset: int = 0, max_bytes: int = 1 << 20) -> bytes:
        """Read at most `max_bytes` from `offset`; empty at the end of the file. CommandError when there is no file."""

    async def close(self) -> None: ...
