"""The reference page, made from the schema on this server: no script, no network."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

_METHODS = ("get", "post", "put", "patch", "delete")


@dataclass(frozen=True)
class Field:
    name: str
    type: str
    required: bool
    place: str
    text: str
    example: str = ""


@dataclass(frozen=True)
class Answer:
    """One recorded answer of an operation."""

    status: str
    media: str
    text: str


@dataclass(frozen=True)
class Operation:
    method: str
    path: str
    anchor: str
    text: str
    scope: str
    fields: tuple[Field, ...]
    body: str
    answer: str
    example: str
    answers: tuple[Answer, ...]
    headers: tuple[str, ...]


@dataclass(frozen=True)
class Shape:
    name: str
    text: str
    fields: tuple[Field, ...]


def reference_page(request: HttpRequest, schema: Mapping[str, Any]) -> HttpResponse:
    """Every operation by noun, then every shape."""
    groups: dict[str, list[Operation]] = {}
    for path, methods in schema["paths"].items():
        for method in _METHODS:
            if method in methods:
                tag = (methods[method].get("tags") or ["other"])[0]
                groups.setdefault(tag, []).append(_operation(method, path, methods[method]))
    shapes = [_shape(name, shape) for name, shape in sorted(schema["components"]["schemas"].items())]
    headers = [
        Field(name, _type(said["schema"]), False, "", said["description"], said["example"])
        for name, said in sorted(schema["components"]["headers"].items())
    ]
    context = {"info": schema["info"], "groups": groups, "shapes": shapes, "headers": headers}
    return render(request, "experiments/api_reference.html", context)


def _operation(method: str, path: str, said: Mapping[str, Any]) -> Operation:
    body = said.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    good = [answer for status, answer in said["responses"].items() if str(status).startswith("2")]
    content: Mapping[str, Any] = next(iter(good[0].get("content", {}).values()), {}) if good else {}
    return Operation(
        method=method.upper(),
        path=path,
        anchor=said["operationId"],
        text=said.get("description") or said["summary"],
        scope=said.get("x-scope") or "",
        fields=tuple(
            Field(
                name=parameter["name"],
                type=_type(parameter["schema"]),
                required=bool(parameter.get("required")),
                place=parameter["in"],
                text=parameter["schema"].get("description", parameter.get("description", "")),
                example=_text(parameter.get("example", "")),
            )
            for parameter in said.get("parameters", ())
        ),
        body=_type(body) if body else "",
        answer=_type(content["schema"]) if "schema" in content else "",
        example=said["x-codeSamples"][0]["source"],
        answers=tuple(_answers(said["responses"])),
        headers=tuple(good[0].get("headers", ())) if good else (),
    )


def _answers(responses: Mapping[Any, Any]) -> Iterator[Answer]:
    for status, answer in responses.items():
        for media, content in answer.get("content", {}).items():
            if "example" in content:
                yield Answer(str(status), media, _text(content["example"]))


def _text(example: Any) -> str:
    """As somebody would type or read it: a text as it is, a list of texts with commas, anything else as JSON."""
    if isinstance(example, str):
        return example
    if isinstance(example, list) and all(isinstance(one, str | int) for one in example):
        return ", ".join(map(str, example))
    return json.dumps(example, indent=2, ensure_ascii=False)


def _shape(name: str, shape: Mapping[str, Any]) -> Shape:
    required = set(shape.get("required", ()))
    return Shape(
        name=name,
        text=shape.get("description", ""),
        fields=tuple(
            Field(key, _type(value), key in required, "", value.get("description", ""))
            for key, value in shape.get("properties", {}).items()
        ),
    )


def _type(schema: Mapping[str, Any]) -> str:
    """A schema in a few words: `string`, `array of RunRow`, `integer or null`."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return " or ".join(dict.fromkeys(_type(one) for one in schema[key]))
    if "allOf" in schema:
        return _type(schema["allOf"][0])
    if "const" in schema:
        return repr(schema["const"])
    if "enum" in schema:
        return ", ".join(map(repr, schema["enum"]))
    kind = schema.get("type", "any")
    if kind == "array":
        return f"array of {_type(schema.get('items', {}))}"
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"map of {_type(schema['additionalProperties'])}"
    return str(schema.get("format", kind))
