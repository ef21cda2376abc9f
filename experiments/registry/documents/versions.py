"""Applications, recipes and workloads: a save is a new version; YAML in and out; what differs between two versions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar, cast

from django.db import transaction
from django.db.models import Max
from pydantic import ValidationError

from agents.base.errors import PlanError
from agents.base.model import first_problem
from agents.servers import SERVERS
from agents.spec import WorkloadDocument
from agents.steps import STEPS
from agents.steps.base.step import Step
from agents.steps.recipe import RecipeDocument
from experiments.models import Document, Member, Recipe, Role, Team
from experiments.registry.documents.configuration import Difference, diff
from experiments.registry.documents.contents import SCHEMAS, content_of
from experiments.registry.documents.yaml_text import dump_yaml, parse_yaml
from experiments.registry.errors import Forbidden, RequestError
from experiments.registry.metrics.own_metrics import learn
from experiments.registry.metrics.vocabulary import MetricSpec, own_metric
from experiments.registry.teams.access import require
from experiments.registry.teams.audit import record

__all__ = ["archive", "diff_versions", "parse_yaml", "save_version", "to_yaml"]

Saved = TypeVar("Saved", bound=Document)

_ASSUMED_CPUS = 8  # stands in for `sut_cpu_count` when a recipe is checked without a host


def save_version(member: Member, model: type[Saved], name: str, body: Mapping[str, Any], *, note: str = "") -> Saved:
    """Store `body` as the newest version of `name`; a body equal to the newest version's returns that one.

    RequestError.field is the dotted path of what does not fit the schema. Raw commands, and files outside the run's
    instance, need the role admin.
    """
    require(member, Role.EDITOR)
    name = name.strip()
    if not 1 <= len(name) <= 120 or not name.isprintable() or "/" in name:
        raise RequestError("A name has 1 to 120 characters, all of them printable and none a slash.", field="name")
    if len(note) > 400:
        raise RequestError("A note has at most 400 characters.", field="note")
    document = _validated(model, body)
    if isinstance(document, RecipeDocument):
        _check_steps(document)
    if isinstance(document, WorkloadDocument) and document.driver.needs_shell and member.role != Role.ADMIN:
        raise Forbidden("This load tool may run programs on the driver host, so only an admin may save it.")
    stored = document.model_dump(mode="json", by_alias=True)
    if member.role != Role.ADMIN and (_reaches_the_host(stored) or gives_a_shell(document)):
        raise Forbidden(
            "Raw commands, packages, services, files outside the run's own instance and whatever else runs programs "
            "of its author can do anything on the host, so only an admin may save them."
        )
    with transaction.atomic():
        # The team's row is the lock: version numbers have no gap and no double, whoever saves at the same time.
        Team.objects.select_for_update(no_key=True).get(pk=member.team_id)
        versions = model.objects.filter(team_id=member.team_id, name=name)
        newest = cast("Saved | None", versions.order_by("-version").first())
        if newest is not None and newest.body == stored and not newest.archived:
            return newest
        number = (versions.aggregate(last=Max("version"))["last"] or 0) + 1
        created = model(
            team_id=member.team_id,
            name=name,
            version=number,
            body=stored,
            note=note.strip(),
            created_by_id=member.user_id,
        )
        created.save(force_insert=True)
        if isinstance(document, WorkloadDocument):
            learn(member.team, _declared(document))
        record(
            member,
            f"{noun(model)}.save",
            f"{noun(model)} {created}",
            before=newest.body if newest else None,
            after=stored,
        )
    return created


def _declared(document: WorkloadDocument) -> list[MetricSpec]:
    """The own metrics that the workload's load tool declares, known before its first run."""
    return [own_metric(*declared) for declared in document.driver.own_metrics()]


def archive(member: Member, document: Document) -> None:
    """Take every version of this name out of the lists; runs keep the version that they used."""
    require(member, Role.EDITOR)
    model = type(document)
    with transaction.atomic():
        changed = model.objects.filter(team_id=member.team_id, name=document.name, archived=False).update(archived=True)
        if changed:
            record(member, f"{noun(model)}.archive", f"{noun(model)} {document.name}")
    document.refresh_from_db()


