"""What a run is made of, chosen and then frozen: the RunSpec holds every value that it will use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import ValidationError

from agents.base.cpuset import parse_cpus
from agents.base.errors import PlanError
from agents.base.model import first_problem
from agents.spec import Application as SpecApplication
from agents.spec import Recipe as SpecRecipe
from agents.spec import RunSpec
from agents.steps.recipe import RecipeDocument, Value
from experiments.asking.launching.cpu_sets import check_cpu_sets
from experiments.models import Application, Host, Member, Recipe, Variant, Workload
from experiments.registry.documents.contents import content_of
from experiments.registry.documents.own_load import workload_with
from experiments.registry.documents.rights import insist_on_launching
from experiments.registry.errors import RequestError
from experiments.registry.hosts.addresses import address_of
from experiments.registry.hosts.driver_sets import check_parts


@dataclass(frozen=True)
class Choice:
    """What one run is made of, before it is frozen."""

    application: Application
    recipe: Recipe
    workload: Workload
    sut: Host
    drivers: Sequence[Host]
    parameters: Mapping[str, Value] = field(default_factory=dict)
    offered_rate_rps: float | None = None
    """In place of the workload's own rate."""
    concurrency: int | None = None
    """In place of the workload's connections or users."""


@dataclass(frozen=True)
class Candidate:
    """One variant of an experiment that is to be made."""

    name: str
    application: Application
    recipe: Recipe
    sut: Host
    drivers: Sequence[Host]
    parameters: Mapping[str, Value] = field(default_factory=dict)
    is_baseline: bool = False
    offered_rate_rps: float | None = None
    concurrency: int | None = None


def choice_with(candidate: Candidate | Variant, workload: Workload) -> Choice:
    """What a run of this variant is made of."""
    return Choice(
        application=candidate.application,
        recipe=candidate.recipe,
        workload=workload,
        sut=candidate.sut,
        drivers=candidate.drivers.in_order if isinstance(candidate, Variant) else candidate.drivers,
        parameters=candidate.parameters,
        offered_rate_rps=candidate.offered_rate_rps,
        concurrency=candidate.concurrency,
    )


def freeze(choice: Choice) -> RunSpec:
    """The RunSpec of this choice, parameters filled in. RequestError names the field that does not fit."""
    spec = filled_in(choice)
    check_cpu_sets(spec, choice.sut, choice.drivers)
    return spec


def filled_in(choice: Choice) -> RunSpec:
    """The same before its CPU sets are looked at, for whoever proposes others. RequestError as `freeze`."""
    _check_hosts(choice)
    document: RecipeDocument = content_of(choice.recipe)
    application = content_of(choice.application)
    try:
        built_in = built_in_values(application.server.instance(0).cpus, choice.sut)
        steps = document.resolve(choice.parameters, built_in=built_in)
    except PlanError as error:
        raise RequestError(error.message, field="parameters") from error
    try:
        spec = RunSpec(
            application=SpecApplication(
                **dict(application), name=choice.application.name, version=choice.application.version
            ),
            recipe=SpecRecipe(
                name=choice.recipe.name,
                version=choice.recipe.version,
                parameters=document.values(choice.parameters),
                steps=steps,
            ),
            workload=workload_with(
                choice.workload,
                len(choice.drivers),
                rate_rps=choice.offered_rate_rps,
                concurrency=choice.concurrency,
            ),
            sut=address_of(choice.sut),
            drivers=tuple(address_of(host) for host in sorted(choice.drivers, key=lambda host: int(host.pk))),
        )
    except ValidationError as error:
        path, problem = first_problem(error)
        raise RequestError(problem, field=".".join(map(str, path))) from error
    return spec


def freeze_for(member: Member, choice: Choice) -> RunSpec:
    """The choice, frozen. Forbidden when its parameters make the host do what only an admin may launch."""
    spec = freeze(choice)
    insist_on_launching(member, content_of(choice.recipe), choice.parameters, spec.recipe.steps)
    return spec


def built_in_values(server_cpus: str, sut: Host) -> dict[str, Value]:
    """Values that every recipe may use: `sut_cpu_count`, the CPUs that the server (each instance of it) may run on."""
    cpus = parse_cpus(server_cpus)
    if not cpus and sut.profile is not None:
        cpus = parse_cpus(sut.profile.facts.get("cpu.online", ""))
    return {"sut_cpu_count": len(cpus)} if cpus else {}


def _check_hosts(choice: Choice) -> None:
    check_parts(choice.sut, choice.drivers)
    hosts = {host.team_id for host in (choice.sut, *choice.drivers)}
    teams = {*hosts, choice.application.team_id, choice.recipe.team_id}
    if teams != {choice.workload.team_id}:
        raise RequestError("All parts of a run must belong to one team.")
