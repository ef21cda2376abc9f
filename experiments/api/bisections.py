"""Bisections: the first of an ordered list of candidates that is worse than the good one."""

from __future__ import annotations

from typing import Annotated, Literal

from django.http import HttpRequest
from ninja import Router
from ninja.params.functions import Query
from ninja.responses import Status
from pydantic import BaseModel, Field

from experiments.analysis.sequential import LOOKS
from experiments.api.explaining import ExplanationOut
from experiments.api.plumbing.auth import LAUNCH, READ, member_of
from experiments.api.plumbing.idempotency import idempotent
from experiments.api.setups import InquiryRow, SetupIn, inquiry_fields
from experiments.api.shapes import MAX_ID, Whole, bisection_url, experiment_url
from experiments.api.verdicts import MAX_WAIT_S, absolute, waited_for
from experiments.asking.bisections import live
from experiments.asking.bisections.answer import BisectionAnswer, Outcome, answer_of, markdown
from experiments.asking.bisections.functions import FunctionsBehind
from experiments.asking.bisections.plan import MOST_CANDIDATES, MOST_CHARS, BisectionPlan, versions_between
from experiments.asking.bisections.reading import remaining, steps_of
from experiments.models import Bisection, Member, Recipe, Role
from experiments.registry.errors import RequestError
from experiments.registry.teams.access import require
from experiments.running.queue.priorities import PRIORITIES

router = Router(auth=READ, tags=["bisections"])


class StepOut(BaseModel):
    position: int
    candidate: str
    result: str = Field(description="good (not worse), bad (worse) or unclear; empty while it runs")
    sentence: str
    estimate_pct: float | None
    ci95_low_pct: float | None
    ci95_high_pct: float | None
    experiment: int
    experiment_url: str


class BisectionRow(InquiryRow):
    parameter: str = Field(description="Empty: the candidates are versions of the recipe")
    candidates: list[str] = Field(description="In order: the good one first, the bad one last")
    metric: str
    margin_ratio: float
    max_blocks: int
    last_good: str = Field(description="The last candidate that is known not to be worse")
    first_bad: str | None = Field(description="The first that is known to be worse; the answer, once it is finished")

    @classmethod
    def of(cls, bisection: Bisection, team: str) -> BisectionRow:
        return cls(
            url=bisection_url(team, bisection.pk),
            parameter=bisection.parameter,
            candidates=bisection.candidates,
            metric=bisection.metric,
            margin_ratio=bisection.margin_ratio,
            max_blocks=bisection.max_blocks,
            last_good=bisection.candidates[bisection.low],
            first_bad=None if bisection.high is None else bisection.candidates[bisection.high],
            **inquiry_fields(bisection),
        )


class BisectionOut(BisectionRow):
    steps_left: int = Field(description="At most, if none of them stays unclear")
    least_left_s: float
    most_left_s: float
    steps: list[StepOut]


class FunctionsBehindOut(BaseModel):
    """Where the first bad one costs more than the good one, from the profiled runs of the step that decided."""

    experiment: int
    shown: list[ExplanationOut] = Field(description="Functions that cost more, each with its interval")
    already: list[str] = Field(description="Those that cost more in the candidate before it, too")
    missing: str = Field(description="Why nothing can be said of functions; empty where they were compared")
    sentence: str

    @classmethod
    def of(cls, found: FunctionsBehind) -> FunctionsBehindOut:
        return cls(
            experiment=found.experiment_id,
            shown=[ExplanationOut.model_validate(one, from_attributes=True) for one in found.shown],
            already=list(found.already),
            missing=found.missing,
            sentence=found.sentence,
        )


class AnswerOut(BaseModel):
    outcome: Outcome = Field(
        description="found; not_worse: there is nothing to find; unclear: too much noise to tell; or error"
    )
    finished: bool = Field(description="False while steps are still to come; ask again")
    first_bad: str | None = Field(description="When exactly this one is known")
    change_pct: float | None = Field(description="Of the first bad one against the good one")
    ci95_low_pct: float | None
    ci95_high_pct: float | None
    functions: FunctionsBehindOut | None = Field(description="When the first bad one is known")
    comment: bool = Field(description="Worth a comment: the first bad one is known")
    comment_reason: str
    reasons: list[str] = Field(description="The answer in sentences; before that, what is known and what runs")
    url: str
    markdown: str

    @classmethod
    def of(cls, bisection: Bisection, answer: BisectionAnswer, url: str) -> AnswerOut:
        return cls(
            **{
                **vars(answer),
                "reasons": list(answer.reasons),
                "functions": FunctionsBehindOut.of(answer.functions) if answer.functions else None,
            },
            comment=answer.outcome == "found",
            comment_reason=answer.comment_reason,
            url=url,
            markdown=markdown(bisection, url, answer),
        )


class BisectionPage(BaseModel):
    items: list[BisectionRow]
    next_cursor: str = Field(description="Empty at the end")


Candidate = Annotated[str, Field(min_length=1, max_length=MOST_CHARS)]


