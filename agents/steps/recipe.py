"""Recipes as a team writes them: typed parameters, and steps with `${parameter}` that become typed steps."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationError, model_validator

from agents.base.errors import PlanError
from agents.base.model import Frozen, first_problem
from agents.steps import AnyStep

Value = bool | int | float | str
ParameterName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,40}$")]
MAX_STEPS = 200
UNIT_BYTES: Mapping[str, int] = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
ON = "on"
"""The key of a step that names the member of a system that it is meant for."""
_ROLE = re.compile(r"(?:[a-z][a-z0-9_]{0,11})?")

_REFERENCE = re.compile(r"\$\{\s*([a-z][a-z0-9_]*(?:\.(?:address|port))?)\s*(?:([-+*])\s*(\d{1,9})\s*)?\}")
_TYPES: dict[str, tuple[type, ...]] = {"int": (int,), "float": (int, float), "str": (str,), "bool": (bool,)}
_TRUTHS = {"true": True, "false": False}
_STEPS: TypeAdapter[tuple[AnyStep, ...]] = TypeAdapter(tuple[AnyStep, ...])


class Parameter(Frozen):
    """A value that a variant may set. Without a default it must be given.

    `memory` is the unit of a value that the server takes of its host's memory.
    """

    type: Literal["int", "float", "str", "bool"] = "int"
    default: Value | None = None
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[Value, ...] = ()
    memory: Literal["", "KiB", "MiB", "GiB"] = Field("", exclude_if=lambda unit: not unit)
    description: str = ""

    @model_validator(mode="after")
    def _memory_is_a_number(self) -> Parameter:
        if self.memory and self.type not in ("int", "float"):
            raise ValueError(f"memory: a {self.type} is no number of {self.memory}")
        return self

    def read(self, name: str, value: Value) -> Value:
        """A text as this type writes it (8, 0.5, true), anything else as it is. PlanError when it is no such value.

        A command line has texts only: none that looks like a number is one before the recipe says so.
        """
        if self.type == "str" or not isinstance(value, str):
            return value
        try:
            if self.type == "bool":
                return _TRUTHS[value.strip().lower()]
            return int(value) if self.type == "int" else _number(value)
        except (KeyError, ValueError):
            raise self._of_another_type(name, value) from None

    def check(self, name: str, value: object) -> Value:
        """`value` when it fits, else PlanError naming the parameter."""
        allowed = _TYPES[self.type]
        if not isinstance(value, allowed) or (isinstance(value, bool) and bool not in allowed):
            raise self._of_another_type(name, value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            if not _is_finite(value):
                raise _wrong(name, value, "not a number that can be set")
            if self.minimum is not None and value < self.minimum:
                raise _wrong(name, value, f"below the minimum {self.minimum:g}")
            if self.maximum is not None and value > self.maximum:
                raise _wrong(name, value, f"above the maximum {self.maximum:g}")
        if self.choices and value not in self.choices:
            raise _wrong(name, repr(value), f"not one of {', '.join(map(repr, self.choices))}")
        return value  # type: ignore[return-value]

    def _of_another_type(self, name: str, value: object) -> PlanError:
        return _wrong(name, repr(value), f"not of type {self.type}")


def _wrong(name: str, value: object, what: str) -> PlanError:
    return PlanError(f"Parameter {name}: {value} is {what}.", parameter=name)


class RecipeDocument(Frozen):
    """What a recipe version holds. Steps stay raw until the parameters are known."""

    description: str = Field("", max_length=4000)
    parameters: dict[ParameterName, Parameter] = {}
    steps: tuple[dict[str, Any], ...] = Field((), max_length=MAX_STEPS)

    @model_validator(mode="after")
    def _is_meant_for_members(self) -> RecipeDocument:
        for number, step in enumerate(self.steps, start=1):
            if not isinstance(role := step.get(ON, ""), str) or not _ROLE.fullmatch(role):
                raise ValueError(f"step {number}: `{ON}` is the role of a member, such as database")
        return self

    @model_validator(mode="after")
    def _defaults_fit(self) -> RecipeDocument:
        for name, parameter in self.parameters.items():
            if parameter.default is not None:
                try:
                    parameter.check(name, parameter.default)
                except PlanError as error:
                    raise ValueError(error.message) from error
        return self

    @property
    def roles(self) -> tuple[str, ...]:
        """For each step the member of a system that it is meant for; "" = the server that is loaded."""
        return tuple(str(step.get(ON, "")) for step in self.steps)

    def values(self, given: Mapping[str, Value]) -> dict[str, Value]:
        """Every parameter's value: the given one, else its default. PlanError names what is unknown or missing."""
        unknown = sorted(set(given) - set(self.parameters))
        if unknown:
            known = ", ".join(sorted(self.parameters)) or "none"
            said = f"The recipe has no parameter {unknown[0]!r}; it has: {known}."
            raise PlanError(said, parameter=unknown[0])
        out: dict[str, Value] = {}
        for name, parameter in self.parameters.items():
            value = given.get(name, parameter.default)
            if value is None:
                raise PlanError(f"Parameter {name} has no default and was not given.", parameter=name)
            out[name] = parameter.check(name, value)
        return out

    def resolve(
        self, given: Mapping[str, Value], *, built_in: Mapping[str, Value] | None = None
    ) -> tuple[AnyStep, ...]:
        """Typed steps with every `${name}`, `${name - 1}` replaced.

        `built_in` are the values that every recipe may use (`sut_cpu_count`, of a system `database.address`). PlanError
        names the step and the field that is wrong.
        """
        values = {**(built_in or {}), **self.values(given)}
        raw = [_filled_in(_alone(step), values) for step in self.steps]
        try:
            return _STEPS.validate_python(raw)
        except ValidationError as error:
            location, problem = first_problem(error)
            index, *path = location or (0,)
            where = ".".join(str(p) for p in path)
            step = int(index) + 1 if isinstance(index, int) else 1
            raise PlanError(f"Step {step} of the recipe, {where or 'kind'}: {problem}.") from error


