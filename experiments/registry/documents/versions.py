"""Applications, recipes and workloads: a save is a new version; YAML in and out; what differs between two versions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar, cast

from django.db import transaction
from django.db.models import Max
from pydantic import ValidationError

from agents.base.errors import PlanError
from agents.base.model import first_problem, problems_in_words
from agents.spec import WorkloadDocument
from agents.steps import STEPS
from agents.steps.recipe import RecipeDocument, references, wrong_name
from experiments.models import Document, Member, Role, Team
from experiments.registry.documents.configuration import Difference, diff
from experiments.registry.documents.contents import SCHEMAS, content_of
from experiments.registry.documents.rights import ASSUMED_CPUS, Trusted, insist_on_saving
from experiments.registry.documents.yaml_text import dump_yaml, parse_yaml
from experiments.registry.errors import RequestError
from experiments.registry.metrics.own_metrics import learn
from experiments.registry.metrics.vocabulary import MetricSpec, own_metric
from experiments.registry.naming import check_document_name
from experiments.registry.teams.access import require
from experiments.registry.teams.audit import record

__all__ = ["archive", "diff_versions", "parse_yaml", "save_version", "to_yaml", "unarchive"]

Saved = TypeVar("Saved", bound=Document)


def save_version(
    member: Member,
    model: type[Saved],
    name: str,
    body: Mapping[str, Any],
    *,
    note: str = "",
    trusted: Trusted = frozenset(),
    one_off: bool = False,
) -> Saved:
    """Store `body` as the newest version of `name`; a body equal to the newest version's returns that one.

    RequestError.field is the dotted path of what does not fit the schema. What can make a host do anything needs the
    role admin (`experiments.registry.documents.rights`), but for the texts in `trusted`. `one_off`: a version for one
    run, which becomes nobody's newest one; of a name that exists, and unless a version of it is the same already.
    """
    require(member, Role.EDITOR)
    _check_name(member, model, name)
    if len(note) > 400:
        raise RequestError("A note has at most 400 characters.", field="note")
    document = _validated(model, body)
    if isinstance(document, RecipeDocument):
        _check_steps(document)
    insist_on_saving(member, document, trusted=trusted)
    stored = document.model_dump(mode="json", by_alias=True)
    with transaction.atomic():
        # The team's row is the lock: version numbers have no gap and no double, whoever saves at the same time.
        Team.objects.select_for_update(no_key=True).get(pk=member.team_id)
        versions = model.objects.filter(team_id=member.team_id, name=name)
        newest = cast("Saved | None", versions.filter(one_off=False).order_by("-version").first())
        if newest is not None and newest.body == stored and not newest.archived:
            return newest
        one_off = one_off and newest is not None
        if one_off and (same := versions.filter(body=stored).order_by("-version").first()):
            return cast("Saved", same)
        number = (versions.aggregate(last=Max("version"))["last"] or 0) + 1
        created = model(
            team_id=member.team_id,
            name=name,
            version=number,
            body=stored,
            note=note.strip(),
            created_by_id=member.user_id,
            one_off=one_off,
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


def _check_name(member: Member, model: type[Document], name: str) -> None:
    """RequestError for a new name that could not be launched; NUL is asked of no database."""
    if "\0" not in name and model.objects.filter(team_id=member.team_id, name=name).exists():
        return
    article = "An" if noun(model)[0] in "aeiou" else "A"
    check_document_name(name, f"{article} {noun(model)}")


def _declared(document: WorkloadDocument) -> list[MetricSpec]:
    """The own metrics that the workload's load tool declares, known before its first run."""
    return [own_metric(*declared) for declared in document.driver.own_metrics()]


def archive(member: Member, document: Document) -> None:
    """Take every version of this name out of the lists; runs keep the version that they used."""
    _archive(member, document, "archive", archived=True)


def unarchive(member: Member, document: Document) -> None:
    """Put every version of this name back into the lists; who may archive a name may do this."""
    _archive(member, document, "unarchive", archived=False)


def _archive(member: Member, document: Document, action: str, *, archived: bool) -> None:
    require(member, Role.EDITOR)
    model = type(document)
    others = model.objects.filter(team_id=member.team_id, name=document.name, archived=not archived)
    with transaction.atomic():
        if others.update(archived=archived):
            record(member, f"{noun(model)}.{action}", f"{noun(model)} {document.name}")
    document.refresh_from_db()


def noun(model: type[Document]) -> str:
    """What people call it: application, recipe, workload."""
    return model.__name__.lower()


def to_yaml(document: Document) -> str:
    """The body as YAML that `parse_yaml` and `save_version` take back."""
    body = content_of(document).model_dump(mode="json", by_alias=True)
    return dump_yaml({key: _kind_first(value) for key, value in body.items()})


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
        said = [(".".join(map(str, at)), words) for at, words in problems_in_words(error)]
        raise RequestError(f"{where or 'document'}: {problem}", field=where, problems=said) from error
    except ValueError as error:
        raise RequestError("Numbers must be finite.", field="body") from error
    return document


_ANY_STEP: dict[str, Any] = {"kind": "limits", "nofile": 1024}
"""Stands where a step is that cannot be read yet, so that the others keep their numbers."""


def _check_steps(document: RecipeDocument) -> None:
    """Every step must fit its kind, as far as that can be said before the parameters are known.

    Where a parameter may have any value, those without a default are unknown: of a step with one of them, the names of
    what it sets are known.
    """
    for index, step in enumerate(document.steps):
        kind = step.get("kind")
        if not isinstance(kind, str) or kind not in STEPS:
            known = ", ".join(sorted(STEPS))
            has = f"is of no kind {kind[:60]!r}" if isinstance(kind, str) and kind else "has no kind"
            raise RequestError(f"Step {index + 1} {has}; there are: {known}.", field=f"steps.{index}.kind")
    without_default = {name: p.choices for name, p in document.parameters.items() if p.default is None}
    given = {name: choices[0] for name, choices in without_default.items() if choices}
    unknown = set() if len(given) == len(without_default) else set(without_default)
    settled = tuple(step if not references(step) & unknown else _ANY_STEP for step in document.steps)
    valued = {name: one for name, one in document.parameters.items() if name not in unknown}
    try:
        whole = document.model_copy(update={"steps": settled, "parameters": valued})
        whole.resolve({} if unknown else given, built_in={"sut_cpu_count": ASSUMED_CPUS})
    except PlanError as error:
        raise RequestError(error.message, field="steps") from error
    for index, step in enumerate(document.steps):
        if references(step) & unknown and (problem := wrong_name(step)):
            raise RequestError(f"Step {index + 1} of the recipe, {problem}.", field=f"steps.{index}")


def _flat(node: Any, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(node, Mapping) and node:
        for key, child in node.items():
            yield from _flat(child, f"{path}.{key}" if path else str(key))
    elif isinstance(node, list) and node:
        for index, child in enumerate(node):
            yield from _flat(child, f"{path}[{index}]")
    else:
        yield path, node if isinstance(node, str) else json.dumps(node)
