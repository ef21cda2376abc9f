"""From a whole RunSpec that a client sends back to the team's own hosts and document versions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agents.base.errors import PlanError
from agents.spec import HostAddress, RunSpec
from agents.steps.recipe import ON, Parameter, RecipeDocument
from agents.system import LOADED
from experiments.asking.launching.choices import Choice, built_in_values, placed_application, steps_by_role
from experiments.models import Application, Document, Host, Member, Recipe, Workload
from experiments.registry.documents.contents import content_of
from experiments.registry.documents.versions import save_version
from experiments.registry.errors import RequestError
from experiments.registry.hosts.addresses import address_of

_PARAMETER_TYPES = {bool: "bool", int: "int", float: "float", str: "str"}
_STANDARD_INTERVAL_S = 1.0
_OWN_LOAD = ("own_rate_rps", "own_concurrency")


def choice_of(member: Member, spec: RunSpec) -> Choice:
    """The choice that freezes to `spec` again.

    Hosts are the team's own, found by name, and must still be where the spec says. A document that is not stored in
    exactly this form becomes a version for this run alone, for which the member needs the right to save.
    """
    if spec.monitor_interval_s != _STANDARD_INTERVAL_S:
        raise RequestError("The monitors read once a second; leave this field out.", field="monitor_interval_s")
    sut = _host(member, spec.sut, "sut")
    drivers = [_host(member, driver, f"drivers.{number}") for number, driver in enumerate(spec.drivers)]
    members = {one.role: _host(member, one.host, f"members.{number}.host") for number, one in enumerate(spec.members)}
    application = _application(member, spec, sut, members)
    workload = _document(member, Workload, spec.workload)
    recipe = _recipe(member, spec, sut, members)
    parameters = dict(spec.recipe.parameters)
    return Choice(
        application, recipe, workload, sut, drivers, parameters, members=members, profilers=tuple(spec.profilers)
    )


def _host(member: Member, address: HostAddress, role: str) -> Host:
    host: Host | None = Host.objects.for_team(member.team).with_state().filter(name=address.name).first()
    if host is None:
        raise RequestError(f"There is no host named {address.name!r}.", field=f"{role}.name")
    stored = address_of(host).model_dump()
    for key, value in address.model_dump().items():
        if stored[key] != value:
            raise RequestError(f"{host.name} is registered with another {key}.", field=f"{role}.{key}")
    return host


def _application(member: Member, spec: RunSpec, sut: Host, members: Mapping[str, Host]) -> Application:
    """The stored one that has these addresses in it where its members stand on these hosts, else one of its own."""
    wanted = spec.application
    stored = _version(member, Application, wanted.name, wanted.version)
    if stored is not None and spec.members:
        body = wanted.model_dump(mode="json", by_alias=True, exclude={"name", "version"})
        try:
            placed = placed_application(stored, sut, members)
        except RequestError:
            placed = None
        if placed is not None and placed.model_dump(mode="json", by_alias=True) == body:
            found: Application = stored
            return found
    made: Application = _document(member, Application, wanted)
    return made


def _document(member: Member, model: type[Document], wanted: Any) -> Any:
    body = wanted.model_dump(mode="json", by_alias=True, exclude={"name", "version", *_OWN_LOAD})
    stored = _version(member, model, wanted.name, wanted.version)
    if stored is not None and content_of(stored).model_dump(mode="json", by_alias=True) == body:
        return stored
    return save_version(member, model, wanted.name, body, note="From a run's specification.", one_off=True)


def _recipe(member: Member, spec: RunSpec, sut: Host, members: Mapping[str, Host]) -> Recipe:
    wanted = spec.recipe
    by_role = {LOADED: wanted.steps, **{one.role: one.steps for one in spec.members}}
    stored = _version(member, Recipe, wanted.name, wanted.version)
    if stored is not None:
        document: RecipeDocument = content_of(stored)
        try:
            built_in = built_in_values(spec.application, sut, members)
            steps = document.resolve(wanted.parameters, built_in=built_in)
            stored_steps = steps_by_role(document, spec.application, steps)
        except (PlanError, RequestError):
            stored_steps = None
        if stored_steps == by_role and document.values(wanted.parameters) == wanted.parameters:
            found: Recipe = stored
            return found
    body = {
        "parameters": {
            name: Parameter(type=_PARAMETER_TYPES[type(value)], default=value).model_dump(mode="json")  # type: ignore[arg-type]
            for name, value in wanted.parameters.items()
        },
        "steps": [
            step.model_dump(mode="json", by_alias=True) | ({} if role == LOADED else {ON: role})
            for role, steps in by_role.items()
            for step in steps
        ],
    }
    return save_version(member, Recipe, wanted.name, body, note="From a run's specification.", one_off=True)


def _version(member: Member, model: type[Document], name: str, version: int) -> Any:
    return model.objects.for_team(member.team).filter(name=name, version=version).first()
