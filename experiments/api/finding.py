"""Objects by the names in an address. Another team's is not found, in the same words as one that does not exist."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from experiments.models import Document, Experiment, Host, Member, Run
from experiments.registry.errors import NotFound, RequestError


def find_run(member: Member, number: int) -> Run:
    """The run of this number in the member's team, with all that its answer names. Raises NotFound."""
    run = Run.objects.for_team(member.team).numbered(number)
    if run is None:
        raise NotFound(f"There is no run #{number}.")
    return run


def find_experiment(member: Member, experiment_id: int) -> Experiment:
    """The experiment of this id in the member's team. Raises NotFound."""
    experiments = Experiment.objects.for_team(member.team).select_related("workload", "created_by")
    found: Experiment | None = experiments.filter(pk=experiment_id).first()
    if found is None:
        raise NotFound(f"There is no experiment {experiment_id}.")
    return found


def find_host(member: Member, name: str) -> Host:
    """The host of this name in the member's team, with its state. Raises NotFound."""
    host: Host | None = Host.objects.for_team(member.team).with_state().filter(name=name).first()
    if host is None:
        raise NotFound("There is no host of this name.")
    return host


def find_document(member: Member, model: type[Document], name: str, version: int | None = None) -> Any:
    """The named version, else the newest one (also of an archived name)."""
    versions = model.objects.for_team(member.team).filter(name=name)
    versions = versions.filter(one_off=False) if version is None else versions.filter(version=version)
    found = versions.select_related("created_by").order_by("-version").first()
    if found is None:
        raise NotFound(f"There is no such {model.__name__.lower()}.")
    return found


def named_document(member: Member, model: type[Document], reference: str, *, field: str) -> Any:
    """The version in a body: "name" is the newest one, "name@3" the third. RequestError names the field.

    A name that ends so itself, which older versions let people make, is found where no version is meant.
    """
    name, at, version = reference.rpartition("@")
    if not (at and version.isascii() and version.isdigit() and len(version) < 10):
        name, version = reference, ""
    try:
        return find_document(member, model, name, int(version) if version else None)
    except NotFound as error:
        if version:
            with suppress(NotFound):
                return find_document(member, model, reference)
        newest = model.objects.for_team(member.team).filter(name=name, one_off=False).order_by("-version").first()
        there = f" The newest version of {name} is {newest.version}." if newest else ""
        raise RequestError(f"There is no {model.__name__.lower()} {reference!r}.{there}", field=field) from error


def named_hosts(member: Member, names: Sequence[str], *, field: str) -> list[Host]:
    """The hosts of these names. RequestError names the one that does not exist."""
    return [named_host(member, name, field=f"{field}.{place}") for place, name in enumerate(names)]


def named_members(member: Member, names: Mapping[str, str], *, field: str) -> dict[str, Host]:
    """Role -> host of the given name. RequestError names the role whose host does not exist."""
    return {role: named_host(member, name, field=f"{field}.{role}") for role, name in names.items()}


def named_host(member: Member, name: str, *, field: str) -> Host:
    """The host that a body names in this field; RequestError for the field when there is none."""
    try:
        return find_host(member, name)
    except NotFound as error:
        raise RequestError(f"There is no host {name!r}.", field=field) from error
