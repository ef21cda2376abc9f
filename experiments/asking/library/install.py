"""Templates of the library as a team's own documents and experiments: ordinary versions under the shipped titles."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeVar

from django.db import transaction

from agents.base.errors import PlanError
from agents.steps.recipe import Value, substitute
from agents.system import with_places
from experiments.asking.launching.choices import Candidate
from experiments.asking.launching.creating import create_experiment
from experiments.asking.library import catalogue
from experiments.asking.library.catalogue import ExperimentTemplate, Scale, ShippedDocument
from experiments.models import Application, Document, Experiment, Host, Member, Recipe, Role, Workload
from experiments.registry.documents.versions import save_version
from experiments.registry.errors import RequestError
from experiments.registry.teams.access import require

NOTE = "From the library."

Saved = TypeVar("Saved", bound=Document)

_WHOLE = re.compile(r"\$\{\s*([a-z][a-z0-9_]*)\s*\}")


@dataclass(frozen=True)
class Places:
    """The hosts that take part.

    Several driver hosts divide the load; `other_sut` is the second server of templates that compare two machines.
    `members` are the hosts of a system's further members by role.
    """

    sut: Host
    drivers: tuple[Host, ...]
    other_sut: Host | None = None
    members: Mapping[str, Host] = field(default_factory=dict)


@dataclass(frozen=True)
class Installed:
    """The team's own versions of what a template is made of, by their names in the library."""

    template: ExperimentTemplate
    scale: Scale
    applications: Mapping[str, Application]
    recipes: Mapping[str, Recipe]
    workload: Workload

    def candidates(self, places: Places) -> list[Candidate]:
        """The variants as they are launched. RequestError (field `other_sut`, `members`) when a host is missing."""
        if self.template.two_suts and (places.other_sut is None or places.other_sut.pk == places.sut.pk):
            raise RequestError("This compares two servers: choose another host for the second one.", field="other_sut")
        if missing := [role for role in self.template.roles if role not in places.members]:
            raise RequestError(f"Choose a host for each further member: {', '.join(missing)}.", field="members")
        return [
            Candidate(
                name=variant.name,
                application=self.applications[variant.application],
                recipe=self.recipes[variant.recipe],
                sut=places.other_sut if variant.other_sut and places.other_sut else places.sut,
                drivers=places.drivers,
                parameters=variant.parameters_at(self.scale),
                is_baseline=position == 0,
                concurrency=variant.concurrency,
                members={role: places.members[role] for role in self.template.roles},
            )
            for position, variant in enumerate(self.template.variants_at(self.scale))
        ]

    def request_body(self, places: Places) -> dict[str, Any]:
        """What `POST /experiments` takes; documents by version, so that it means the same tomorrow."""
        return {
            "name": self.template.title,
            "question": self.template.question,
            "workload": reference(self.workload),
            "repetitions": self.template.repetitions,
            "order": self.template.order,
            **({"primary_metric": self.template.metric} if self.template.metric else {}),
            "margin_ratio": self.template.margin_ratio,
            **({"profilers": list(self.template.profilers)} if self.template.profilers else {}),
            "labels": {"library": self.template.name, "scale": self.scale},
            "variants": [
                {
                    "name": one.name,
                    "application": reference(one.application),
                    "recipe": reference(one.recipe),
                    "sut": one.sut.name,
                    "drivers": [driver.name for driver in one.drivers],
                    **({"parameters": dict(one.parameters)} if one.parameters else {}),
                    **({"is_baseline": True} if one.is_baseline else {}),
                    **({"concurrency": one.concurrency} if one.concurrency else {}),
                    **({"members": {role: host.name for role, host in one.members.items()}} if one.members else {}),
                }
                for one in self.candidates(places)
            ],
        }


def install(member: Member, template: ExperimentTemplate, scale: Scale, given: Mapping[str, Value]) -> Installed:
    """Save everything that the template is made of as versions of the team; what is there already stays as it is.

    `given` are settings in place of those of the scale. RequestError (field `settings.NAME`) for one that is unknown,
    missing or does not fit. Steps that reach the host itself need the role admin.
    """
    require(member, Role.EDITOR)
    values = settings_for(template, scale, given)
    shipped = catalogue.workload(template.workload.use)
    names = {variant.recipe for variant in template.variants_at(scale)}
    with transaction.atomic():
        return Installed(
            template,
            scale,
            {one.name: save_shipped(member, Application, one, values) for one in template.applications()},
            {name: install_recipe(member, name, values) for name in sorted(names)},
            save_shipped(member, Workload, shipped, values, title=template.workload.title),
        )


