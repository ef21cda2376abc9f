"""Every operation with a body, given bodies that no client should send: refused by name, and nothing is stored."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from experiments.models import AuditEntry
from tests.experiments.api.conftest import ApiClient
from tests.experiments.api.test_auth import BODIES, OPERATIONS

WITH_BODY = [(method, path, said) for method, path, said in OPERATIONS if "requestBody" in said]
TEXTS = {
    "broken": b'{"a":',
    "bad UTF-8": b'{"a": "\xff"}',
    "two values": b"{} {}",
    "duplicate keys": b'{"a": 1, "a": 2}',
    "not a number": b'{"a": NaN}',
    "infinity": b'{"a": -Infinity}',
    "huge number": b'{"a": 9223372036854775808}',
    "huge exponent": b'{"a": 1e999}',
    "NUL": b'{"a": "x\\u0000"}',
    "half a character": b'{"a": "\\ud800"}',
    "depth": b'{"a": ' * 1000 + b"1" + b"}" * 1000,
    "lists": b"[" * 100_000,
    "number": b"7",
    "text": b'"x"',
    "list": b"[1, 2]",
}
UNKNOWN = {"__proto__": {}, "id": 1, "team": 1, "is_demo": True}


@pytest.mark.parametrize("name", TEXTS)
def test_a_body_that_cannot_be_read_is_refused_everywhere(api: ApiClient, name: str) -> None:
    before = AuditEntry.objects.count()
    for method, path, _ in WITH_BODY:
        answer = api.send(method, re.sub(r"{\w+}", "1", path), TEXTS[name])
        assert answer.status_code in (400, 422), (method, path, answer.content)
        assert answer["Content-Type"] == "application/problem+json"
        assert answer.json()["detail"], path
    assert AuditEntry.objects.count() == before


@pytest.mark.parametrize("field", UNKNOWN)
def test_a_field_that_nobody_knows_is_named_everywhere(api: ApiClient, field: str) -> None:
    before = AuditEntry.objects.count()
    for method, path, said in WITH_BODY:
        given: dict[str, Any] = BODIES.get(said["operationId"], {})
        body = json.dumps({**given, field: UNKNOWN[field]}).encode()
        answer = api.send(method, re.sub(r"{\w+}", "1", path), body)
        assert answer.status_code == 422, (method, path, answer.content)
        fields = [answer.json()["field"], *(error["field"] for error in answer.json()["errors"])]
        assert any(one.split(".")[-1] == field for one in fields), (path, fields)
    assert AuditEntry.objects.count() == before