class BisectionIn(SetupIn):
    """Either `parameter` and `candidates` (its values), or `good_version` and `bad_version` of the recipe."""

    name: str = Field(min_length=1, max_length=120)
    parameter: str = Field("", max_length=60, description="The recipe's parameter that takes each candidate")
    candidates: list[Candidate] = Field(
        default=[], max_length=MOST_CANDIDATES, description="In order: the good one first, the bad one last"
    )
    good_version: Whole | None = Field(None, ge=1)
    bad_version: Whole | None = Field(None, ge=1)
    metric: str = Field("throughput_rps", max_length=60)
    margin_ratio: float = Field(0.03, gt=0, lt=1)
    max_blocks: Whole = Field(LOOKS[-1], ge=LOOKS[0], le=LOOKS[-1], description="At most so many pairs of runs a step")


@router.get("", response=BisectionPage)
def list_bisections(
    request: HttpRequest,
    state: Literal["", "running", "finished", "stopped", "cancelled"] = "",
    cursor: int = Query(0, ge=0, le=MAX_ID),
    limit: int = Query(50, ge=1, le=200),
) -> BisectionPage:
    """Bisections, the newest first."""
    member = member_of(request)
    rows, before = live.BISECTIONS.newest(member.team, state=state, before=cursor or None, limit=limit)
    return BisectionPage(
        items=[BisectionRow.of(row, member.team.slug) for row in rows],
        next_cursor=str(before or ""),
    )


@router.post("", response={202: BisectionOut}, auth=LAUNCH)
@idempotent
def start_bisection(request: HttpRequest, payload: BisectionIn) -> Status[BisectionOut]:
    """Start a bisection: the bad one is compared with the good one first, each further step when one has ended."""
    member = member_of(request)
    require(member, Role.LAUNCHER)
    choice = payload.choice(member)
    same = payload.model_dump(include={"name", "parameter", "metric", "margin_ratio", "max_blocks"})
    plan = BisectionPlan(
        **same,
        application=choice.application,
        recipe=choice.recipe,
        workload=choice.workload,
        sut=choice.sut,
        drivers=choice.drivers,
        parameters=choice.parameters,
        members=choice.members,
        labels_in_order=_candidates(choice.recipe, payload),
        labels=payload.labels,
        priority=PRIORITIES[payload.priority],
    )
    return Status(202, _detail(member, live.start_bisection(member, plan).pk))


@router.get("/{int:bisection_id}", response=BisectionOut)
def get_bisection(request: HttpRequest, bisection_id: int) -> BisectionOut:
    """One bisection with its steps in order."""
    return _detail(member_of(request), bisection_id)


@router.get("/{int:bisection_id}/verdict", response=AnswerOut)
async def bisection_verdict(
    request: HttpRequest,
    bisection_id: int,
    wait: int = Query(0, ge=0, le=MAX_WAIT_S, description="Seconds"),
) -> AnswerOut:
    """The first bad one with its interval, or why there is none; with `wait`, once it is over or that time is."""
    member = member_of(request)

    def look() -> AnswerOut:
        bisection = live.BISECTIONS.find(member.team, bisection_id)
        url = absolute(request, bisection_url(member.team.slug, bisection.pk))
        return AnswerOut.of(bisection, answer_of(bisection), url)

    return await waited_for(look, wait)


@router.post("/{int:bisection_id}/cancel", response={202: BisectionOut}, auth=LAUNCH)
@idempotent
def cancel_bisection(request: HttpRequest, bisection_id: int) -> Status[BisectionOut]:
    """End a bisection and the experiment that is under way; its runs restore their hosts first."""
    member = member_of(request)
    live.BISECTIONS.cancel(member, live.BISECTIONS.find(member.team, bisection_id))
    return Status(202, _detail(member, bisection_id))


def _candidates(recipe: Recipe, payload: BisectionIn) -> list[str]:
    versions = (payload.good_version, payload.bad_version)
    if bool(payload.parameter) == (None not in versions) or (payload.parameter and versions != (None, None)):
        raise RequestError(
            "Give parameter and candidates, or good_version and bad_version of the recipe.", field="parameter"
        )
    if payload.good_version is None or payload.bad_version is None:
        return payload.candidates
    return versions_between(recipe, payload.good_version, payload.bad_version)


def _detail(member: Member, bisection_id: int) -> BisectionOut:
    bisection = live.BISECTIONS.find(member.team, bisection_id)
    team, left = member.team.slug, remaining(bisection)
    return BisectionOut(
        **BisectionRow.of(bisection, team).model_dump(),
        steps_left=left.steps,
        least_left_s=left.least.total_seconds(),
        most_left_s=left.most.total_seconds(),
        steps=[
            StepOut(
                position=step.position,
                candidate=bisection.candidates[step.index],
                result=step.result,
                sentence=step.sentence,
                estimate_pct=step.estimate_pct,
                ci95_low_pct=step.ci95_low_pct,
                ci95_high_pct=step.ci95_high_pct,
                experiment=step.experiment_id,
                experiment_url=experiment_url(team, step.experiment_id),
            )
            for step in steps_of(bisection)
        ],
    )
