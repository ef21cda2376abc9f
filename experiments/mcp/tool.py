"""What a tool is, and what its arguments are made of."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from experiments.mcp.asking import Api

MAX_NUMBER = 2**31 - 1
RunNumber = Annotated[int, Field(ge=1, le=MAX_NUMBER, description="Number of a run, without #")]
Id = Annotated[int, Field(ge=1, le=2**63 - 1)]
Time = Annotated[str, Field(max_length=40, description="2026-01-31 or 2026-01-31T12:00:00Z; UTC without an offset")]
Metric = Annotated[
    str, Field(max_length=60, description="Such as throughput_rps, latency_p50_ms, latency_p99_ms, errors_total")
]
Name = Annotated[str, Field(max_length=130)]


class Arguments(BaseModel):
    """The arguments of a tool: what it does not know, it refuses."""

    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True, allow_inf_nan=False)


@dataclass(frozen=True)
class Answer:
    """What a tool found, ready to be JSON, and the runs that it speaks of, whose pages are cited."""

    content: dict[str, Any]
    runs: Sequence[int | None] = field(default=())


@dataclass(frozen=True)
class Tool:
    """A tool: what a model reads of it, and what it does. `starts`: it leads to a run, which only the switch allows."""

    name: str
    title: str
    description: str
    arguments: type[Arguments]
    answer: Callable[[Api, Any], Awaitable[Answer]]
    scope: str = "read"
    starts: bool = False
