"""Tuning searches: the best configuration of a recipe within bounds, confirmed by fresh runs."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from django.http import HttpRequest
from ninja import Router
from ninja.params.functions import Query
from ninja.responses import Status
from pydantic import BaseModel, Field, ValidationError

from agents.base.model import first_problem
from experiments.analysis.tuning.effects import FEWEST_MEASURED, Effect
from experiments.api.finding import named_host, named_hosts
from experiments.api.plumbing.auth import LAUNCH, READ, WRITE, member_of
from experiments.api.plumbing.idempotency import idempotent
from experiments.api.setups import InquiryRow, SetupIn, inquiry_fields
from experiments.api.shapes import MAX_ID, Body, Named, Parameters, Whole, run_url, tuning_url
from experiments.api.verdicts import MAX_WAIT_S, absolute, waited_for
from experiments.asking.tunings import live
from experiments.asking.tunings.answer import Outcome, TuningAnswer, answer_of, markdown
from experiments.asking.tunings.plan import MOST_LIMITS, MOST_RUNS, LimitWanted, TuningPlan
from experiments.asking.tunings.reading import cost_of, effects_in, shown, trials_of
from experiments.asking.tunings.recipes import save_recipe
from experiments.asking.tunings.space import MOST_PARAMETERS, MOST_STARTS, Range, SpaceDocument, Start, Text
from experiments.asking.tunings.suts import MOST_FURTHER
from experiments.asking.tunings.trials import space_to_search
from experiments.models import Member, Tuning
from experiments.registry.documents.yaml_text import parse_yaml
from experiments.registry.errors import RequestError
from experiments.running.queue.priorities import PRIORITIES

router = Router(auth=READ, tags=["tunings"])

SPACE_SAID = (
    "Parameters with their bounds; or the same as YAML text, which may have `further_suts`, `confirm_sut` and "
    "`confirm_after_hours` as well"
)
OF_SERVERS = ("further_suts", "confirm_sut", "confirm_after_hours")
"""Fields that may stand in the YAML of the space as well."""
HostName = Annotated[str, Field(min_length=1, max_length=120)]


class LimitIn(BaseModel):
    metric: str = Field(min_length=1, max_length=60)
    at_most: float | None = Field(None, description="0 for a count that must stay 0, such as errors_total")
    at_least: float | None = None


class SpaceIn(Body):
    """What may be tried; the recipe's own bounds where none are given."""

    parameters: list[Range] = Field(min_length=1, max_length=MOST_PARAMETERS)
    forbidden: list[Text] = Field(default=[], max_length=100, description="Such as `workers > 4 and sendfile = off`")
    starts: list[Start] = Field(default=[], max_length=MOST_STARTS, description="Configurations to be tried first")


class TuningIn(SetupIn):
    """The recipe's parameters that are not searched stay as `parameters` says."""

    name: str = Field(min_length=1, max_length=120)
    space: SpaceIn | str = Field(description=SPACE_SAID)
    metric: str = Field("throughput_rps", max_length=60)
    limits: list[LimitIn] = Field(default=[], max_length=MOST_LIMITS, description="What a recommendation must keep")
    margin_ratio: float = Field(0.03, gt=0, lt=1, description="The smallest gain that is worth a change")
    budget_runs: Whole = Field(60, ge=1, le=MOST_RUNS)
    budget_hours: float | None = Field(None, gt=0)
    reduces: bool = Field(False, description="Look for the smallest recipe that keeps the gain, too")
    further_suts: list[HostName] = Field(
        default=[], max_length=MOST_FURTHER, description="Servers equal to the SUT, among which the trials are divided"
    )
    confirm_sut: HostName | None = Field(None, description="One more equal server, on which alone it is confirmed")
    confirm_after_hours: float | None = Field(None, gt=0, description="Pause so long before the confirmation")
    warm: bool = Field(True, description="Try first what earlier searches and experiments with this recipe found")


class BudgetIn(Body):
    runs: Whole = Field(0, ge=0, le=MOST_RUNS)
    hours: float = Field(0.0, ge=0)


class RegionIn(Body):
    mixture: Text = Field(description="Such as `workers > 4 and sendfile = off`; `forbidden` of the space says how")


class TuningTrialOut(BaseModel):
    position: int
    purpose: str = Field(description="control, explore, repeat, confirm or revert (docs/tuning.md)")
    config: Parameters
    sut: str = Field(description="The server on which it runs")
    why: str
    block: int
    result: str = Field(description="ok, invalid, crashed or refused; empty while it is not over")
    reason: str
    figure: float | None = Field(description="Of a trial that was measured; selected ones are optimistic")
    run: int | None = Field(description="null while it is planned")
    run_url: str | None


