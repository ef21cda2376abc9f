"""`fields=`: answers with only what the client asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.http import HttpResponse
from ninja.params.functions import Query
from pydantic import BaseModel

from experiments.api.plumbing.rendering import rendered
from experiments.registry.errors import RequestError

FIELDS: Any = Query("", max_length=1000, description="Only these fields of each, with commas between; all when empty")
_REFERENCE = "#/components/schemas/"


def sparse(value: BaseModel | Sequence[BaseModel], row: type[BaseModel], fields: str) -> Any:
    """The answer with the chosen fields of each `row`: of one object, of a list, or of the `items` of a page.

    RequestError names a field that there is not.
    """
    chosen = chosen_fields(row, fields)
    if not chosen:
        return value
    found: Any
    if isinstance(value, Sequence):
        found = [one.model_dump(include=chosen) for one in value]
    elif isinstance(value, row):
        found = value.model_dump(include=chosen)
    else:
        others = dict.fromkeys(type(value).model_fields, True)
        found = value.model_dump(include={**others, "items": {"__all__": chosen}})
    return HttpResponse(rendered(found), content_type="application/json; charset=utf-8")


def chosen_fields(row: type[BaseModel], fields: str) -> set[str]:
    """The names in `fields`; none = all. RequestError names a field that there is not."""
    chosen = {name.strip() for name in fields.split(",") if name.strip()}
    for name in sorted(chosen - set(row.model_fields)):
        known = ", ".join(row.model_fields)
        raise RequestError(f"There is no field {name[:60]!r} here; known: {known}.", field="fields")
    return chosen


def document_sparse(schema: dict[str, Any]) -> None:
    """Say in the OpenAPI schema that an operation with `fields` may leave fields out."""
    shapes = schema["components"]["schemas"]
    for methods in schema["paths"].values():
        for said in methods.values():
            if any(parameter["name"] == "fields" for parameter in said["parameters"]):
                content = said["responses"][200]["content"]["application/json"]
                content["schema"] = {"anyOf": [content["schema"], _sparse(content["schema"], shapes)]}


def _sparse(schema: Mapping[str, Any], shapes: dict[str, Any]) -> dict[str, Any]:
    if schema.get("type") == "array":
        return {"type": "array", "items": _sparse(schema["items"], shapes)}
    name = schema["$ref"].removeprefix(_REFERENCE)
    shape = {key: value for key, value in shapes[name].items() if key != "required"}
    if "items" in shape["properties"]:
        shape["properties"] = {**shape["properties"], "items": _sparse(shape["properties"]["items"], shapes)}
        shape["required"] = shapes[name]["required"]
    shapes[f"{name}Sparse"] = {**shape, "title": f"{name}Sparse"}
    return {"$ref": f"{_REFERENCE}{name}Sparse"}
