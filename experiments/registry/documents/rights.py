"""Who may save a document, and launch it with parameters of their own: what its kinds reserve is an admin's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agents.base.errors import PlanError
from agents.base.rights import Reserved, unspoken
from agents.spec import ApplicationDocument, WorkloadDocument
from agents.steps import STEPS
from agents.steps.base.step import Step
from agents.steps.recipe import Parameter, RecipeDocument, Value
from experiments.models import Member, Role
from experiments.registry.errors import Forbidden

ASSUMED_CPUS = 8
"""Stands in for `sut_cpu_count` when a recipe is looked at without a host."""

UNJUDGED = "what it does cannot be told before its parameters have values: give them defaults that fit"

Trusted = frozenset[str]
_WHERE: Mapping[type, str] = {ApplicationDocument: "server", WorkloadDocument: "driver"}


def insist_on_saving(member: Member, document: Any, *, trusted: Trusted = frozenset()) -> None:
    """Forbidden, naming the field, when only an admin may save this document.

    `trusted` are texts that BenchHub ships: an editor may have them where their own would be refused.
    """
    if member.role == Role.ADMIN:
        return
    for place, part, one in _reserved(document):
        said = getattr(part, one.field, None)
        texts = said if isinstance(said, tuple) else (said,)
        if texts and all(isinstance(text, str) and text in trusted for text in texts):
            continue
        raise Forbidden(
            f"{place}.{one.field}: {one.why}. This can do anything on the host, so only an admin may save it."
        )


def reserved_parts(document: Any, given: Mapping[str, Value] | None = None) -> list[str]:
    """What in a document only an admin may save, in words with its place; of a recipe with these parameters."""
    if isinstance(document, RecipeDocument):
        return [f"{place}.{one.field}: {one.why}" for place, _, one in _reserved_steps(document, given)]
    return [f"{place}.{one.field}: {one.why}" for place, _, one in _reserved(document)]


def insist_on_launching(
    member: Member,
    document: RecipeDocument,
    given: Mapping[str, Value],
    steps: Sequence[Step],
    *,
    built_in: Mapping[str, Value],
) -> None:
    """Forbidden when parameters make of a recipe what its author, an admin or not, has not saved.

    `steps` are all of the document's, for whichever member, as these values and those that are `built_in` make them.

    Text of the launcher's own may not change what is reserved; numbers and choices are bounded by the author, and may
    change it where it is reserved without them, too.
    """
    if member.role == Role.ADMIN:
        return
    own = {name for name, one in document.parameters.items() if one.type == "str" and not one.choices}
    places = {name: value for name, value in built_in.items() if "." in name}
    saved = _steps(document, {}, places)
    bounded = _steps(document, {name: value for name, value in given.items() if name not in own}, places)
    for index, step in enumerate(steps):
        before = {one.field for one in saved[index].reserved()} if saved else set()
        allowed = {(one.field, one.value) for one in bounded[index].reserved()} if bounded else set()
        for one in step.reserved():
            if one.field not in before or (one.field, one.value) not in allowed:
                raise Forbidden(
                    f"With these parameters step {index + 1} of the recipe has {one.why}; "
                    "only an admin may launch it so."
                )


def _reserved(document: Any) -> list[tuple[str, Any, Reserved]]:
    """Where, the part of the document, and what in it is reserved; of a recipe as its defaults make it."""
    if isinstance(document, RecipeDocument):
        return list(_reserved_steps(document))
    name = _WHERE[type(document)]
    parts = [(name, getattr(document, name))]
    if isinstance(document, ApplicationDocument):
        parts += [(f"members.{number}.server", member.server) for number, member in enumerate(document.members)]
    return [(place, part, one) for place, part in parts for one in part.reserved()]


def _reserved_steps(
    document: RecipeDocument, given: Mapping[str, Value] | None = None
) -> Iterator[tuple[str, Any, Reserved]]:
    """Each step by itself where they do not fit as a whole: one that does not fit must not hide the others.

    One that does not fit is an admin's when its kind reserves anything. `given`: parameters in place of the defaults.
    """
    values = given or {}
    whole = _steps(document, values)
    for index, raw in enumerate(document.steps):
        alone = whole[index : index + 1] if whole else _steps(document.model_copy(update={"steps": (raw,)}), values)
        if alone:
            yield from ((f"steps.{index}", alone[0], one) for one in alone[0].reserved())
            continue
        kind = STEPS[str(raw.get("kind"))]
        if kind.rights.whole or kind.rights.gates or unspoken(kind):
            yield f"steps.{index}", None, Reserved("kind", kind.rights.whole or UNJUDGED, "")


def _steps(
    document: RecipeDocument, given: Mapping[str, Value], places: Mapping[str, Value] | None = None
) -> tuple[Step, ...] | None:
    """The steps with these parameters and something for what has no default; None when that does not fit them."""
    filled = {name: _some(one) for name, one in document.parameters.items() if one.default is None}
    try:
        return document.resolve({**filled, **given}, built_in={"sut_cpu_count": ASSUMED_CPUS, **(places or {})})
    except PlanError:
        return None


def _some(parameter: Parameter) -> Value:
    """Any value that the parameter takes."""
    if parameter.choices:
        return parameter.choices[0]
    number = parameter.minimum if parameter.minimum is not None else min(1.0, parameter.maximum or 1.0)
    values: dict[str, Value] = {"int": int(number), "float": number, "bool": False, "str": "x"}
    return values[parameter.type]
