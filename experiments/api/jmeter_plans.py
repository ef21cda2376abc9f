"""JMeter plans: what one asks for and what in it could do harm, before a workload is made of it."""

from __future__ import annotations

from django.http import HttpRequest
from ninja import Router
from pydantic import BaseModel, Field

from agents.base.errors import PlanError
from agents.drivers.jmeter.jmx import MAX_PLAN_CHARS, harm
from agents.drivers.jmeter.jmx_properties import plan_properties, suggested
from experiments.api.plumbing.auth import WRITE, member_of
from experiments.api.shapes import Body
from experiments.models import Role
from experiments.registry.errors import RequestError
from experiments.registry.teams.access import require

router = Router(auth=WRITE, tags=["workloads"])


class JmeterPlanIn(Body):
    jmx: str = Field(min_length=1, max_length=MAX_PLAN_CHARS, description="A test plan as JMeter saved it")

    model_config = {"str_strip_whitespace": False}


class PlanPropertyOut(BaseModel):
    name: str
    default: str | None = Field(description="What the plan uses when nothing is given; null = nothing, or a secret")
    secret: bool


class JmeterPlanOut(BaseModel):
    properties: list[PlanPropertyOut]
    suggested: dict[str, str] = Field(description="`properties` of the workload's load tool, by what their names say")
    needs_shell: list[str] = Field(description="What may run programs or touch files: asks for `allow_shell`")


@router.post("", response=JmeterPlanOut)
def read_jmeter_plan(request: HttpRequest, payload: JmeterPlanIn) -> JmeterPlanOut:
    """The properties that a plan asks for with `${__P(name,default)}`. Nothing is stored."""
    require(member_of(request), Role.EDITOR)  # as whoever saves the workload that comes of it
    try:
        found, harmful = plan_properties(payload.jmx), harm(payload.jmx)
    except PlanError as error:
        raise RequestError(f"{error.message} {error.hint}".strip(), field="jmx") from error
    return JmeterPlanOut(
        properties=[PlanPropertyOut(name=one.name, default=one.default, secret=one.secret) for one in found],
        suggested=suggested(found),
        needs_shell=harmful,
    )
