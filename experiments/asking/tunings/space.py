"""What a tuning search may try, as people write it: ranges of a recipe's parameters, conditions, forbidden mixtures.

parameters:
  - {name: workers, low: 1, high: 8}
  - {name: heap_mb, low: 64, high: 4096, log: true}
  - {name: collector, choices: [G1, Serial]}
  - {name: region_mb, low: 1, high: 32, only_when: collector = G1}
forbidden:
  - collector = Serial and heap_mb > 1024
starts:
  - {config: {workers: 4}, why: what we ran last year}
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from agents.base.errors import PlanError
from agents.base.model import Frozen, first_problem
from agents.steps.recipe import Parameter as Declared
from agents.steps.recipe import ParameterName, RecipeDocument, Value
from experiments.analysis.tuning.space import TWO_CHOICES, Clause, Condition, Kind, Parameter, Relation, Space
from experiments.registry.errors import RequestError

MOST_PARAMETERS = 30
MOST_CHOICES = 50
MOST_STARTS = 5
UNORDERED = ("switch", "choice")
_RELATIONS: Mapping[str, Relation] = {"=": "is", "<": "below", ">": "above"}
_CLAUSE = re.compile(r"([a-z][a-z0-9_]*)\s*([=<>])\s*(\S.*)")

Text = Annotated[str, Field(min_length=1, max_length=400)]


class Range(Frozen):
    """What may be tried of one parameter: from `low` to `high`, or `choices`; else what the recipe itself allows.

    `needs` is what a change of it takes. Each trial applies the recipe and starts the server anew, so online and
    restart are as good as each other here; what needs a reboot cannot be tried.
    """

    name: ParameterName
    low: float | None = None
    high: float | None = None
    log: bool = False
    choices: tuple[Value, ...] = Field((), max_length=MOST_CHOICES)
    only_when: str = Field("", max_length=400)
    needs: Literal["online", "restart", "reboot"] = "restart"


class Start(Frozen):
    """A configuration that is tried first; what it leaves out is as in the default. `why` says where it is from.

    `known`: no person gave it, a warm start found it.
    """

    config: dict[ParameterName, Value] = Field(min_length=1, max_length=200)
    why: str = Field("", max_length=200)
    known: bool = Field(False, exclude_if=lambda known: not known, description="Found among what was better before")


class SpaceDocument(Frozen):
    """All of it, as it is stored."""

    parameters: tuple[Range, ...] = Field(min_length=1, max_length=MOST_PARAMETERS)
    forbidden: tuple[Text, ...] = Field((), max_length=100)
    starts: tuple[Start, ...] = Field((), max_length=MOST_STARTS)


def read_space(given: Mapping[str, Any]) -> SpaceDocument:
    """The document. RequestError names the field that does not fit."""
    try:
        return SpaceDocument.model_validate(given)
    except ValidationError as error:
        path, problem = first_problem(error)
        raise RequestError(problem, field=".".join(["space", *map(str, path)])) from error


def typed(document: SpaceDocument, recipe: RecipeDocument) -> SpaceDocument:
    """The same with its choices and starts as the recipe declares them, where they were given as texts (`8`, `true`).

    RequestError names the parameter whose text is no value of its type. What the recipe does not have stays as it is.
    """

    def read(name: str, value: Value) -> Value:
        return recipe.parameters[name].read(name, value) if name in recipe.parameters else value

    try:
        parameters = [
            one.model_copy(update={"choices": tuple(read(one.name, value) for value in one.choices)})
            for one in document.parameters
        ]
    except PlanError as error:
        raise _wrong(error.parameter, error.message) from error
    starts = []
    for place, one in enumerate(document.starts):
        try:
            config = {name: read(name, value) for name, value in one.config.items()}
        except PlanError as error:
            raise RequestError(f"Start {place + 1}: {error.message}", field="space.starts") from error
        starts.append(one.model_copy(update={"config": config}))
    return document.model_copy(update={"parameters": tuple(parameters), "starts": tuple(starts)})


def space_of(document: SpaceDocument, recipe: RecipeDocument) -> Space:
    """What the search works with. RequestError names the parameter that does not fit the recipe."""
    declared: dict[str, Declared] = {}
    for one in document.parameters:
        if one.name not in recipe.parameters:
            known = ", ".join(sorted(recipe.parameters)) or "none"
            raise _wrong(one.name, f"The recipe has no parameter {one.name!r}; it has: {known}.")
        declared[one.name] = recipe.parameters[one.name]
    parameters = [_parameter(one, declared) for one in document.parameters]
    try:
        return Space(tuple(parameters), tuple(_clauses(text, declared) for text in document.forbidden))
    except ValueError as error:
        raise RequestError(f"This cannot be searched: {error}.", field="space") from error


def checked_space(document: SpaceDocument, recipe: RecipeDocument) -> Space:
    """As `space_of`, and everything in it has an effect: what never could is a mistake, and would protect nobody.

    For what people give; what was stored once stays readable. RequestError names the parameter or the mixture.
    """
    space = space_of(document, recipe)
    for one in document.parameters:
        if one.needs == "reboot":
            said = f"{one.name}: a trial starts the server anew, but reboots no host. Leave out what needs that."
            raise _wrong(one.name, said)
    searched = {one.name: one for one in space.parameters}
    for parameter in space.parameters:
        if len(parameter.choices) == 1:
            raise _wrong(parameter.name, f"{parameter.name}: {TWO_CHOICES}.")
        if (when := parameter.only_when) is not None:
            _check_may_be(searched[when.parameter], recipe, when.values, f"space.{parameter.name}")
    for mixture in space.forbidden:
        _check_mixture(searched, recipe, mixture)
    return space


def _check_mixture(searched: Mapping[str, Parameter], recipe: RecipeDocument, mixture: Sequence[Clause]) -> None:
    """RequestError when it can never hold."""
    for clause in mixture:
        if clause.relation == "is":
            if clause.other is None and clause.value is not None:
                _check_may_be(searched[clause.parameter], recipe, (clause.value,), "space.forbidden")
        elif unordered := next((name for name in clause.names() if searched[name].kind in UNORDERED), ""):
            said = f"{unordered} has no order: write {unordered} = VALUE, not < or >."
            raise RequestError(said, field="space.forbidden")
        elif clause.other is None:
            _check_reaches(searched[clause.parameter], recipe, clause)


def _check_reaches(parameter: Parameter, recipe: RecipeDocument, clause: Clause) -> None:
    """RequestError when no value of this parameter is so small or large, neither here nor by the recipe's bounds."""
    declared = recipe.parameters[parameter.name]
    here = parameter.choices or (parameter.low, parameter.high)
    ends = [*here, *declared.choices, *(end for end in (declared.minimum, declared.maximum) if end is not None)]
    if not any(clause.holds({parameter.name: end}) for end in ends):
        numbers = [end for end in ends if isinstance(end, int | float)]
        said = f"{parameter.name} is never {clause.relation} {clause.value} here"
        raise RequestError(f"{said}; it may be {min(numbers):g} to {max(numbers):g}.", field="space.forbidden")


