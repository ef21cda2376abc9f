"""Why: what goes with the verdicts of an experiment, or with a change point."""

from __future__ import annotations

from django.http import HttpRequest
from ninja import Router
from ninja.params.functions import Query
from pydantic import BaseModel, Field

from experiments.analysis.explanations import Evidence, Kind
from experiments.api.finding import find_experiment
from experiments.api.plumbing.auth import READ, member_of
from experiments.judging.alerts.triage import find_alert
from experiments.judging.explaining.why import Answer, why_of_alert, why_of_experiment
from experiments.registry.errors import NotFound

router = Router(auth=READ, tags=["compare"])


class ExplanationOut(BaseModel):
    kind: Kind
    evidence: Evidence = Field(
        description="interval: shown, its interval leaves out 0; difference: it differs, no interval says more; "
        "against: shown, in the direction that does not fit"
    )
    name: str = Field(description="The function, or the host and its channel; empty of a plain difference")
    sentence: str
    unit: str
    change: float | None
    ci95: tuple[float, float] | None
    adjusted_p: float | None = Field(description="Corrected for all that was looked at together")


class WhyOut(BaseModel):
    """What goes with one change, in the order in which to look at it."""

    of: str = Field(description="The candidate, or the change point")
    metric: str
    frame: str = Field(description="Whether requests cost more or wait; or that there is nothing to explain")
    headline: str
    found: list[ExplanationOut]
    missing: list[str] = Field(description="What was not measured, or too rarely")
    measured: int = Field(description="How many functions and figures were compared")
    baseline: list[int] = Field(description="The runs that were looked at")
    candidate: list[int]

    @classmethod
    def of_answer(cls, answer: Answer) -> WhyOut:
        why = answer.why
        return cls(
            of=answer.of,
            metric=answer.metric,
            frame=answer.frame,
            headline=why.headline if why else "",
            found=[ExplanationOut.model_validate(one, from_attributes=True) for one in why.found] if why else [],
            missing=list(why.missing) if why else [],
            measured=why.measured if why else 0,
            baseline=list(answer.baseline),
            candidate=list(answer.candidate),
        )


@router.get("/experiments/{int:experiment_id}/why", response=list[WhyOut])
def experiment_why(
    request: HttpRequest,
    experiment_id: int,
    metric: str = Query("", max_length=60, description="Whose verdicts; the one that decides when left out"),
) -> list[WhyOut]:
    """What goes with the verdict of each candidate, from all that was measured of both sides."""
    experiment = find_experiment(member_of(request), experiment_id)
    return [WhyOut.of_answer(one) for one in why_of_experiment(experiment, metric.replace("\0", ""))]


@router.get("/alerts/{int:alert_id}/why", response=WhyOut)
def alert_why(request: HttpRequest, alert_id: int) -> WhyOut:
    """What goes with a change point: the runs before it against those since. 404 where its runs are gone."""
    found = why_of_alert(find_alert(member_of(request).team, alert_id))
    if found is None:
        raise NotFound("There are no runs on both sides of this alert.")
    return WhyOut.of_answer(found)
