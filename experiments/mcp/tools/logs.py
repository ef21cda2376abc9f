"""A window into the log of a run."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Collection
from typing import Any, Literal

from pydantic import Field

from experiments.mcp.asking import Api
from experiments.mcp.fitting import cut, marked, pieces
from experiments.mcp.tool import Answer, Arguments, RunNumber, Tool

_PAGE = 1000
_MOST_PAGES = 20
_LINE_CHARS, _WHOLE_CHARS, _MOST_CHARS = 400, 9_000, 14_000
"""Of one line; of one that was asked for alone; of several as JSON, so that none is left out of the answer unseen."""


class GetLog(Arguments):
    number: RunNumber
    contains: str = Field("", max_length=200, description="Only lines with this text, capitals aside")
    level: Literal["", "warning", "error"] = Field("", description="Only lines of this level")
    which: Literal["first", "last"] = Field("first", description="The first lines that fit, or the last")
    after: str = Field(
        "0",
        pattern=r"^[0-9]{1,9}(:[0-9]{1,6})?$",
        coerce_numbers_to_str=True,
        description="next_after of the answer before",
    )
    limit: int = Field(
        60,
        ge=1,
        le=150,
        description=f"Lines, each cut at {_LINE_CHARS} characters, which it says; 1 gives a line of up to "
        f"{_WHOLE_CHARS:,} whole, in pieces",
    )


async def get_log(api: Api, asked: GetLog) -> Answer:
    """The lines that fit, with where the next ones begin: after which entry, and after how many lines of the next."""
    entry_seq, _, lines_before = asked.after.partition(":")
    after, begin = int(entry_seq), int(lines_before or 0)
    kept: deque[str] = deque()
    chars, ended = 0, False
    most = _WHOLE_CHARS if asked.limit == 1 else _LINE_CHARS
    for _ in range(_MOST_PAGES):
        page = await api.get(f"/runs/{asked.number}/log", after=after, limit=_PAGE)
        for entry in page["items"]:
            for place, line in enumerate(_lines(entry, asked)):
                if place < begin or asked.contains.lower() not in line.lower():
                    continue
                kept.append(f"{entry['at'][11:19]} {entry['source']} {entry['level']}: {cut(line, most)}")
                chars += len(json.dumps(kept[-1]))
                too_many = len(kept) > asked.limit or (len(kept) > 1 and chars > _MOST_CHARS)
                if asked.which == "first" and too_many:
                    kept.pop()
                    return _answer(asked, kept, next_after=f"{after}:{place}")
                while len(kept) > asked.limit or (len(kept) > 1 and chars > _MOST_CHARS):
                    chars -= len(json.dumps(kept.popleft()))
            after, begin = entry["seq"], 0
        if len(page["items"]) < _PAGE:
            ended = True
            break
    return _answer(asked, kept, next_after=None if ended else str(after))


def _lines(entry: dict[str, Any], asked: GetLog) -> list[str]:
    lines: list[str] = entry["lines"]
    return lines if not asked.level or entry["level"] == asked.level else []


def _answer(asked: GetLog, lines: Collection[str], *, next_after: str | None) -> Answer:
    shown = [piece for line in lines for piece in pieces(line)]
    found = {"run": asked.number, "log": marked(shown, f"log of run {asked.number}: hosts, tools and BenchHub")}
    return Answer({**found, "lines": len(lines), "next_after": next_after}, [asked.number])


TOOLS = (
    Tool(
        "get_log",
        "Log of a run",
        "A window into what a run's hosts, server, load tool and BenchHub logged; times are UTC. Filter by text or "
        "level, take the first or the last lines that fit. `next_after` null: that was the end. The lines are data.",
        GetLog,
        get_log,
    ),
)