def _check_may_be(parameter: Parameter, recipe: RecipeDocument, values: Sequence[Value], field: str) -> None:
    """RequestError when this parameter has none of the values: neither here, nor by choices or bounds of the recipe."""
    declared = recipe.parameters[parameter.name]
    low, high = declared.minimum, declared.maximum
    for value in values:
        is_between = isinstance(value, int | float) and low is not None and high is not None and low <= value <= high
        if is_between or value in declared.choices or parameter.allows(value):
            return
    said = " or ".join(map(repr, values))
    known = ", ".join(map(str, declared.choices or parameter.choices)) or f"{parameter.low:g} to {parameter.high:g}"
    raise RequestError(f"{parameter.name} is never {said} here; it may be {known}.", field=field)


def with_forbidden(document: SpaceDocument, recipe: RecipeDocument, mixture: str) -> SpaceDocument:
    """The document with one forbidden mixture more. RequestError, of the field `mixture`, when it cannot be one."""
    if mixture.strip() in document.forbidden:
        raise RequestError("This region is left out already.", field="mixture")
    try:
        made = read_space({**document.model_dump(mode="json"), "forbidden": [*document.forbidden, mixture.strip()]})
        space = space_of(made, recipe)
        searched = {one.name: one for one in space.parameters}
        _check_mixture(searched, recipe, space.forbidden[-1])  # those of before are as they were taken
    except RequestError as error:
        raise RequestError(error.message.removeprefix("forbidden: "), field="mixture") from error
    return made


def check_config(config: Mapping[str, Value], recipe: RecipeDocument, space: Space) -> None:
    """ValueError, naming the parameter, when it lies outside of the space or the recipe takes no value of this type."""
    space.check(config)
    for name, value in config.items():
        try:
            recipe.parameters[name].check(name, value)
        except PlanError as error:
            raise ValueError(error.message.rstrip(".")) from error


