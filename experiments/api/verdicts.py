"""The gate's answer as the API gives it, and the wait for it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Literal, Protocol, TypeVar

from asgiref.sync import sync_to_async
from django.db import connection
from django.http import HttpRequest
from pydantic import BaseModel, Field

from experiments.judging.gate.decision import GateVerdict, markdown
from experiments.judging.gate.rules import GateRules

MAX_WAIT_S = 120
_CONCLUSIONS: dict[str, Literal["success", "failure", "neutral"]] = {
    "pass": "success",
    "fail": "failure",
    "inconclusive": "neutral",
    "error": "failure",
}
_LOOK_EVERY_S = 1.0


class NumberOut(BaseModel):
    """One figure behind the decision: of a run (`value`), or a change of a candidate against the baseline."""

    metric: str
    label: str
    unit: str
    baseline: str
    candidate: str
    outcome: str
    decides: bool
    value: float | None
    change_pct: float | None
    ci95_low_pct: float | None
    ci95_high_pct: float | None
    adjusted_p: float | None = Field(description="Corrected for all comparisons of its family; null when it is alone")
    family_size: int


class RuleQuery(BaseModel):
    """The rules of the gate, where they are others than the experiment's."""

    inconclusive: Literal["neutral", "pass", "fail"] = Field("neutral", description="What too little data counts as")
    metric: list[str] = Field([], description="Metrics that decide; may be given several times")
    margin_pct: float | None = Field(None, gt=0, lt=100, description="Changes within it are none")
    baseline: str = Field(
        "",
        max_length=300,
        description="In place of the baseline variant: branch:main, label:KEY=VALUE, tag:NAME, pinned:NAME or run:12",
    )

    def as_rules(self) -> GateRules:
        margin_ratio = None if self.margin_pct is None else self.margin_pct / 100
        return GateRules(tuple(dict.fromkeys(self.metric)), margin_ratio, self.inconclusive, self.baseline)


class VerdictOut(BaseModel):
    outcome: Literal["pass", "fail", "inconclusive", "error"]
    finished: bool = Field(description="False while runs are open; ask again")
    conclusion: Literal["success", "failure", "neutral"] = Field(description="The same in the words of a check")
    comment: bool = Field(description="Worth a comment: a difference beyond the margin, or no pass")
    comment_reason: str = Field(description="Why a comment is worth it, or not")
    reasons: list[str]
    decided_by: int | None = Field(
        description="Number of the run that decides: the newest try of one that was tried again. Null of an experiment"
    )
    numbers: list[NumberOut]
    url: str
    markdown: str

    @classmethod
    def of(cls, verdict: GateVerdict, *, title: str, url: str) -> VerdictOut:
        return cls(
            outcome=verdict.outcome,
            finished=verdict.finished,
            conclusion=_CONCLUSIONS[verdict.outcome],
            comment=verdict.comment,
            comment_reason=verdict.comment_reason,
            reasons=list(verdict.reasons),
            decided_by=verdict.decided_by,
            numbers=[NumberOut(**vars(number)) for number in verdict.numbers],
            url=url,
            markdown=markdown(title, url, verdict),
        )


class Finishing(Protocol):
    """An answer that says whether it is the last one."""

    finished: bool


T = TypeVar("T", bound=Finishing)


async def waited_for(look: Callable[[], T], wait_s: int) -> T:
    """What `look` says once it is finished, or after `wait_s`. Between two looks it holds no database connection."""
    until = time.monotonic() + wait_s
    while True:
        seen = await sync_to_async(_looked)(look)
        left_s = until - time.monotonic()
        if seen.finished or left_s <= 0:
            return seen
        await asyncio.sleep(min(_LOOK_EVERY_S, left_s))


def _looked(look: Callable[[], T]) -> T:
    try:
        return look()
    finally:
        if not connection.in_atomic_block:
            connection.close()  # many jobs may wait at a time, and PostgreSQL's connections are few


def absolute(request: HttpRequest, path: str) -> str:
    """The whole address of a path, as whoever asks reaches this installation."""
    return request.build_absolute_uri(path)