def install_recipe(member: Member, name: str, values: Mapping[str, Value] = MappingProxyType({})) -> Recipe:
    """One shipped recipe as a version of the team. `values` are its settings."""
    shipped = catalogue.recipe(name)
    body = shipped.filled_in(values).model_dump(mode="json", by_alias=True)
    return save_version(member, Recipe, shipped.title, body, note=NOTE)


def save_shipped(
    member: Member, model: type[Saved], shipped: ShippedDocument, values: Mapping[str, Value], *, title: str = ""
) -> Saved:
    """The document with its settings as a version of the team; its own texts, scripts included, need no admin.

    Nor do texts that name where a member is reached: that is a host which somebody chose.
    """
    members = {str(one["role"]): ("host", 1) for one in shipped.document.get("members", ())}
    own = frozenset(text for text in _texts(shipped.document) if "${" not in with_places(text, members))
    return save_version(member, model, title or shipped.title, filled_in(shipped, values), note=NOTE, trusted=own)


def installed(member: Member, template: ExperimentTemplate, scale: Scale) -> Installed | None:
    """The newest versions of the template's documents in the team, None when one of them is not installed."""
    recipes = {variant.recipe: catalogue.recipe(variant.recipe).title for variant in template.variants_at(scale)}
    applications = {one.name: one.title for one in template.applications()}
    workload_title = template.workload.title or catalogue.workload(template.workload.use).title
    found_recipes = _newest(member, Recipe, recipes)
    found_applications = _newest(member, Application, applications)
    found_workload = _newest(member, Workload, {"": workload_title})
    if found_recipes is None or found_applications is None or found_workload is None:
        return None
    return Installed(template, scale, found_applications, found_recipes, found_workload[""])


def settings_for(template: ExperimentTemplate, scale: Scale, given: Mapping[str, Value]) -> dict[str, Value]:
    """Every setting's value. RequestError names the one that is unknown, missing or does not fit."""
    settings = template.settings()
    if unknown := sorted(set(given) - set(settings)):
        raise RequestError(
            f"{template.title} has no setting {unknown[0][:60]!r}; it has: {', '.join(sorted(settings))}.",
            field=f"settings.{unknown[0][:60]}",
        )
    values: dict[str, Value] = template.workload.fixed_at(scale)
    for name, setting in settings.items():
        value = given.get(name, setting.at(scale))
        if value is None or (value == "" and setting.default is None):
            raise RequestError(f"{name}: {setting.description or 'this has no default'}.", field=f"settings.{name}")
        try:
            values[name] = setting.check(name, setting.read(name, value))
        except PlanError as error:
            raise RequestError(error.message, field=f"settings.{name}") from error
    return values


def filled_in(shipped: ShippedDocument, values: Mapping[str, Value]) -> dict[str, Any]:
    """The document with its settings; a line whose whole value is an empty setting is left out."""
    filled: dict[str, Any] = substitute(_without_empty(shipped.document, values), values)
    return filled


def create(member: Member, ready: Installed, places: Places, *, repetitions: int | None = None) -> Experiment:
    """The experiment of an installed template as a draft, every variant checked as if it were launched now."""
    template = ready.template
    return create_experiment(
        member,
        name=template.title,
        question=template.question,
        workload=ready.workload,
        candidates=ready.candidates(places),
        repetitions=repetitions or template.repetitions,
        order=template.order,
        primary_metric=template.metric,
        margin_ratio=template.margin_ratio,
        profilers=template.profilers or None,
        labels={"library": template.name, "scale": ready.scale},
    )


def reference(document: Application | Recipe | Workload) -> str:
    """How a body of the API names this version."""
    return f"{document.name}@{document.version}"


def _without_empty(node: Any, values: Mapping[str, Value]) -> Any:
    if isinstance(node, Mapping):
        return {key: _without_empty(child, values) for key, child in node.items() if not _is_empty(child, values)}
    return [_without_empty(child, values) for child in node] if isinstance(node, list) else node


def _is_empty(node: Any, values: Mapping[str, Value]) -> bool:
    match = _WHOLE.fullmatch(node) if isinstance(node, str) else None
    return match is not None and values.get(match[1]) == ""


def _texts(node: Any) -> Iterator[str]:
    if isinstance(node, Mapping):
        node = list(node.values())
    if isinstance(node, list):
        for child in node:
            yield from _texts(child)
    elif isinstance(node, str):
        yield node.strip()


def _newest(member: Member, model: Any, titles: Mapping[str, str]) -> dict[str, Any] | None:
    found = {
        one.name: one for one in model.objects.for_team(member.team).newest_versions().filter(name__in=titles.values())
    }
    return {name: found[title] for name, title in titles.items()} if set(titles.values()) <= set(found) else None
