"""A link that several commands of a run use at a time, while its connection breaks."""

from __future__ import annotations

import asyncio

from agents.base.command import Command, CommandResult
from agents.base.errors import ConnectError
from agents.remote.link import Link
from agents.remote.ssh import SshSession


class CutOnce:
    """A session on which the command `unlucky` finds the connection cut, once."""

    def __init__(self) -> None:
        self.cut = False

    async def run(self, command: Command, *, max_output_bytes: int = 0) -> CommandResult:
        if command.argv == ("unlucky",) and not self.cut:
            self.cut = True
            raise ConnectError("cut")
        return CommandResult(0, b"", b"", 0.0, False)

    async def close(self) -> None:
        pass


async def test_a_command_may_get_through_while_the_trouble_of_another_one_is_being_told() -> None:
    session, told, go_on = CutOnce(), asyncio.Event(), asyncio.Event()

    async def connect() -> SshSession:
        return session  # type: ignore[return-value]

    async def tell(message: str) -> None:
        if message.startswith("Lost"):
            told.set()
            await go_on.wait()

    link = Link("sut", connect, on_trouble=tell)
    unlucky = asyncio.create_task(link.run(Command(("unlucky",))))
    await told.wait()
    other = await link.run(Command(("other",)))
    go_on.set()

    assert other.ok
    assert (await unlucky).ok
