"""Starting a run, in two calls: a plan that starts nothing, and its confirmation. Both are off unless switched on."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Annotated, Any

from asgiref.sync import sync_to_async
from django.core import signing
from pydantic import BaseModel, Field, ValidationError

from agents.spec import MAX_DRIVERS, ApplicationDocument, WorkloadDocument
from agents.steps.recipe import RecipeDocument, Value
from experiments.api.shapes import Labels, Parameters
from experiments.asking.launching.choices import typed_parameters
from experiments.mcp.asking import Api, Refused
from experiments.mcp.fitting import MAX_TEXT, with_marked
from experiments.mcp.tool import Answer, Arguments, Tool
from experiments.mcp.tools.lab import STATE_REASON
from experiments.mcp.tools.runs import row_of, waiting_of
from experiments.registry.documents.rights import reserved_parts
from experiments.registry.errors import RequestError

VALID_S = 600
_SALT = "benchhub.mcp.plan"
_SCHEMAS: Mapping[str, type[BaseModel]] = {
    "application": ApplicationDocument,
    "recipe": RecipeDocument,
    "workload": WorkloadDocument,
}

# A slash would lead to another address of the API.
Reference = Annotated[
    str, Field(min_length=1, max_length=130, pattern=r"^[^/]+$", description="Name of a stored document, or name@3")
]
HostName = Annotated[str, Field(min_length=1, max_length=120, pattern=r"^[^/]+$")]


class PlanRun(Arguments):
    application: Reference
    recipe: Reference
    workload: Reference
    sut: HostName = Field(description="Host under test, of list_hosts")
    drivers: list[HostName] = Field(min_length=1, max_length=MAX_DRIVERS, description="Hosts that make the load")
    members: dict[str, HostName] = Field({}, max_length=8, description="Of a system: role -> host")
    parameters: Parameters = {}
    labels: Labels = {}


class LaunchPlan(Arguments):
    plan: str = Field(min_length=1, max_length=MAX_TEXT, description="`plan` of the answer of plan_run, unchanged")


async def plan_run(api: Api, asked: PlanRun) -> Answer:
    """What would be launched, with exact versions, and what it would take. Refused when it must not be."""
    documents = {kind: await _document(api, kind, getattr(asked, kind)) for kind in _SCHEMAS}
    read = {kind: _read(kind, document) for kind, document in documents.items()}
    parameters = _typed(read["recipe"], asked.parameters)
    for kind, document in documents.items():
        given = parameters if kind == "recipe" else None
        await sync_to_async(_refuse_reserved)(kind, document["name"], read[kind], given)
    hosts = [await _host(api, name) for name in dict.fromkeys([asked.sut, *asked.drivers, *asked.members.values()])]
    pinned = {kind: f"{document['name']}@{document['version']}" for kind, document in documents.items()}
    body = {**asked.model_dump(), **pinned, "parameters": parameters}
    forecast = await api.post("/experiments/forecasts", _as_experiment(body))
    plan = signing.dumps({"body": body, "token": api.caller.token_id}, salt=_SALT, compress=True)
    if len(plan) > MAX_TEXT:  # it would be cut, and so would be no plan
        raise Refused("Labels and parameters are too long for a plan (field: labels); shorten them.", 422)
    content = {
        "would_launch": body,
        "steps_of_the_recipe": [str(step.get("kind")) for step in documents["recipe"]["body"].get("steps", [])],
        "hosts": hosts,
        "estimated_duration_s": forecast["first"]["duration_s"],
        "nothing_is_started": f"Show this to the person you work for. Only if they agree, call launch_plan with `plan` "
        f"within {VALID_S // 60} minutes.",
        "plan": plan,
    }
    return Answer(content)


async def launch_plan(api: Api, asked: LaunchPlan) -> Answer:
    """Queue the run of a plan; the same plan starts one run, however often it comes."""
    try:
        found = signing.loads(asked.plan, salt=_SALT, max_age=VALID_S)
    except signing.SignatureExpired as error:
        raise Refused(
            f"The plan is older than {VALID_S // 60} minutes (field: plan); call plan_run again.", 409
        ) from error
    except signing.BadSignature as error:
        raise Refused("This is no plan of plan_run (field: plan); give it back unchanged.", 422) from error
    if found["token"] != api.caller.token_id:
        raise Refused("The plan was made with another token (field: plan); call plan_run again.", 403)
    key = f"mcp-{hashlib.sha256(asked.plan.encode()).hexdigest()}"
    run = await api.post("/runs", found["body"], key=key)
    return Answer({"launched": row_of(run), "url": run["url"], "waiting": waiting_of(run)}, [run["number"]])


async def _document(api: Api, kind: str, reference: str) -> dict[str, Any]:
    name, at, version = reference.rpartition("@")
    if not (at and version.isascii() and version.isdigit() and len(version) < 10):
        name, version = reference, ""
    try:
        found: dict[str, Any] = await api.get(f"/{kind}s/{name}", version=version)
    except Refused as refused:
        raise Refused(f"There is no {kind} {reference!r} (field: {kind}).", refused.status) from refused
    return found


async def _host(api: Api, name: str) -> dict[str, Any]:
    host = await api.get(f"/hosts/{name}")
    if not host["may_launch"]:
        raise Refused(f"You may not launch on the host {name!r}.", 403)
    shown = {name: host[name] for name in ("name", "state", "state_reason", "leased_by", "reserved_by")}
    return with_marked(shown, "state_reason", STATE_REASON)


def _read(kind: str, document: dict[str, Any]) -> BaseModel:
    try:
        return _SCHEMAS[kind].model_validate(document["body"])
    except ValidationError as error:
        raise Refused(
            f"The {kind} does not fit this version of BenchHub; save it again (field: {kind}).", 422
        ) from error


def _typed(recipe: Any, given: Mapping[str, Value]) -> dict[str, Value]:
    try:
        return typed_parameters(recipe, given)
    except RequestError as error:
        raise Refused(f"{error.message} (field: {error.field})", 422) from error


def _refuse_reserved(kind: str, name: str, read: BaseModel, given: Mapping[str, Value] | None) -> None:
    """Refused when the document has what can make a host do whatever its author likes: shell text first of all."""
    found = reserved_parts(read, given)
    if found:
        raise Refused(f"The {kind} {name} has {found[0]}. An assistant does not start that (field: {kind}).", 403)


def _as_experiment(body: dict[str, Any]) -> dict[str, Any]:
    variant = {name: body[name] for name in ("application", "recipe", "sut", "drivers", "members", "parameters")}
    return {
        "name": "plan",
        "workload": body["workload"],
        "variants": [{"name": "plan", **variant}],
        "repetitions": 1,
        "labels": body["labels"],
    }


TOOLS = (
    Tool(
        "plan_run",
        "Plan a run",
        "What a run of stored documents on registered hosts would be: exact versions, steps, hosts, duration. Starts "
        "nothing. Documents with shell text or anything else that only an admin may save are refused.",
        PlanRun,
        plan_run,
        scope="launch",
        starts=True,
    ),
    Tool(
        "launch_plan",
        "Launch a planned run",
        "Queues the run of a plan of plan_run, once. Call it only after the person you work for has agreed to it.",
        LaunchPlan,
        launch_plan,
        scope="launch",
        starts=True,
    ),
)
