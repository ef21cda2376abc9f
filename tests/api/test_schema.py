"""The OpenAPI schema is valid, and the reference page needs no network."""

from __future__ import annotations

import json
import re
from typing import Any

from django.test import Client


def references(node: Any) -> set[str]:
    if isinstance(node, dict):
        own = {node["$ref"]} if isinstance(node.get("$ref"), str) else set()
        return own.union(*(references(child) for child in node.values()))
    if isinstance(node, list):
        return set().union(*(references(child) for child in node))
    return set()


def test_the_schema_is_openapi_3_1(client: Client, db: None) -> None:
    answer = client.get("/api/v1/openapi.json")
    schema = json.loads(answer.content)
    assert schema["openapi"].startswith("3.1")
    shapes = schema["components"]["schemas"]
    for name, shape in shapes.items():
        assert {"type", "anyOf", "oneOf", "enum"} & set(shape), name
        assert re.fullmatch(r"[A-Za-z0-9._-]+", name), name
    for reference in references(schema):
        assert reference.removeprefix("#/components/schemas/") in shapes, reference
    operations = [said for methods in schema["paths"].values() for said in methods.values()]
    names = [said["operationId"] for said in operations]
    assert len(names) == len(set(names))
    for path, methods in schema["paths"].items():
        for said in methods.values():
            stated = {one["name"] for one in said["parameters"] if one["in"] == "path"}
            assert stated == set(re.findall(r"{(\w+)}", path)), path
            for parameter in said["parameters"]:
                assert {"type", "anyOf", "enum", "const"} & set(parameter["schema"]), (path, parameter)
    assert {"bh" not in json.dumps(schemes) for schemes in schema["components"]["securitySchemes"].values()} == {True}


def test_request_bodies_refuse_unknown_fields(client: Client, db: None) -> None:
    schema = json.loads(client.get("/api/v1/openapi.json").content)
    shapes = schema["components"]["schemas"]
    for methods in schema["paths"].values():
        for said in methods.values():
            if "requestBody" not in said:
                continue
            body = said["requestBody"]["content"]["application/json"]["schema"]
            for reference in references(body):
                assert shapes[reference.rpartition("/")[2]].get("additionalProperties") is False, reference


def test_the_reference_page_names_every_operation_and_loads_nothing_from_elsewhere(client: Client, db: None) -> None:
    schema = json.loads(client.get("/api/v1/openapi.json").content)
    answer = client.get("/api/v1/docs")
    page = answer.content.decode()
    assert answer.status_code == 200
    for path, methods in schema["paths"].items():
        for method in methods:
            assert f"{method.upper()} {path}" in page
    assert not re.findall(r'(?:src|href)="(?:https?:)?//', page)
    assert "<script" not in page
