"""The monitors' readings that simulated hosts stream: those of this machine, read by one real loop for all of them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from agents.monitors import MONITORS
from agents.monitors.stream import new_mark, stream_command

READ_EVERY_S = 5.0


@dataclass
class Readings:
    """The newest frame of the loop; `mark` stands where each host writes the mark that it was given."""

    mark: bytes = b""
    frame: bytes = b""

    async def follow(self) -> None:
        """Read until cancelled."""
        mark = new_mark()
        self.mark = mark.encode()
        argv = stream_command(tuple(MONITORS.values()), mark, interval_s=READ_EVERY_S).argv
        loop = await asyncio.create_subprocess_exec(*argv, stdout=asyncio.subprocess.PIPE, limit=1 << 22)
        if loop.stdout is None:
            raise RuntimeError("a loop without output")
        whole = b""
        try:
            async for line in loop.stdout:
                whole += line
                if line.startswith(self.mark + b" end "):
                    self.frame, whole = whole, b""
        finally:
            loop.kill()
            await loop.wait()

    def for_mark(self, mark: str) -> bytes:
        return self.frame.replace(self.mark, mark.encode())
