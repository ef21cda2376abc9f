"""What every operation answered when its example was sent: recorded, and read only when the schema is drawn."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from pydantic import BaseModel, TypeAdapter

from experiments.api.plumbing.examples import BODIES
from experiments.api.plumbing.parameters import example_of, said_of

FILE = Path(__file__).with_name("answers.json")
HOW_TO_RECORD = (
    "Send it in bench/api_story.py, then run `bin/record-answers`, and read what it changed in answers.json."
)


class Recorded(BaseModel):
    """One operation: the address that was asked, and its answers by status and media type."""

    asked: str
    answers: dict[str, dict[str, Any]]


_FILE = TypeAdapter(dict[str, Recorded])


def recorded_answers() -> dict[str, Recorded]:
    """All of them, by operation; read anew each time, as a process needs them once."""
    return _FILE.validate_json(FILE.read_bytes())


def add_examples(schema: dict[str, Any]) -> None:
    """Give every operation what it takes, what it answers and the curl command that asks it."""
    recorded = recorded_answers()
    for path, methods in schema["paths"].items():
        for method, said in methods.items():
            name = said["operationId"]
            found = recorded.get(name, Recorded(asked=path, answers={}))
            body = None
            if "requestBody" in said:
                content = said["requestBody"]["content"]["application/json"]
                body = content.setdefault("example", BODIES.get(name, {}))
            _add_answers(said["responses"], found)
            _add_parameters(path, said, found.asked)
            said["x-codeSamples"] = [{"lang": "Shell", "source": _curl(method, said, found.asked, body)}]


def _add_answers(responses: Mapping[Any, Any], found: Recorded) -> None:
    for status, answer in responses.items():
        for media, example in found.answers.get(str(status), {}).items():
            if media in answer.get("content", {}):
                answer["content"][media]["example"] = example


def _add_parameters(path: str, said: Mapping[str, Any], asked: str) -> None:
    places = re.fullmatch(re.sub(r"{(\w+)}", r"(?P<\1>.+)", path), urlsplit(asked).path)
    values = places.groupdict() if places else {}
    for parameter in said["parameters"]:
        name = parameter["name"]
        example: Any = unquote(values[name]) if name in values else example_of(said["operationId"], name)
        if not parameter.get("description") and not parameter["schema"].get("description"):
            parameter["description"] = said_of(said["operationId"], name)
        if example is not None and "example" not in parameter:
            is_number = parameter["schema"].get("type") == "integer"
            parameter["example"] = int(example) if is_number and str(example).isdigit() else example


def _curl(method: str, said: Mapping[str, Any], asked: str, body: Any) -> str:
    words = ["curl", "-H", '"Authorization: Bearer $BENCHHUB_TOKEN"']
    if method != "get":
        words += ["-X", method.upper()]
    if any(parameter["name"] == "Idempotency-Key" for parameter in said["parameters"]):
        words += ["-H", '"Idempotency-Key: build-17"']
    if body is not None:
        words += ["-H", "'Content-Type: application/json'", "-d", shlex.quote(json.dumps(body))]
    return " ".join([*words, f'"$BENCHHUB_URL{asked}"'])
