"""Every `url` of an answer is a whole address: in what is recorded for the reference, and in what is answered."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from experiments.api.plumbing.answers import recorded_answers
from tests.experiments.api.conftest import ApiClient
from tests.experiments.api.test_auth import calls, full  # noqa: F401 - the fixture


def addresses_in(value: Any, name: str = "") -> Iterator[str]:
    """What stands under `url` or under a name that ends so, at any depth."""
    if isinstance(value, dict):
        for key, one in value.items():
            yield from addresses_in(one, key)
    elif isinstance(value, list):
        for one in value:
            yield from addresses_in(one, name)
    elif isinstance(value, str) and (name == "url" or name.endswith("_url")):
        yield value


def is_whole(address: str) -> bool:
    parts = urlsplit(address)
    return parts.scheme in ("http", "https") and bool(parts.netloc)


def test_every_recorded_answer_has_whole_addresses_only() -> None:
    found = {
        name: [*addresses_in(answer)]
        for name, recorded in recorded_answers().items()
        for answers in recorded.answers.values()
        for media, answer in answers.items()
        if media == "application/json"
    }
    assert {"list_artifacts", "get_run", "get_search", "get_bisection", "get_tuning"} <= {
        name for name, there in found.items() if there
    }
    assert [(name, one) for name, there in found.items() for one in there if not is_whole(one)] == []


def test_every_operation_that_reads_answers_with_whole_addresses_of_this_installation(
    api: ApiClient,
    full: dict[str, str],  # noqa: F811
    settings: Any,
) -> None:
    settings.BENCHHUB_URL = "https://hub.example.org"
    seen = set[str]()
    for method, path, _, said in calls(full):
        if method != "GET":
            continue
        answer = api.get(path)
        if answer.status_code == 200 and answer["Content-Type"].startswith("application/json"):
            there = [*addresses_in(json.loads(answer.content))]
            assert [one for one in there if not is_whole(one)] == [], path
            seen |= {said["operationId"]} if there else set()
    assert {"list_artifacts", "get_run", "list_runs", "list_experiments"} <= seen


@pytest.mark.django_db
def test_the_address_of_a_file_opens_it(api: ApiClient, full: dict[str, str], settings: Any) -> None:  # noqa: F811
    settings.BENCHHUB_URL = "https://hub.example.org"
    (listed,) = api.get("/runs/1/artifacts").json()
    assert listed["url"] == "https://hub.example.org/api/v1/runs/1/artifacts/out.txt"
    opened = api.get(listed["url"].removeprefix("https://hub.example.org/api/v1"))
    assert opened.content == b"x"
