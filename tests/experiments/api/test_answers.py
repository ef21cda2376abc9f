"""Every operation of the OpenAPI document shows a true answer and what to type for its parameters."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from pydantic import BaseModel

from experiments.api.plumbing.answers import FILE, HOW_TO_RECORD, recorded_answers
from tests.experiments.api.conftest import ApiClient
from tests.experiments.api.test_auth import OPERATIONS, SCHEMA, full, ids  # noqa: F401 - the fixture

WITHOUT_AN_ANSWER_HERE = {"compare_functions", "compare_runs", "compare_timers", "machine_factors"}
"""They name runs that the fixture does not have."""


def missing(schema: dict[str, Any]) -> list[str]:
    """What has no example: successes with a body, and parameters without a list of their values."""
    found = []
    for path, methods in schema["paths"].items():
        for method, said in methods.items():
            place = f"{method.upper()} {path}"
            for status, answer in said["responses"].items():
                if str(status).startswith("2"):
                    found += [
                        f"{place} has no example of its answer {status} {media}. {HOW_TO_RECORD}"
                        for media, content in answer.get("content", {}).items()
                        if "example" not in content
                    ]
            found += [
                f"{place} has no example of its parameter {one['name']}: experiments/api/plumbing/parameters.py."
                for one in said["parameters"]
                if "example" not in one and not {"enum", "const"} & set(one["schema"])
            ]
    return found


def test_every_success_and_every_parameter_has_an_example() -> None:
    assert missing(SCHEMA) == []


def test_a_new_operation_without_an_example_is_told_what_to_run() -> None:
    parameter = {"name": "colour", "in": "query", "schema": {"type": "string"}}
    answer: dict[str, Any] = {"200": {"content": {"application/json": {"schema": {}}}}}
    new = {"paths": {"/api/v1/new": {"get": {"responses": answer, "parameters": [parameter]}}}}
    without_answer, without_value = missing(new)
    assert "GET /api/v1/new has no example of its answer 200 application/json" in without_answer
    assert "bin/record-answers" in without_answer
    assert "colour" in without_value


@pytest.mark.parametrize("operation", OPERATIONS, ids=ids)
def test_examples_fit_the_schema(operation: tuple[str, str, Any]) -> None:
    _, _, said = operation
    contents = [
        (content["schema"], content["example"])
        for status, answer in said["responses"].items()
        if status.startswith("2")
        for media, content in answer.get("content", {}).items()
        if media not in ("application/yaml",)  # an object, shown as the text that it is sent as
    ]
    for schema, example in [
        *contents,
        *((one["schema"], one["example"]) for one in said["parameters"] if "example" in one),
    ]:
        Draft202012Validator({**schema, "components": SCHEMA["components"]}).validate(example)


def test_recorded_answers_are_of_operations_that_there_are_and_name_no_machine() -> None:
    assert set(recorded_answers()) == {said["operationId"] for _, _, said in OPERATIONS}
    text = FILE.read_text()
    for private in (r"127\.0\.0\.\d", r"/tmp\b", r"/root\b", r"bh_[0-9a-f]{16}_[0-9a-f]", r"PRIVATE KEY", r"localhost"):
        assert not re.search(private, text), re.search(f".{{60}}{private}.{{20}}", text)
    assert len(text) < 400_000


def test_examples_of_filters_are_understood(api: ApiClient, full: dict[str, str]) -> None:  # noqa: F811
    for method, path, said in OPERATIONS:
        if method != "GET" or "{" in path or said["operationId"] in WITHOUT_AN_ANSWER_HERE:
            continue
        for one in said["parameters"]:
            if one["in"] != "query" or (said["operationId"], one["name"]) == ("list_runs", "cursor"):
                continue
            value = one.get("example", one["schema"].get("enum", [""])[-1])
            for part in value if isinstance(value, list) else [value]:
                answer = api.get(f"{path}?{one['name']}={str(part).replace(' ', '%20')}")
                assert answer.status_code in {200, 404}, (path, one["name"], json.dumps(part), answer.content)


def test_no_two_shapes_have_one_name() -> None:
    """The description would keep one of them, and say it of the other's answers, too."""

    def below(shape: type[BaseModel]) -> Iterator[type[BaseModel]]:
        for one in shape.__subclasses__():
            yield one
            yield from below(one)

    names = Counter(one.__name__ for one in set(below(BaseModel)) if one.__module__.startswith("experiments.api."))
    assert len(names) > 200
    assert [name for name, count in names.items() if count > 1] == []
