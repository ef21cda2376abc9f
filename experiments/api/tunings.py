"""Tuning searches: the best configuration of a recipe within bounds, confirmed by fresh runs."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Literal

from django.http import HttpRequest
from ninja import Router
from ninja.params.functions import Query
from ninja.responses import Status
from pydantic import ValidationError

from agents.base.model import first_problem
from experiments.analysis.tuning.effects import FEWEST_MEASURED
from experiments.api.finding import named_host, named_hosts
from experiments.api.plumbing.auth import LAUNCH, READ, WRITE, member_of
from experiments.api.plumbing.idempotency import idempotent
from experiments.api.setups import SetupIn
from experiments.api.shapes import MAX_ID, Named, run_url, tuning_url
from experiments.api.tuning_shapes import (
    BestOut,
    BudgetIn,
    CoordinatesOut,
    EffectsOut,
    LimitedOut,
    LimitIn,
    ParameterEffectOut,
    RegionIn,
    SmallestOut,
    TuningAnswerOut,
    TuningIn,
    TuningOut,
    TuningPage,
    TuningRow,
    TuningTrialOut,
)
from experiments.api.verdicts import MAX_WAIT_S, absolute, waited_for
from experiments.asking.tunings import live, steering
from experiments.asking.tunings.answer import answer_of
from experiments.asking.tunings.more_budget import more_for
from experiments.asking.tunings.plan import LimitWanted, TuningPlan
from experiments.asking.tunings.reading import cost_of, effects_in, shown, trials_of
from experiments.asking.tunings.recipes import save_recipe
from experiments.asking.tunings.space import SpaceDocument
from experiments.asking.tunings.trials import limited_of, space_to_search
from experiments.models import Member
from experiments.registry.documents.yaml_text import parse_yaml
from experiments.registry.errors import RequestError
from experiments.running.queue.priorities import PRIORITIES

router = Router(auth=READ, tags=["tunings"])

IN_YAML = TuningIn.model_fields.keys() - SetupIn.model_fields.keys() - {"name", "space"}
"""Fields that may stand in the YAML of the space as well: what asks and searches, not what a run is made of."""
WITHOUT_SAID = (
    "The newest version of the recipe, where it is later than the one that was searched: the version that is made is "
    "without what changed meanwhile, which is a 409 until somebody says so"
)


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
@idempotent
def pause_tuning(request: HttpRequest, tuning_id: int) -> Status[TuningOut]:
    """Launch no further trial; the one that is under way goes on to its end."""
    member = member_of(request)
    steering.pause(member, live.TUNINGS.find(member.team, tuning_id))
    return Status(202, _detail(member, tuning_id))


@router.post("/{int:tuning_id}/resume", response={202: TuningOut}, auth=LAUNCH)
@idempotent
def resume_tuning(request: HttpRequest, tuning_id: int) -> Status[TuningOut]:
    """Go on with the trial that would have followed, when it is paused or was stopped."""
    member = member_of(request)
    steering.resume(member, live.TUNINGS.find(member.team, tuning_id))
    return Status(202, _detail(member, tuning_id))


@router.post("/{int:tuning_id}/budget", response={202: TuningOut}, auth=LAUNCH)
@idempotent
def add_tuning_budget(request: HttpRequest, tuning_id: int, payload: BudgetIn) -> Status[TuningOut]:
    """Give a search more runs or hours; one that ended without a gain, or was stopped, goes on with them.

    What alone adds no run is refused, and `field` names what it needs as well: `hours`, where these end it before.
    """
    member = member_of(request)
    steering.add_budget(member, live.TUNINGS.find(member.team, tuning_id), runs=payload.runs, hours=payload.hours)
    return Status(202, _detail(member, tuning_id))


@router.post("/{int:tuning_id}/region", response={202: TuningOut}, auth=LAUNCH)
@idempotent
def leave_out_region(request: HttpRequest, tuning_id: int, payload: RegionIn) -> Status[TuningOut]:
    """Try nothing more in a region of the space, and recommend nothing of it."""
    member = member_of(request)
    steering.leave_out(member, live.TUNINGS.find(member.team, tuning_id), payload.mixture)
    return Status(202, _detail(member, tuning_id))


@router.post("/{int:tuning_id}/smallest", response={202: TuningOut}, auth=LAUNCH)
@idempotent
def find_smallest_recipe(request: HttpRequest, tuning_id: int) -> Status[TuningOut]:
    """Look which parameters of the confirmed configuration may go back to their defaults."""
    member = member_of(request)
    steering.find_smallest(member, live.TUNINGS.find(member.team, tuning_id))
    return Status(202, _detail(member, tuning_id))


@router.post("/{int:tuning_id}/recipe", response={201: Named}, auth=WRITE)
@idempotent
def save_tuned_recipe(
    request: HttpRequest,
    tuning_id: int,
    without_version: int | None = Query(None, ge=1, le=MAX_ID, description=WITHOUT_SAID),
) -> Status[Named]:
    """Make the answer a version of the recipe, with its evidence as the note."""
    member = member_of(request)
    made = save_recipe(member, live.TUNINGS.find(member.team, tuning_id), without_version=without_version)
    return Status(201, Named(name=made.name, version=made.version))


@router.post("/{int:tuning_id}/cancel", response={202: TuningOut}, auth=LAUNCH)
@idempotent
def cancel_tuning(request: HttpRequest, tuning_id: int) -> Status[TuningOut]:
    """End a search; the trial that is under way restores its hosts first."""
    member = member_of(request)
    live.TUNINGS.cancel(member, live.TUNINGS.find(member.team, tuning_id))
    return Status(202, _detail(member, tuning_id))


def _with_file(payload: TuningIn) -> tuple[TuningIn, dict[str, Any]]:
    """The payload and its space. YAML text may have fields of the payload in it; RequestError when both have one."""
    if not isinstance(payload.space, str):
        return payload, payload.space.model_dump(mode="json")
    space: dict[str, Any] = parse_yaml(payload.space)
    if not (given := {name: space.pop(name) for name in sorted(IN_YAML & space.keys())}):
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
        more_hours=more_for(tuning, [one for one in trials if one.result], tuning.more_runs).hours
        if tuning.more_runs
        else None,
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
                limited=[LimitedOut(**asdict(limited)) for limited in limited_of(tuning, one)],
                **{name: getattr(one, name) for name in same},
            )
            for one in trials
        ],
    )
