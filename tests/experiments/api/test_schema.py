"""The OpenAPI schema is valid, and the reference page needs no network."""

from __future__ import annotations

import json
import re
from typing import Any

import yaml
from django.conf import settings
from django.test import Client
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from openapi_spec_validator import validate

from clients.python.benchhub_client.connection import SECRETS
from experiments.models import Run


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
        _, _, kind, name = reference.split("/")
        assert name in schema["components"][kind], reference
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


def test_other_tools_can_read_the_description(client: Client, db: None) -> None:
    """bench/api_tools.py has those that are not of Python, and compiles what they generate."""
    text = client.get("/api/v1/openapi.json").content.decode()
    yaml.safe_load(text)  # many tools read JSON as YAML, where an escaped half of a character is none
    schema = json.loads(text)
    validate(schema)
    assert schema["servers"][0]["url"] == settings.BENCHHUB_URL
    told = {tag["name"] for tag in schema["tags"]}
    for methods in schema["paths"].values():
        for said in methods.values():
            assert set(said["tags"]) <= told
            assert said["description"]
    shapes = schema["components"]["schemas"]
    assert {f"#/components/schemas/{name}" for name in shapes} <= references(schema)
    pattern = ("prefixItems", "allOf")
    assert not [word for word in pattern if f'"{word}":' in text], "see experiments/api/plumbing/standard.py"
    unions = re.findall(r'"mapping":{([^}]*)},"propertyName":"(\w+)"', text.replace(" ", ""))
    unions += [(b, a) for a, b in re.findall(r'"propertyName":"(\w+)","mapping":{([^}]*)}', text.replace(" ", ""))]
    assert unions
    for mapping, tag in unions:
        for name in re.findall(r"schemas/(\w+)", mapping):
            assert tag in shapes[name]["required"], name
    assert set(shapes["RunRow"]["properties"]["state"]["enum"]) == set(Run.State.values)
    assert shapes["RunRow"]["properties"]["queued_at"]["format"] == "date-time"


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


def test_every_operation_has_an_example_that_fits_its_schema(client: Client, db: None) -> None:
    schema = json.loads(client.get("/api/v1/openapi.json").content)
    for path, methods in schema["paths"].items():
        for method, said in methods.items():
            command = said["x-codeSamples"][0]["source"]
            assert command.startswith("curl "), path
            assert "{" not in command.rpartition('"$BENCHHUB_URL')[2], command
            if "requestBody" in said:
                content = said["requestBody"]["content"]["application/json"]
                whole = {**content["schema"], "components": schema["components"]}
                Draft202012Validator(whole).validate(content["example"])
            needs_key = any(one["name"] == "Idempotency-Key" for one in said["parameters"])
            assert needs_key == ("Idempotency-Key" in command), (method, path)


SHOWN_ONCE = {
    "create_token", "create_share", "create_webhook", "rotate_webhook_secret", "create_invitation", "resend_invitation",
}  # fmt: skip
"""Their answers have a secret, which is not stored, so that it cannot be answered again."""
REPEATABLE = {
    "tag_runs", "untag_runs", "archive_runs", "unarchive_runs", "create_view", "drain_host", "grant_host",
    "expect_present_level", "install_template", "unarchive_application", "unarchive_recipe", "unarchive_workload",
}  # fmt: skip
"""The same once more changes nothing, and is no error."""
ONLY_READS = {"forecast_experiment", "read_jmeter_plan", "try_prometheus_source"}
OF_ONE_STATE = {"approve_host_key", "clear_dirty_host"}
"""They take `If-Match`, which says what state of the host they are meant for."""


def test_whatever_would_do_something_else_the_second_time_takes_an_idempotency_key(client: Client, db: None) -> None:
    schema = json.loads(client.get("/api/v1/openapi.json").content)
    posts, takes = set(), set()
    for path, methods in schema["paths"].items():
        for method, said in methods.items():
            if method == "post":
                posts.add(said["operationId"])
                shown_once = bool(SECRETS.fullmatch(path.removeprefix("/api/v1")))
                assert shown_once == (said["operationId"] in SHOWN_ONCE), path  # what the clients do not send again
            if any(one["name"] == "Idempotency-Key" for one in said["parameters"]):
                takes.add(said["operationId"])
    assert takes == posts - SHOWN_ONCE - REPEATABLE - ONLY_READS - OF_ONE_STATE


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
