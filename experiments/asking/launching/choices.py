"""What a run is made of, chosen and then frozen: the RunSpec holds every value that it will use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import ValidationError

from agents.base.cpuset import parse_cpus
from agents.base.errors import PlanError
from agents.base.model import first_problem
from agents.spec import Application as SpecApplication
from agents.spec import ApplicationDocument, MemberPlace, RunSpec
from agents.spec import Recipe as SpecRecipe
from agents.steps import AnyStep
from agents.steps.recipe import RecipeDocument, Value
from agents.system import LOADED
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
    members: Mapping[str, Host] = field(default_factory=dict)
    """Role of each further member of the application -> its host."""
    profilers: tuple[str, ...] = ()
    """With any, the run is a profiled one, which counts nowhere."""

    @property
    def hosts(self) -> tuple[Host, ...]:
        """All hosts that a run of it needs."""
        return (self.sut, *self.members.values(), *self.drivers)


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
    members: Mapping[str, Host] = field(default_factory=dict)

    @property
    def hosts(self) -> tuple[Host, ...]:
        """All hosts that a run of it needs."""
        return (self.sut, *self.members.values(), *self.drivers)


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
        members=candidate.drivers.members if isinstance(candidate, Variant) else candidate.members,
    )


def typed_parameters(
    document: RecipeDocument, given: Mapping[str, Value], *, field: str = "parameters"
) -> dict[str, Value]:
    """The parameters as the recipe declares them, where a program or a person gave them as texts (`65535`, `true`).

    RequestError names the one (`parameters.nofile`) whose text is no value of its type. Whether the values fit, and
    what the recipe does not have, is for `freeze` to say.
    """
    found: dict[str, Value] = {}
    for name, value in given.items():
        declared = document.parameters.get(name)
        try:
            found[name] = declared.read(name, value) if declared else value
        except PlanError as error:
            raise RequestError(error.message, field=f"{field}.{name}") from error
    return found


def freeze(choice: Choice) -> RunSpec:
    """The RunSpec of this choice, parameters filled in. RequestError names the field that does not fit."""
    spec = filled_in(choice)
    check_cpu_sets(spec, choice.sut, choice.drivers, choice.members)
    return spec


def filled_in(choice: Choice) -> RunSpec:
    """The same before its CPU sets are looked at, for whoever proposes others. RequestError as `freeze`."""
    _check_hosts(choice)
    document: RecipeDocument = content_of(choice.recipe)
    application = placed_application(choice.application, choice.sut, choice.members)
    try:
        built_in = built_in_values(application, choice.sut, choice.members)
        steps = steps_by_role(document, application, document.resolve(choice.parameters, built_in=built_in))
    except PlanError as error:
        field = f"parameters.{error.parameter}" if error.parameter else "parameters"
        raise RequestError(error.message, field=field) from error
    try:
        spec = RunSpec(
            application=SpecApplication(
                **dict(application), name=choice.application.name, version=choice.application.version
            ),
            recipe=SpecRecipe(
                name=choice.recipe.name,
                version=choice.recipe.version,
                parameters=document.values(choice.parameters),
                steps=steps[LOADED],
            ),
            workload=workload_with(
                choice.workload,
                len(choice.drivers),
                rate_rps=choice.offered_rate_rps,
                concurrency=choice.concurrency,
            ),
            sut=address_of(choice.sut),
            members=tuple(
                MemberPlace(role=role, host=address_of(choice.members[role]), steps=steps[role])
                for role in application.roles
            ),
            drivers=tuple(address_of(host) for host in sorted(choice.drivers, key=lambda host: int(host.pk))),
            profilers=choice.profilers,
        )
    except ValidationError as error:
        path, problem = first_problem(error)
        raise RequestError(problem, field=".".join(map(str, path))) from error
    return spec


def freeze_for(member: Member, choice: Choice) -> RunSpec:
    """The choice, frozen. Forbidden when its parameters make the host do what only an admin may launch."""
    spec = freeze(choice)
    document: RecipeDocument = content_of(choice.recipe)
    built_in = built_in_values(spec.application, choice.sut, choice.members)
    steps = document.resolve(choice.parameters, built_in=built_in)
    insist_on_launching(member, document, choice.parameters, steps, built_in=built_in)
    return spec


def placed_application(application: Application, sut: Host, members: Mapping[str, Host]) -> ApplicationDocument:
    """The application with the addresses of its members in it. RequestError (field `members`) when its members are not
    those that hosts were chosen for."""
    document = content_of(application)
    if set(members) != set(document.roles):
        wanted = ", ".join(document.roles) or "none"
        raise RequestError(f"Choose a host for each further member of {application.name}: {wanted}.", field="members")
    try:
        return document.placed(_addresses(sut, members))
    except ValidationError as error:
        _, problem = first_problem(error)
        raise RequestError(f"With the addresses of its members: {problem}", field="application") from error


def steps_by_role(
    document: RecipeDocument, application: ApplicationDocument, steps: Sequence[AnyStep]
) -> dict[str, tuple[AnyStep, ...]]:
    """The recipe's steps by the member that they are for. RequestError (field `recipe`) when there is none such."""
    own = {"", LOADED, application.role}
    roles = [LOADED if role in own else role for role in document.roles]
    if unknown := next((role for role in roles if role != LOADED and role not in application.roles), None):
        raise RequestError(
            f"The recipe has a step on {unknown}, which is no member of the application "
            f"({', '.join(application.roles) or 'it has one server'}).",
            field="recipe",
        )
    meant = list(zip(roles, steps, strict=True))
    return {role: tuple(step for one, step in meant if one == role) for role in (LOADED, *application.roles)}


def built_in_values(application: ApplicationDocument, sut: Host, members: Mapping[str, Host]) -> dict[str, Value]:
    """Values that every recipe may use: `sut_cpu_count`, the CPUs that the server (each instance of it) may run on.

    Of a system also `database.address` and `database.port`.
    """
    cpus = parse_cpus(application.server.instance(0).cpus)
    if not cpus and sut.profile is not None:
        cpus = parse_cpus(sut.profile.facts.get("cpu.online", ""))
    places = application.places(_addresses(sut, members))
    named: dict[str, Value] = {f"{role}.address": address for role, (address, _) in places.items()}
    named |= {f"{role}.port": port for role, (_, port) in places.items()}
    return named | ({"sut_cpu_count": len(cpus)} if cpus else {})


def _addresses(sut: Host, members: Mapping[str, Host]) -> dict[str, str]:
    return {role: address_of(host).target_address for role, host in ((LOADED, sut), *members.items())}


def _check_hosts(choice: Choice) -> None:
    check_parts(choice.sut, choice.drivers, choice.members)
    hosts = {host.team_id for host in choice.hosts}
    teams = {*hosts, choice.application.team_id, choice.recipe.team_id}
    if teams != {choice.workload.team_id}:
        raise RequestError("All parts of a run must belong to one team.")