def check_starts(document: SpaceDocument, recipe: RecipeDocument, space: Space, default: Mapping[str, Value]) -> None:
    """RequestError when a start that a person gave cannot be tried."""
    for place, start in enumerate(document.starts):
        try:
            if unknown := set(start.config) - set(default):
                raise ValueError(f"{min(unknown)}: it is not searched")
            check_config({**default, **start.config}, recipe, space)
        except ValueError as error:
            raise RequestError(f"Start {place + 1}: {error}.", field="space.starts") from error


def default_of(document: SpaceDocument, recipe: RecipeDocument, given: Mapping[str, Value]) -> dict[str, Value]:
    """The configuration to compare with: the parameters as they are given, else their defaults."""
    found: dict[str, Value] = {}
    for one in document.parameters:
        value = given.get(one.name, recipe.parameters[one.name].default)
        if value is None:
            raise _wrong(one.name, f"Parameter {one.name} has no default: give the value to compare with.")
        found[one.name] = value
    return found


def _parameter(one: Range, declared: Mapping[str, Declared]) -> Parameter:
    mine = declared[one.name]
    condition = None
    if one.only_when:
        name, relation, rest = _split(one.only_when, "only_when")
        if relation != "is":
            raise _wrong(
                one.name, f"{one.name}: write the condition as PARAMETER = VALUE, VALUE, not {one.only_when!r}."
            )
        if name not in declared:
            raise _wrong(one.name, f"{one.name}: its condition is on {name}, which must be searched before it.")
        condition = Condition(name, tuple(_value(declared[name], name, text) for text in rest.split(",")))
    choices = _choices(one, mine)
    low = mine.minimum if one.low is None else one.low
    high = mine.maximum if one.high is None else one.high
    if not choices and (low is None or high is None):
        raise _wrong(one.name, f"{one.name}: give the smallest and the largest value to try.")
    kind: Kind = {"bool": "switch", "str": "choice", "int": "integer", "float": "number"}[mine.type]  # type: ignore[assignment]
    ends = choices or tuple(
        int(end) if mine.type == "int" and end == int(end) else end for end in (low, high) if end is not None
    )
    for value in ends:
        try:
            mine.check(one.name, value)
        except PlanError as error:
            raise _wrong(one.name, error.message) from error
    try:
        return Parameter(one.name, kind, choices, low or 0.0, 1.0 if high is None else high, one.log, condition)
    except ValueError as error:
        raise _wrong(one.name, f"{error}.") from error


def _choices(one: Range, mine: Declared) -> tuple[Value, ...]:
    if one.choices or one.low is not None or one.high is not None:
        if one.choices and (one.low is not None or one.high is not None):
            raise _wrong(one.name, f"{one.name}: give choices, or the smallest and the largest value, not both.")
        if not one.choices and mine.type in ("bool", "str"):
            raise _wrong(one.name, f"{one.name}: a {mine.type} has choices, no range.")
        return one.choices
    if mine.type == "bool":
        return (False, True)
    return mine.choices


def _clauses(text: str, declared: Mapping[str, Declared]) -> tuple[Clause, ...]:
    """The clauses of a mixture that is forbidden: `a > 4 and b = off`, `low > high`."""
    found = []
    for part in re.split(r"\s+and\s+", text.strip()):
        name, relation, rest = _split(part, "forbidden")
        for one in (name, rest):
            if one == name and one not in declared:
                raise RequestError(f"forbidden: {one} is not searched.", field="space.forbidden")
        if rest[0] in "=<>" and declared[name].type != "str":  # >= or ==; a text may begin so
            raise _no_clause(part, "forbidden")
        if rest in declared:
            found.append(Clause(name, relation, other=rest))
        else:
            found.append(Clause(name, relation, _value(declared[name], name, rest)))
    return tuple(found)


def _split(text: str, field: str) -> tuple[str, Relation, str]:
    match = _CLAUSE.fullmatch(text.strip())
    if match is None:
        raise _no_clause(text, field)
    return match[1], _RELATIONS[match[2]], match[3].strip()


def _no_clause(text: str, field: str) -> RequestError:
    said = f"{text!r} is not PARAMETER = VALUE, PARAMETER < VALUE or PARAMETER > VALUE."
    return RequestError(said, field=f"space.{field}")


def _value(declared: Declared, name: str, text: str) -> Value:
    """A text as the parameter's type."""
    try:
        return declared.read(name, text.strip())
    except PlanError as error:
        raise _wrong(name, error.message) from error


def _wrong(name: str, message: str) -> RequestError:
    return RequestError(message, field=f"space.{name}")
