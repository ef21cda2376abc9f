"""How a part of a site is told what to do: by lines of JSON on standard input, each answered by one."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from typing import Any


async def answer_questions(do: Callable[[str], dict[str, Any]]) -> None:
    """Say that all is open, then answer until standard input ends."""
    questions = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(questions), sys.stdin)
    print(json.dumps({"ready": True}), flush=True)
    while line := await questions.readline():
        print(json.dumps(do(json.loads(line)["what"])), flush=True)