class BestOut(BaseModel):
    """What looks best so far: selected among many, so optimistic, and never a claim."""

    config: Parameters
    gain: float
    low: float
    high: float
    within: float = Field(description="The probability that every limit holds")
    runs: int


class RevertedOut(BaseModel):
    parameter: str
    may_go: bool = Field(description="A loss beyond the margin is left out")
    sentence: str
    estimate_pct: float | None
    interval_pct: list[float] | None


class SmallestOut(BaseModel):
    config: Parameters
    dropped: list[str]
    each: list[RevertedOut]


class TuningRow(InquiryRow):
    metric: str
    margin_ratio: float
    budget_runs: int
    budget_hours: float | None
    paused: bool
    outcome: str = Field(description="better, nothing_better or budget_too_small; empty without an answer")
    winner: Parameters | None = Field(description="Confirmed to be better than the default")
    gain_ratio: float | None
    low_ratio: float | None = Field(description="Of the 95 % interval of fresh pairs of runs")
    high_ratio: float | None
    more_runs: int | None = Field(description="About so many more would do, when the budget was too small")

    @classmethod
    def of(cls, tuning: Tuning, team: str) -> TuningRow:
        same = ("metric", "margin_ratio", "budget_runs", "budget_hours", "paused", "outcome", "winner", "gain_ratio")
        return cls(
            url=tuning_url(team, tuning.pk),
            **{name: getattr(tuning, name) for name in (*same, "low_ratio", "high_ratio", "more_runs")},
            **inquiry_fields(tuning),
        )


class TuningOut(TuningRow):
    space: SpaceDocument
    default: Parameters
    further_suts: list[str] = Field(description="Servers equal to the SUT, among which the trials are divided")
    confirm_sut: str | None
    confirm_after_hours: float | None
    confirms_at: datetime | None = Field(description="When the pause before the confirmation ends, once it has begun")
    limits: list[LimitIn]
    best: BestOut | None
    smallest: SmallestOut | None
    smaller_recipe: Named | None
    runs: int
    left_runs: int = Field(description="At most")
    used_s: float
    left_s: float | None
    trials: list[TuningTrialOut]


class ParameterEffectOut(BaseModel):
    """One parameter alone, against its default's value; the largest spread stands first."""

    parameter: str
    values: list[bool | int | float | str]
    change_pct: list[float] = Field(description="Of the metric, one for each value")
    low_pct: list[float] = Field(description="With high_pct 95 % of what the model believes")
    high_pct: list[float]
    spread_pct: float = Field(description="From the lowest to the highest change: the rank of the parameter")
    is_clear: bool = Field(description="At some value the 95 % leave out that nothing changes")
    configs: int = Field(description="How many measured configurations it is the mean of")

    @classmethod
    def of(cls, one: Effect) -> ParameterEffectOut:
        same = ("change_pct", "low_pct", "high_pct", "values")
        is_clear = any(low > 0 or high < 0 for low, high in zip(one.low_pct, one.high_pct, strict=True))
        return cls(
            parameter=one.name,
            **{name: list(getattr(one, name)) for name in same},
            spread_pct=one.spread_pct,
            is_clear=is_clear,
            configs=one.configs,
        )


class CoordinatesOut(BaseModel):
    """A trial as a line over the parameters."""

    position: int
    run: int | None
    values: dict[str, bool | int | float | str | None] = Field(description="null: the parameter did not count")
    result: str
    against_pct: float | None = Field(description="Against the mean of the default's figures; selected, optimistic")
    is_default: bool
    is_left_out: bool = Field(description="Its region was left out later on")


class EffectsOut(BaseModel):
    """What a model of the trials believes: an opinion of selected trials, and no verdict."""

    fewest_configs: int = Field(description="Below so many measured configurations `effects` is empty")
    effects: list[ParameterEffectOut]
    coordinates: list[CoordinatesOut]


class TuningAnswerOut(BaseModel):
    outcome: Outcome = Field(description="better, nothing_better, budget_too_small or error")
    finished: bool = Field(description="False while trials are still to come; ask again")
    config: Parameters | None = Field(description="Confirmed to be better than the default")
    smallest: Parameters | None
    gain_pct: float | None
    ci95_low_pct: float | None
    ci95_high_pct: float | None
    comment: bool = Field(description="Worth a comment: a better configuration is confirmed")
    comment_reason: str
    reasons: list[str]
    url: str
    markdown: str

    @classmethod
    def of(cls, tuning: Tuning, answer: TuningAnswer, url: str) -> TuningAnswerOut:
        return cls(
            **{**vars(answer), "reasons": list(answer.reasons)},
            comment=answer.outcome == "better",
            comment_reason=answer.comment_reason,
            url=url,
            markdown=markdown(tuning, url, answer),
        )


