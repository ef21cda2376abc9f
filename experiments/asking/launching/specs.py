"""From a whole RunSpec that a client sends back to the team's own hosts and document versions."""

from __future__ import annotations

from typing import Any

from agents.base.errors import PlanError
from agents.spec import HostAddress, RunSpec
from agents.steps.recipe import Parameter, RecipeDocument
from experiments.asking.launching.choices import Choice, built_in_values
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
    application = _document(member, Application, spec.application)
    workload = _document(member, Workload, spec.workload)
    return Choice(application, _recipe(member, spec, sut), workload, sut, drivers, dict(spec.recipe.parameters))


def _host(member: Member, address: HostAddress, role: str) -> Host:
    host: Host | None = Host.objects.for_team(member.team).with_state().filter(name=address.name).first()
    if host is None:
        raise RequestError(f"There is no host named {address.name!r}.", field=f"{role}.name")
    stored = address_of(host).model_dump()
    for key, value in address.model_dump().items():
        if stored[key] != value:
            raise RequestError(f"{host.name} is registered with another {key}.", field=f"{role}.{key}")
    return host


def _document(member: Member, model: type[Document], wanted: Any) -> Any:
    body = wanted.model_dump(mode="json", by_alias=True, exclude={"name", "version", *_OWN_LOAD})
    stored = _version(member, model, wanted.name, wanted.version)
    if stored is not None and content_of(stored).model_dump(mode="json", by_alias=True) == body:
        return stored
    return save_version(member, model, wanted.name, body, note="From a run's specification.", one_off=True)


def _recipe(member: Member, spec: RunSpec, sut: Host) -> Recipe:
    wanted = spec.recipe
    stored = _version(member, Recipe, wanted.name, wanted.version)
    if stored is not None:
        document: RecipeDocument = content_of(stored)
        try:
            built_in = built_in_values(spec.application.server.instance(0).cpus, sut)
            steps = document.resolve(wanted.parameters, built_in=built_in)
        except PlanError:
            steps = None
        if steps == wanted.steps and document.values(wanted.parameters) == wanted.parameters:
            found: Recipe = stored
            return found
    body = {
        "parameters": {
            name: Parameter(type=_PARAMETER_TYPES[type(value)], default=value).model_dump(mode="json")  # type: ignore[arg-type]
            for name, value in wanted.parameters.items()
        },
        "steps": [step.model_dump(mode="json", by_alias=True) for step in wanted.steps],
    }
    return save_version(member, Recipe, wanted.name, body, note="From a run's specification.", one_off=True)


def _version(member: Member, model: type[Document], name: str, version: int) -> Any:
    return model.objects.for_team(member.team).filter(name=name, version=version).first()