def _number(text: str) -> int | float:
    """A whole number stays one, to be written as it was given. ValueError for what is no number, or infinite."""
    try:
        return int(text)
    except ValueError:
        found = float(text)
    if not math.isfinite(found):
        raise ValueError(text)
    return found


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an int of more digits than a float has
        return False


def _alone(step: Mapping[str, Any]) -> Mapping[str, Any]:
    """The step without the member that it is meant for."""
    return {name: child for name, child in step.items() if name != ON}


def _filled_in(step: Mapping[str, Any], values: Mapping[str, Value]) -> dict[str, Any]:
    """The step, references replaced. A shell step gets them as arguments only: shell text is never put together."""
    if step.get("kind") == "command":
        return {**step, "arguments": substitute(step.get("arguments", []), values)}
    return {name: substitute(child, values) for name, child in step.items()}


def substitute(node: Any, values: Mapping[str, Value]) -> Any:
    """`node` with every `${name}` in its texts replaced. PlanError names one that has no value."""
    if isinstance(node, dict):
        return {key: substitute(child, values) for key, child in node.items()}
    if isinstance(node, list | tuple):
        return [substitute(child, values) for child in node]
    if not isinstance(node, str):
        return node
    return _REFERENCE.sub(lambda match: _text(_value(match, values)), node)


def _value(match: re.Match[str], values: Mapping[str, Value]) -> Value:
    name, sign, operand = match.groups()
    if name not in values and "." in name and not any("." in known for known in values):
        return match[0]  # of no system: a text of somebody else's, such as ${server.port} of Spring
    if name not in values:
        raise PlanError(f"${{{name}}} is used in the recipe but is no parameter; known: {', '.join(sorted(values))}.")
    value = values[name]
    if sign is None:
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise PlanError(f"${{{name} {sign} {operand}}}: {name} is not a number.")
    number = int(operand)
    return value + number if sign == "+" else value - number if sign == "-" else value * number


def _text(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def references(step: Mapping[str, Any]) -> set[str]:
    """The parameters that the step refers to as `${name}`."""
    return {match[1] for text in _texts(step) for match in _REFERENCE.finditer(text) if "." not in match[1]}


def wrong_name(step: Mapping[str, Any]) -> str:
    """What is wrong with a name in the step, such as a kernel parameter that no recipe may set; "" when nothing is.

    Names hold no references, so they are known before any parameter has a value.
    """
    try:
        _STEPS.validate_python([_alone(step)])
    except ValidationError as error:
        for one in error.errors(include_url=False):
            if one["loc"] and one["loc"][-1] == "[key]":
                return str(one["msg"]).removeprefix("Value error, ")
    return ""


def _texts(node: Any) -> list[str]:
    if isinstance(node, Mapping):
        return [text for child in node.values() for text in _texts(child)]
    if isinstance(node, list | tuple):
        return [text for child in node for text in _texts(child)]
    return [node] if isinstance(node, str) else []
