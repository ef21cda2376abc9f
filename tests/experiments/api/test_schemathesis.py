"""Every operation of the schema with made-up requests: no 5xx, and no answer that the schema does not tell.

BENCHHUB_FUZZ_EXAMPLES=200 asks each operation more often (docs/security.md has the counts).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import schemathesis
from django.core.handlers.wsgi import WSGIHandler
from django.core.signals import request_finished, request_started
from django.db import close_old_connections, transaction
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import Failure, FailureGroup
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.experiments.api.conftest import ApiClient
from tests.experiments.api.test_auth import SCHEMA, full  # noqa: F401 - the fixture
from tests.properties import HealthCheck, Phase, given, settings

EXAMPLES = int(os.environ.get("BENCHHUB_FUZZ_EXAMPLES", "4"))
PARTS = 4
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
OPERATIONS = sorted(
    (found.ok() for found in schemathesis.openapi.from_dict(SCHEMA).get_all_operations() if isinstance(found, Ok)),
    key=lambda operation: str(operation.label),
)


def ask(operation: Any, mode: GenerationMode, api: ApiClient, values: dict[str, str]) -> tuple[int, list[str]]:
    """How many requests were sent, and what was wrong with the answers."""
    sent = 0
    wrong: list[str] = []

    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def once(case: Any) -> None:
        nonlocal sent
        sent += 1
        if mode is GenerationMode.POSITIVE and case.path_parameters:
            case.path_parameters = {**case.path_parameters, **named(operation, values)}
        if isinstance((case.query or {}).get("wait"), int):
            case.query["wait"] = 0  # a run that nobody executes would be waited for in vain
        with transaction.atomic():
            try:
                # Its own client for WSGI does not unpack what is compressed.
                headers = {"Authorization": str(api.header), "Accept-Encoding": "identity"}
                case.call_and_validate(app=WSGIHandler(), checks=CHECKS, headers=headers)
            except (FailureGroup, Failure) as failure:
                told = failure.exceptions if isinstance(failure, FailureGroup) else [failure]
                wrong.extend(f"{operation.label}: {one.title}: {one.message[:600]}" for one in told)
            transaction.set_rollback(True)

    once()
    return sent, wrong


def named(operation: Any, values: dict[str, str]) -> dict[str, Any]:
    """What exists, for the names in the path; what the fixture does not have stays as it was made up."""
    noun = operation.path.split("/")[3]
    names = {"applications": "tomcat", "recipes": "limits", "workloads": "home page", "library": "tomcat-baseline"}
    known = {**values, "name": "out.txt" if "artifacts" in operation.path else names.get(noun, "sut-1")}
    wanted = re.findall(r"{(\w+)}", operation.path)
    return {name: int(known[name]) if known[name].isdigit() else known[name] for name in wanted if name in known}


@contextmanager
def same_connection() -> Iterator[None]:
    """The end of a request would close the connection of the test's transaction."""
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    try:
        yield
    finally:
        for signal in (request_started, request_finished):
            signal.connect(close_old_connections)


@pytest.mark.parametrize("part", range(PARTS))
def test_made_up_requests_get_documented_answers(api: ApiClient, full: dict[str, str], part: int) -> None:  # noqa: F811
    total, wrong = 0, []
    for operation in OPERATIONS[part::PARTS]:
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            if mode is GenerationMode.NEGATIVE and not (list(operation.iter_parameters()) or operation.body):
                continue
            with same_connection():
                sent, failures = ask(operation, mode, api, full)
            total += sent
            wrong += failures
    assert total > 0
    assert not wrong, "\n\n".join(dict.fromkeys(wrong))
