"""A JMeter plan in a workload's form: uploaded as a file, its properties as rows, each with the value it is given.

A row is the text `plan.NAME`. What the plan does not ask for stays in the field of all properties.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from agents.base.errors import PlanError
from agents.base.redaction import HIDDEN
from agents.drivers.jmeter import jmx
from agents.drivers.jmeter.driver import Jmeter
from agents.drivers.jmeter.jmx_properties import PlanProperty, plan_properties, suggested
from experiments.registry.errors import RequestError
from frontend.shared.forms.model_fields import Texts, flatten, read_fields, show_scalar

_PREFIX = "plan."
_PLAN, _PROPERTIES = "driver.jmx", "driver.properties"


@dataclass(frozen=True)
class PlanRow:
    """A property of the plan: the input's name, and the value that the plan is given; "" = the plan's own default."""

    name: str
    property: PlanProperty
    value: str


@dataclass(frozen=True)
class PlanForm:
    """`problem` tells why the plan cannot be read; `harm` what in it may run programs or touch files."""

    rows: list[PlanRow]
    harm: list[str]
    problem: str = ""


def plan_form(texts: Texts) -> PlanForm:
    """What the plan in the form asks for. A plan that cannot be read has no rows."""
    text = texts.get(_PLAN, "")
    if not text.strip():
        return PlanForm([], [])
    try:
        rows = [PlanRow(_PREFIX + p.name, p, texts.get(_PREFIX + p.name, "")) for p in plan_properties(text)]
        return PlanForm(rows, jmx.harm(text))
    except PlanError as error:
        return PlanForm([], [], f"{error.message} {error.hint}".strip())


def plan_rows(driver: Jmeter) -> list[PlanRow]:
    """The rows of a saved workload, to look at: the value of a secret is hidden."""
    if not driver.jmx:
        return []
    given = {name: show_scalar(value) for name, value in driver.properties.items()}
    rows = (PlanRow("", one, given.get(one.name, "")) for one in plan_properties(driver.jmx))
    return [replace(row, value=HIDDEN) if row.property.secret and row.value else row for row in rows]


def with_plan(texts: Texts, text: str) -> dict[str, str]:
    """The form with an uploaded plan; properties whose names say what they mean are filled in unless they are given.

    RequestError when the file is no test plan.
    """
    try:
        found = plan_properties(text)
    except PlanError as error:
        raise RequestError(f"{error.message} {error.hint}".strip(), field=_PLAN) from error
    kept = {name: value for name, value in texts.items() if not name.startswith(_PREFIX)}
    old = {**_read(texts), **_values(texts, _names(texts))}
    given = {**suggested(found), **{name: value for name, value in old.items() if value != ""}}
    return split({**kept, _PLAN: text, **_show(given)})


def split(texts: Texts) -> dict[str, str]:
    """The form with a row for each property of the plan that has a value."""
    names = set(_names(texts))
    if not names:
        return dict(texts)
    given = _read(texts)
    rows = {_PREFIX + name: show_scalar(value) for name, value in given.items() if name in names}
    return {**texts, **_show({n: v for n, v in given.items() if n not in names}), **rows}


def with_rows(driver: Mapping[str, Any], texts: Texts) -> dict[str, Any]:
    """The load tool as it stands in the form, with what the rows of its plan say."""
    said = _values(texts, _names(texts))
    if not said:
        return dict(driver)
    properties = {**driver.get("properties", {}), **said}
    return {**driver, "properties": properties} if isinstance(driver.get("properties", {}), Mapping) else dict(driver)


def _names(texts: Texts) -> list[str]:
    if texts.get("driver.kind") != "jmeter" or not texts.get(_PLAN, "").strip():
        return []
    try:
        return [one.name for one in plan_properties(texts[_PLAN])]
    except PlanError:
        return []


def _values(texts: Texts, names: Iterable[str]) -> dict[str, Any]:
    return {name: _typed(text) for name in names if (text := texts.get(_PREFIX + name, "").strip())}


def _typed(text: str) -> str | int | bool:
    """As YAML would read it, so that a saved value comes back as it was."""
    if text in ("true", "false"):
        return text == "true"
    return int(text) if re.fullmatch(r"0|-?[1-9][0-9]{0,17}", text, re.ASCII) else text


def _read(texts: Texts) -> dict[str, Any]:
    found = read_fields(Jmeter, {_PROPERTIES: texts.get(_PROPERTIES, "")}, "driver.").get("properties", {})
    if not isinstance(found, dict):
        raise RequestError("Give the properties as lines NAME: value.", field=_PROPERTIES)
    return found


def _show(properties: Mapping[str, Any]) -> dict[str, str]:
    return {_PROPERTIES: "", **(flatten(Jmeter, {"properties": properties}, "driver.") if properties else {})}