def noun(model: type[Document]) -> str:
    """What people call it: application, recipe, workload."""
    return model.__name__.lower()


def to_yaml(document: Document) -> str:
    """The body as YAML that `parse_yaml` and `save_version` take back."""
    ordered = content_of(document).model_dump(mode="json", by_alias=True)  # PostgreSQL keeps no order of keys
    return dump_yaml({key: _kind_first(value) for key, value in ordered.items()})


def _kind_first(node: Any) -> Any:
    if isinstance(node, Mapping):
        return {key: _kind_first(node[key]) for key in sorted(node, key=lambda key: key != "kind")}
    return [_kind_first(child) for child in node] if isinstance(node, list) else node


def diff_versions(a: Document, b: Document) -> list[Difference]:
    """What differs between two bodies, as flat paths with both values; None = not there."""
    found = diff([dict(_flat(a.body)), dict(_flat(b.body))], asked=lambda _path: True)
    return list(found.asked)


def _validated(model: type[Document], body: Mapping[str, Any]) -> Any:
    try:
        document = SCHEMAS[model].model_validate(dict(body))
        json.dumps(document.model_dump(mode="json", by_alias=True), allow_nan=False)
    except ValidationError as error:
        path, problem = first_problem(error)
        where = ".".join(map(str, path))
        raise RequestError(f"{where or 'document'}: {problem}", field=where) from error
    except ValueError as error:
        raise RequestError("Numbers must be finite.", field="body") from error
    return document


def _check_steps(document: RecipeDocument) -> None:
    """Every step must fit its kind, as far as that can be said before the parameters are known."""
    for index, step in enumerate(document.steps):
        kind = step.get("kind")
        if not isinstance(kind, str) or kind not in STEPS:
            known = ", ".join(sorted(STEPS))
            raise RequestError(f"Step {index + 1} has no kind of: {known}.", field=f"steps.{index}.kind")
    open_ended = [name for name, p in document.parameters.items() if p.default is None and not p.choices]
    if open_ended:
        return
    given = {name: p.choices[0] for name, p in document.parameters.items() if p.default is None}
    try:
        document.resolve(given, built_in={"sut_cpu_count": _ASSUMED_CPUS})
    except PlanError as error:
        raise RequestError(error.message, field="steps") from error


def gives_a_shell(document: Any) -> bool:
    """Whether the recipe lets its author run programs of their own, as far as its parameters' defaults tell."""
    if not isinstance(document, RecipeDocument):
        return False
    try:
        given = {name: p.choices[0] for name, p in document.parameters.items() if p.default is None and p.choices}
        steps = document.resolve(given, built_in={"sut_cpu_count": _ASSUMED_CPUS})
    except PlanError:
        return False  # a parameter without a default: the launch tells
    return any(step.needs_shell for step in steps)


def insist_on_shell(member: Member, recipe: Recipe, steps: Sequence[Step]) -> None:
    """Forbidden when a parameter turns an editor's recipe into one that only an admin might have saved."""
    if member.role == Role.ADMIN or not any(step.needs_shell for step in steps):
        return
    if not _reaches_the_host(recipe.body) and not gives_a_shell(content_of(recipe)):
        raise Forbidden("With these parameters the recipe runs programs of your own; only an admin may launch it so.")


def _reaches_the_host(body: Mapping[str, Any]) -> bool:
    """Whether it acts on the host as root, or names a file that is written as root (a parameter may make it one)."""
    server = SERVERS.get(str((body.get("server") or {}).get("kind")))
    steps = body.get("steps", ())
    used = [STEPS[step["kind"]] for step in steps if step.get("kind") in STEPS]
    outside = any(str(step.get("path", "")).strip().startswith(("/", "${")) for step in steps)
    return outside or any(kind.needs_admin for kind in (*used, *([server] if server else ())))


def _flat(node: Any, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(node, Mapping) and node:
        for key, child in node.items():
            yield from _flat(child, f"{path}.{key}" if path else str(key))
    elif isinstance(node, list) and node:
        for index, child in enumerate(node):
            yield from _flat(child, f"{path}[{index}]")
    else:
        yield path, node if isinstance(node, str) else json.dumps(node)
