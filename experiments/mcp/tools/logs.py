"""A window into the log of a run."""

from __future__ import annotations

from collections import deque
from typing import Any, Literal

from pydantic import Field

from experiments.mcp.asking import Api
from experiments.mcp.fitting import marked
from experiments.mcp.tool import MAX_NUMBER, Answer, Arguments, RunNumber, Tool

_PAGE = 1000
_MOST_PAGES = 20
_LINE_CHARS = 400


class GetLog(Arguments):
    number: RunNumber
    contains: str = Field("", max_length=200, description="Only lines with this text, capitals aside")
    level: Literal["", "warning", "error"] = Field("", description="Only lines of this level")
    which: Literal["first", "last"] = Field("first", description="The first lines that fit, or the last")
    after: int = Field(0, ge=0, le=MAX_NUMBER, description="next_after of the answer before")
    limit: int = Field(60, ge=1, le=150, description="Lines")


async def get_log(api: Api, asked: GetLog) -> Answer:
    """The lines that fit, with where the next ones begin."""
    kept: deque[str] = deque(maxlen=asked.limit if asked.which == "last" else None)
    after, ended = asked.after, False
    for _ in range(_MOST_PAGES):
        page = await api.get(f"/runs/{asked.number}/log", after=after, limit=_PAGE)
        for entry in page["items"]:
            lines = _lines(entry, asked)
            if asked.which == "first" and kept and len(kept) + len(lines) > asked.limit:
                return _answer(asked, [*kept], next_after=after)
            kept.extend(lines[: asked.limit])
            if len(lines) > asked.limit:
                kept.append(f"({len(lines) - asked.limit} more lines of the same moment)")
            after = entry["seq"]
        if len(page["items"]) < _PAGE:
            ended = True
            break
    return _answer(asked, [*kept], next_after=None if ended else after)


def _lines(entry: dict[str, Any], asked: GetLog) -> list[str]:
    if asked.level and entry["level"] != asked.level:
        return []
    begin = f"{entry['at'][11:19]} {entry['source']} {entry['level']}: "
    return [f"{begin}{line[:_LINE_CHARS]}" for line in entry["lines"] if asked.contains.lower() in line.lower()]


def _answer(asked: GetLog, lines: list[str], *, next_after: int | None) -> Answer:
    found = {"run": asked.number, "log": marked(lines, f"log of run {asked.number}: hosts, tools and BenchHub")}
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
