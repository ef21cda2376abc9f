"""The typed form of an application, a recipe or a workload: its body as flat texts and back, rows added and moved."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pydantic import BaseModel

from agents.drivers import DRIVERS
from agents.servers import SERVERS
from agents.spec import ApplicationDocument, Phase, WorkloadDocument
from agents.steps import STEPS
from agents.steps.recipe import ON, UNIT_BYTES, RecipeDocument
from experiments.registry.errors import RequestError
from frontend.pages.documents import jmeter_plan
from frontend.shared.forms.model_fields import (
    ModelField,
    Texts,
    fields_of,
    flatten,
    read_fields,
    read_scalar,
    show_scalar,
)
from frontend.shared.forms.parameters import EMPTY_TEXT, parameter_text

PARAMETER_COLUMNS = ("name", "type", "default", "minimum", "maximum", "choices", "memory", "description")
PHASE_COLUMNS = ("name", "kind", "duration_s")
PARAMETER_TYPES = ("int", "float", "str", "bool")
MEMORY_UNITS = ("", *UNIT_BYTES)
PHASE_KINDS = (("warm_up", "warm up"), ("measure", "measure"))


@dataclass(frozen=True)
class Part:
    """A piece whose fields depend on its kind: a step, the load tool, the server."""

    name: str
    kind: str
    kinds: tuple[str, ...]
    summary: str
    fields: list[ModelField]


@dataclass(frozen=True)
class Row:
    """A line of a table; `cells` maps a column to what stands in it."""

    name: str
    cells: Mapping[str, str]


@dataclass(frozen=True)
class DocumentForm:
    """What the form tab shows. A kind of document uses some of these and leaves the others empty."""

    description: str
    fields: list[ModelField]
    part: Part | None
    steps: list[Part]
    parameters: list[Row]
    phases: list[Row]
    plan: jmeter_plan.PlanForm | None = None

    @property
    def is_system(self) -> bool:
        """Whether an application has further members, or a name for its loaded server."""
        return any(field.value for field in self.fields)


def form_of(schema: type[BaseModel], texts: Texts) -> DocumentForm:
    """The form that shows `texts`."""
    part, fields, steps, parameters, phases = None, [], [], [], []
    if schema is RecipeDocument:
        steps = [_step(f"steps.{i}", texts) for i in _rows(texts, "steps", "kind")]
        parameters = _table(texts, "parameters", PARAMETER_COLUMNS)
    elif schema is WorkloadDocument:
        part = _part("driver", DRIVERS, texts)
        fields = _plain_fields(WorkloadDocument, texts)
        phases = _table(texts, "phases", PHASE_COLUMNS)
    else:
        part = _part("server", SERVERS, texts)
        fields = _plain_fields(ApplicationDocument, texts)
    plan = jmeter_plan.plan_form(texts) if part is not None and part.kind == "jmeter" else None
    return DocumentForm(texts.get("description", ""), fields, part, steps, parameters, phases, plan)


def texts_of(schema: type[BaseModel], body: Mapping[str, Any]) -> dict[str, str]:
    """The texts of a body that its schema accepts."""
    texts = {"description": str(body.get("description", ""))}
    if schema is RecipeDocument:
        for i, (name, parameter) in enumerate(body.get("parameters", {}).items()):
            cells = {key: parameter.get(key) for key in PARAMETER_COLUMNS} | {"name": name}
            cells["default"] = parameter_text(parameter.get("default"))
            cells["choices"] = ", ".join(parameter_text(choice) for choice in parameter.get("choices", ()))
            texts |= {f"parameters.{i}.{key}": show_scalar(value) for key, value in cells.items()}
        for i, step in enumerate(body.get("steps", ())):
            on = {f"steps.{i}.{ON}": str(step[ON])} if step.get(ON) else {}
            texts |= _part_texts(f"steps.{i}", STEPS, step) | on
    elif schema is WorkloadDocument:
        texts |= _part_texts("driver", DRIVERS, body["driver"])
        texts |= {f.name: f.value for f in _plain_fields(schema, flatten(schema, body))}
        for i, phase in enumerate(body["phases"]):
            texts |= {f"phases.{i}.{key}": show_scalar(phase.get(key)) for key in PHASE_COLUMNS}
        texts = jmeter_plan.split(texts)
    else:
        texts |= _part_texts("server", SERVERS, body["server"])
        texts |= {f.name: f.value for f in _plain_fields(schema, flatten(schema, body))}
    return texts


def read_body(schema: type[BaseModel], texts: Texts) -> dict[str, Any]:
    """The body in a form, not validated yet. RequestError for what no body can hold."""
    body: dict[str, Any] = {}
    if description := texts.get("description", "").replace("\r\n", "\n").strip():
        body["description"] = description
    if schema is RecipeDocument:
        if parameters := _read_parameters(texts):
            body["parameters"] = parameters
        body["steps"] = [_read_step(f"steps.{i}", texts) for i in _rows(texts, "steps", "kind")]
    elif schema is WorkloadDocument:
        body["driver"] = jmeter_plan.with_rows(_read_part("driver", DRIVERS, texts), texts)
        plain = {f.name for f in _plain_fields(WorkloadDocument, texts)}
        body |= read_fields(WorkloadDocument, {name: text for name, text in texts.items() if name in plain})
        body["phases"] = [
            read_fields(Phase, texts, f"phases.{i}.")
            for i in _rows(texts, "phases", "name")
            if texts.get(f"phases.{i}.name", "").strip() or texts.get(f"phases.{i}.duration_s", "").strip()
        ]
    else:
        body["server"] = _read_part("server", SERVERS, texts)
        plain = {f.name for f in _plain_fields(ApplicationDocument, texts)}
        body |= read_fields(ApplicationDocument, {name: text for name, text in texts.items() if name in plain})
    return body


def act(texts: Texts, action: str) -> dict[str, str]:
    """The texts after a row button: `add:steps`, `remove:steps.2`, `up:phases.1`, `down:phases.0`."""
    verb, _, name = action.partition(":")
    if verb == "add" and name in ("steps", "parameters", "phases"):
        i = max(_rows(texts, name, "kind" if name == "steps" else "name"), default=-1) + 1
        fresh = {"steps": ("kind", texts.get("new_step", "sysctl")), "parameters": ("name", ""), "phases": ("name", "")}
        column, value = fresh[name]
        return {**texts, f"{name}.{i}.{column}": value}
    group, _, index = name.partition(".")
    if not index.isdecimal() or group not in ("steps", "parameters", "phases"):
        return dict(texts)
    rows = _rows(texts, group, "kind" if group == "steps" else "name")
    if int(index) not in rows:
        return dict(texts)
    at = rows.index(int(index))
    if verb == "remove":
        del rows[at]
    elif verb in ("up", "down"):
        other = at + (1 if verb == "down" else -1)
        if 0 <= other < len(rows):
            rows[at], rows[other] = rows[other], rows[at]
    return _renumbered(texts, group, rows)


def _renumbered(texts: Texts, group: str, rows: list[int]) -> dict[str, str]:
    kept = {name: text for name, text in texts.items() if not re.match(rf"{group}\.\d+\.", name)}
    for new, old in enumerate(rows):
        prefix = f"{group}.{old}."
        kept |= {f"{group}.{new}.{n.removeprefix(prefix)}": t for n, t in texts.items() if n.startswith(prefix)}
    return kept


def _rows(texts: Texts, group: str, column: str) -> list[int]:
    found = (re.fullmatch(rf"{group}\.(\d{{1,4}})\.{column}", name) for name in texts)
    return sorted({int(match[1]) for match in found if match})


def _table(texts: Texts, group: str, columns: tuple[str, ...]) -> list[Row]:
    """The rows that are there; one empty row when there is none."""
    rows = _rows(texts, group, "name") or [0]
    return [Row(f"{group}.{i}", {key: texts.get(f"{group}.{i}.{key}", "") for key in columns}) for i in rows]


def _plain_fields(schema: type[BaseModel], texts: Texts) -> list[ModelField]:
    """Those that stand beside the part and the tables."""
    known = ("description", "driver", "phases")
    return [f for f in fields_of(schema, texts) if f.name not in known and f.name.partition(".")[0] != "server"]


def _part(name: str, registry: Mapping[str, type[BaseModel]], texts: Texts) -> Part:
    kind = texts.get(f"{name}.kind", "")
    model = registry.get(kind) or next(iter(registry.values()))
    kind = kind if kind in registry else next(iter(registry))
    return Part(name, kind, tuple(registry), _first_paragraph(model), fields_of(model, texts, f"{name}."))


def _step(name: str, texts: Texts) -> Part:
    """A step with the field that says which member of a system it is meant for."""
    part = _part(name, STEPS, texts)
    on = f"{name}.{ON}"
    told = "The member of a system that it is meant for, such as database. Empty: the server that is loaded."
    return replace(part, fields=[*part.fields, ModelField(on, "On", "str", texts.get(on, ""), help=told)])


def _read_step(name: str, texts: Texts) -> dict[str, Any]:
    on = texts.get(f"{name}.{ON}", "").strip()
    return _read_part(name, STEPS, texts) | ({ON: on} if on else {})


def _part_texts(name: str, registry: Mapping[str, type[BaseModel]], body: Mapping[str, Any]) -> dict[str, str]:
    kind = str(body["kind"])
    return {f"{name}.kind": kind, **flatten(registry[kind], body, f"{name}.")}


def _read_part(name: str, registry: Mapping[str, type[BaseModel]], texts: Texts) -> dict[str, Any]:
    kind = texts.get(f"{name}.kind", "")
    if kind not in registry:
        raise RequestError(f"There is no kind {kind!r}; known: {', '.join(registry)}.", field=f"{name}.kind")
    try:
        return {"kind": kind, **read_fields(registry[kind], texts, f"{name}.")}
    except RequestError as error:
        raise RequestError(error.message, field=f"{name}.{error.field}".rstrip(".")) from error


def _read_parameters(texts: Texts) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for row in _table(texts, "parameters", PARAMETER_COLUMNS):
        cells = {key: text.strip() for key, text in row.cells.items()}
        name, of = cells["name"], cells["type"] or "int"
        if not name:
            if any(text for key, text in cells.items() if key != "type"):
                raise RequestError("Give the parameter a name.", field=f"{row.name}.name")
            continue
        if name in found:
            raise RequestError(f"There are two parameters {name}.", field=f"{row.name}.name")
        parameter: dict[str, Any] = {"type": of}
        if cells["default"]:
            parameter["default"] = _value(of, cells["default"])
        for bound in ("minimum", "maximum"):
            if cells[bound]:
                parameter[bound] = read_scalar("int" if cells[bound].lstrip("-").isdecimal() else "float", cells[bound])
        if cells["choices"]:
            parameter["choices"] = [_value(of, text.strip()) for text in cells["choices"].split(",") if text.strip()]
        parameter |= {key: cells[key] for key in ("memory", "description") if cells[key]}
        found[name] = parameter
    return found


def _value(of: str, text: str) -> Any:
    return "" if of == "str" and text == EMPTY_TEXT else read_scalar(of, text)


def _first_paragraph(model: type[BaseModel]) -> str:
    return " ".join((model.__doc__ or "").partition("\n\n")[0].split()).replace("`", "")
