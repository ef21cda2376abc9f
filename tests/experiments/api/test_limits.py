"""What every answer says about the budget of the token, and that a Redis that is away is in nobody's way."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from experiments.models import Member
from tests.experiments.api.conftest import ApiClient, MakeApi


def test_every_counted_answer_says_what_is_left(api: ApiClient, settings: Any) -> None:
    settings.BENCHHUB_API_PER_MINUTE = 10
    answers = [
        api.get("/me"),
        api.get("/runs/99"),
        api.post("/runs", {}),
        api.send("PATCH", "/runs/1", {"priority": 1}),
    ]
    assert {answer["RateLimit-Policy"] for answer in answers} == {'"default";q=10;w=60'}
    left = [re.fullmatch(r'"default";r=(\d+);t=(\d+)', answer["RateLimit"]) for answer in answers]
    assert [int(found[1]) for found in left if found] == [9, 8, 7, 6]
    assert all(found and 1 <= int(found[2]) <= 60 for found in left)


def test_a_spent_budget_is_a_429_that_says_when_to_go_on(
    api: ApiClient, admin: Member, make_api: MakeApi, settings: Any
) -> None:
    settings.BENCHHUB_API_PER_MINUTE = 2
    statuses = [api.get("/me").status_code for _ in range(2)]
    refused = api.get("/me")
    assert (statuses, refused.status_code, refused["Content-Type"]) == ([200, 200], 429, "application/problem+json")
    assert refused["RateLimit"].startswith('"default";r=0;t=')
    assert f"go on in {refused['Retry-After']} s" in refused.json()["detail"]
    assert make_api(admin).get("/me").status_code == 200  # another token has a budget of its own


def test_results_from_elsewhere_have_a_limit_of_their_own(api: ApiClient, settings: Any) -> None:
    settings.BENCHHUB_API_PER_MINUTE, settings.BENCHHUB_INGEST_PER_MINUTE = 1, 5
    assert api.get("/me").status_code == 200
    assert api.post("/imports", {})["RateLimit"].startswith('"ingest";r=4;')
    assert api.get("/me").status_code == 429


def test_no_limit_is_counted_nowhere(api: ApiClient, settings: Any) -> None:
    settings.BENCHHUB_API_PER_MINUTE = 0
    assert not api.get("/me").has_header("RateLimit-Policy")


@pytest.fixture
def silent() -> Iterator[int]:
    """The port of something that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.mark.parametrize("state", ["away", "hung"])
def test_the_api_answers_without_redis(api: ApiClient, settings: Any, silent: int, state: str) -> None:
    settings.BENCHHUB_API_PER_MINUTE = 1
    settings.REDIS_URL = f"redis://127.0.0.1:{silent if state == 'hung' else 1}/0"
    answers = [api.get("/me") for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 200]
    assert all(answer.has_header("RateLimit-Policy") and not answer.has_header("RateLimit") for answer in answers)


@pytest.mark.parametrize(
    "method, path, status, allow",
    [
        ("DELETE", "/runs", 405, "GET, HEAD, OPTIONS, POST"),
        ("PUT", "/runs/1/verdict", 405, "GET, HEAD, OPTIONS"),
        ("POST", "/recipes/x", 405, "DELETE, GET, HEAD, OPTIONS, PUT"),
        ("GET", "/nothing", 404, None),
        ("POST", "/runs/1/nothing", 404, None),
    ],
)
def test_a_wrong_method_or_address_is_a_problem_too(
    api: ApiClient, method: str, path: str, status: int, allow: str | None
) -> None:
    answer = api.send(method, path)
    assert (answer.status_code, answer["Content-Type"]) == (status, "application/problem+json")
    assert (answer.json()["status"], answer.headers.get("Allow")) == (status, allow)


@pytest.mark.parametrize("path", ["/api", "/api/", "/api/v1", "/api/v2/runs", "/api/v1/runs/"])
def test_nothing_below_api_answers_with_a_page(client: Any, db: None, path: str) -> None:
    answer = client.get(path)
    assert (answer.status_code, answer["Content-Type"]) == (404, "application/problem+json")