class TuningPage(BaseModel):
    items: list[TuningRow]
    next_cursor: str = Field(description="Empty at the end")


@router.get("", response=TuningPage)
def list_tunings(
    request: HttpRequest,
    state: Literal["", "running", "finished", "stopped", "cancelled"] = "",
    cursor: int = Query(0, ge=0, le=MAX_ID),
    limit: int = Query(50, ge=1, le=200),
) -> TuningPage:
    """Tuning searches, the newest first."""
    member = member_of(request)
    rows, before = live.TUNINGS.newest(member.team, state=state, before=cursor or None, limit=limit)
    return TuningPage(items=[TuningRow.of(row, member.team.slug) for row in rows], next_cursor=str(before or ""))


@router.post("", response={202: TuningOut}, auth=LAUNCH)
@idempotent
def start_tuning(request: HttpRequest, payload: TuningIn) -> Status[TuningOut]:
    """Start a search: the default is measured now, each further trial when the one before has ended."""
    member = member_of(request)
    payload, space = _with_file(payload)
    plan = TuningPlan(
        name=payload.name,
        choice=payload.choice(member),
        space=space,
        metric=payload.metric,
        limits=[LimitWanted(one.metric, one.at_most, one.at_least) for one in payload.limits],
        margin_ratio=payload.margin_ratio,
        budget_runs=payload.budget_runs,
        budget_hours=payload.budget_hours,
        reduces=payload.reduces,
        warm=payload.warm,
        further_suts=named_hosts(member, payload.further_suts, field="further_suts"),
        confirm_sut=named_host(member, payload.confirm_sut, field="confirm_sut") if payload.confirm_sut else None,
        confirm_after_hours=payload.confirm_after_hours,
        labels=payload.labels,
        priority=PRIORITIES[payload.priority],
    )
    return Status(202, _detail(member, live.start_tuning(member, plan).pk))


@router.get("/{int:tuning_id}", response=TuningOut)
def get_tuning(request: HttpRequest, tuning_id: int) -> TuningOut:
    """One search with its trials in order."""
    return _detail(member_of(request), tuning_id)


@router.get("/{int:tuning_id}/effects", response=EffectsOut)
def tuning_effects(request: HttpRequest, tuning_id: int) -> EffectsOut:
    """Each parameter alone, ranked, with what a model believes of it; and every trial as a line over all of them."""
    tuning = live.TUNINGS.find(member_of(request).team, tuning_id)
    space = space_to_search(tuning)
    return EffectsOut(
        fewest_configs=FEWEST_MEASURED,
        effects=[ParameterEffectOut.of(one) for one in effects_in(tuning)],
        coordinates=[
            CoordinatesOut(
                position=one.trial.position,
                run=one.trial.run.number if one.trial.run else None,
                values={
                    parameter.name: one.trial.config[parameter.name] if counts else None
                    for parameter, counts in zip(space.parameters, space.active(one.trial.config), strict=True)
                },
                result=one.trial.result,
                against_pct=one.against_pct,
                is_default=one.is_default,
                is_left_out=one.is_left_out,
            )
            for one in shown(tuning, trials_of(tuning))
        ],
    )


@router.get("/{int:tuning_id}/verdict", response=TuningAnswerOut)
async def tuning_verdict(
    request: HttpRequest,
    tuning_id: int,
    wait: int = Query(0, ge=0, le=MAX_WAIT_S, description="Seconds"),
) -> TuningAnswerOut:
    """The confirmed gain with its interval, or why there is none; with `wait`, once it is over or that time is."""
    member = member_of(request)

    def look() -> TuningAnswerOut:
        tuning = live.TUNINGS.find(member.team, tuning_id)
        return TuningAnswerOut.of(tuning, answer_of(tuning), absolute(request, tuning_url(member.team.slug, tuning.pk)))

    return await waited_for(look, wait)


@router.post("/{int:tuning_id}/pause", response={202: TuningOut}, auth=LAUNCH)
def pause_tuning(request: HttpRequest, tuning_id: int) -> Status[TuningOut]:
    """Launch no further trial; the one that is under way goes on to its end."""
    member = member_of(request)
    live.pause(member, live.TUNINGS.find(member.team, tuning_id))
    return Status(202, _detail(member, tuning_id))


@router.post("/{int:tuning_id}/resume", response={202: TuningOut}, auth=LAUNCH)
def resume_tuning(request: HttpRequest, tuning_id: int) -> Status[TuningOut]:
    """Go on with the trial that would have followed."""
    member = member_of(request)
    live.resume(member, live.TUNINGS.find(member.team, tuning_id))
    return Status(202, _detail(member, tuning_id))


@router.post("/{int:tuning_id}/budget", response={202: TuningOut}, auth=LAUNCH)
def add_tuning_budget(request: HttpRequest, tuning_id: int, payload: BudgetIn) -> Status[TuningOut]:
    """Give a search more runs or hours; one that ended without a gain goes on with them."""
    member = member_of(request)
    live.add_budget(member, live.TUNINGS.find(member.team, tuning_id), runs=payload.runs, hours=payload.hours)
    return Status(202, _detail(member, tuning_id))


@router.post("/{int:tuning_id}/region", response={202: TuningOut}, auth=LAUNCH)
def leave_out_region(request: HttpRequest, tuning_id: int, payload: RegionIn) -> Status[TuningOut]:
    """Try nothing more in a region of the space, and recommend nothing of it."""
    member = member_of(request)
    live.leave_out(member, live.TUNINGS.find(member.team, tuning_id), payload.mixture)
    return Status(202, _detail(member, tuning_id))


@router.post("/{int:tuning_id}/smallest", response={202: TuningOut}, auth=LAUNCH)
def find_smallest_recipe(request: HttpRequest, tuning_id: int) -> Status[TuningOut]:
    """Look which parameters of the confirmed configuration may go back to their defaults."""
    member = member_of(request)
    live.find_smallest(member, live.TUNINGS.find(member.team, tuning_id))
    return Status(202, _detail(member, tuning_id))


@router.post("/{int:tuning_id}/recipe", response={201: Named}, auth=WRITE)
def save_tuned_recipe(request: HttpRequest, tuning_id: int) -> Status[Named]:
    """Make the answer a version of the recipe, with its evidence as the note."""
    member = member_of(request)
    made = save_recipe(member, live.TUNINGS.find(member.team, tuning_id))
    return Status(201, Named(name=made.name, version=made.version))


@router.post("/{int:tuning_id}/cancel", response={202: TuningOut}, auth=LAUNCH)
def cancel_tuning(request: HttpRequest, tuning_id: int) -> Status[TuningOut]:
    """End a search; the trial that is under way restores its hosts first."""
    member = member_of(request)
    live.TUNINGS.cancel(member, live.TUNINGS.find(member.team, tuning_id))
    return Status(202, _detail(member, tuning_id))


def _with_file(payload: TuningIn) -> tuple[TuningIn, dict[str, Any]]:
    """The payload and its space. YAML text may name the servers beside it; RequestError when both do."""
    if not isinstance(payload.space, str):
        return payload, payload.space.model_dump(mode="json")
    space: dict[str, Any] = parse_yaml(payload.space)
    if not (given := {name: space.pop(name) for name in OF_SERVERS if name in space}):
        return payload, space
    if twice := sorted(given.keys() & payload.model_fields_set):
        raise RequestError("Give this in the YAML or beside it, not in both.", field=twice[0])
    try:
        return TuningIn.model_validate({**payload.model_dump(exclude_unset=True), **given}), space
    except ValidationError as error:
        path, problem = first_problem(error)
        raise RequestError(problem, field=".".join(map(str, path))) from error


def _detail(member: Member, tuning_id: int) -> TuningOut:
    tuning = live.TUNINGS.find(member.team, tuning_id)
    team, trials = member.team.slug, trials_of(tuning)
    cost = cost_of(tuning, trials)
    others = list(tuning.further_suts.select_related("host"))
    names = [tuning.sut.name, *(row.host.name for row in others)]
    same = ("position", "purpose", "config", "why", "block", "result", "reason", "figure")
    return TuningOut(
        **TuningRow.of(tuning, team).model_dump(),
        space=SpaceDocument.model_validate(tuning.space),
        default=tuning.default,
        further_suts=[row.host.name for row in others if not row.confirms],
        confirm_sut=next((row.host.name for row in others if row.confirms), None),
        confirm_after_hours=tuning.confirm_after_hours,
        confirms_at=tuning.confirms_at,
        limits=[LimitIn(**one) for one in tuning.limits],
        best=BestOut(**tuning.best) if tuning.best else None,
        smallest=SmallestOut(**tuning.smallest) if tuning.smallest else None,
        smaller_recipe=Named.of(tuning.smaller_recipe) if tuning.smaller_recipe else None,
        runs=cost.runs,
        left_runs=cost.left_runs,
        used_s=cost.used.total_seconds(),
        left_s=cost.left.total_seconds() if cost.left is not None else None,
        trials=[
            TuningTrialOut(
                sut=names[one.host],
                run=one.run.number if one.run else None,
                run_url=run_url(team, one.run.number) if one.run else None,
                **{name: getattr(one, name) for name in same},
            )
            for one in trials
        ],
    )
