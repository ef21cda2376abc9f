"""HEAD at every address that GET answers, and query parameters that nobody knows."""

from __future__ import annotations

from typing import Any

import pytest

from tests.experiments.api.conftest import ApiClient
from tests.experiments.api.test_auth import OPERATIONS, address, calls, full  # noqa: F401 - the fixture

VOLATILE = {"RateLimit", "X-Request-ID", "Content-Security-Policy", "Content-Length"}


def test_head_answers_like_get_without_a_body(api: ApiClient, full: dict[str, str]) -> None:  # noqa: F811
    for method, path, said in OPERATIONS:
        if method != "GET":
            continue
        asked = address(path, said, full)
        whole, bare = api.get(asked), api.send("HEAD", asked)
        assert bare.status_code == whole.status_code, path
        assert b"".join(bare) == b"", path
        same = {name: value for name, value in whole.items() if name not in VOLATILE}
        assert {name: value for name, value in bare.items() if name not in VOLATILE} == same, path


def test_head_where_nothing_can_be_got_is_a_405(api: ApiClient, full: dict[str, str]) -> None:  # noqa: F811
    answer = api.send("HEAD", "/runs/1/cancel")
    assert (answer.status_code, answer["Allow"]) == (405, "OPTIONS, POST")


def test_a_query_parameter_that_nobody_knows_is_named_everywhere(api: ApiClient, full: dict[str, str]) -> None:  # noqa: F811
    for method, path, body, said in calls(full):
        asked = f"{path}{'&' if '?' in path else '?'}no_such=1"
        answer = api.send(method, asked, body)
        assert (answer.status_code, answer.json()["field"]) == (422, "no_such"), (method, path, answer.content)
        known = sorted(one["name"] for one in said["parameters"] if one["in"] == "query")
        assert answer.json()["detail"].endswith(f"known: {', '.join(known)}." if known else "it takes none."), path


def test_a_query_parameter_that_holds_one_value_is_refused_when_it_is_given_twice(
    api: ApiClient,
    full: dict[str, str],  # noqa: F811
) -> None:
    for method, path, body, said in calls(full):
        for one in said["parameters"]:
            if one["in"] != "query":
                continue
            asked = f"{path}{'&' if '?' in path else '?'}{one['name']}=1&{one['name']}=2"
            answer = api.send(method, asked, body)
            words = f"{one['name']} is given "
            if _shape(one["schema"]) == "array":
                assert words not in b"".join(answer).decode(errors="replace"), asked
            else:
                assert (answer.status_code, answer.json()["field"]) == (422, one["name"]), asked


def _shape(schema: dict[str, Any]) -> str:
    shapes = [one.get("type") for one in (schema, *schema.get("anyOf", ()))]
    return "array" if "array" in shapes else "single"


@pytest.mark.parametrize(
    "query, status",
    [
        ("number__in=1&number__in=2", 422),
        ("number__in=1,2", 200),
        ("state=queued&state=queued", 422),
        ("team=perf&team=perf", 422),
        ("label=a=1&label=b=2&param=c=3&param=d=4", 200),
    ],
)
def test_a_filter_that_is_given_twice_does_not_lose_its_first_value_in_silence(
    api: ApiClient, stock: dict[str, Any], query: str, status: int
) -> None:
    for path in ("/runs", "/runs/csv", "/runs.parquet"):
        answer = api.get(f"{path}?{query}")
        assert answer.status_code == status, path
        if status == 422:
            name = query.partition("=")[0]
            said = f"{name} is given 2 times, and holds one value{'; commas separate several' * name.endswith('__in')}."
            assert (answer.json()["field"], answer.json()["detail"]) == (name, said)


@pytest.mark.parametrize("path, status", [("/runs?team=perf", 200), ("/runs?recipes=limits", 422), ("/me?x=1", 422)])
def test_the_team_may_be_named_everywhere(api: ApiClient, stock: dict[str, Any], path: str, status: int) -> None:
    assert api.get(path).status_code == status


@pytest.mark.parametrize(
    "query, field, said",
    [
        ("state__in=queued,done", "state__in", "There is no state 'done'; known: queued,"),
        ("throughput_rps__gt=5", "throughput_rps__gt", "did you mean throughput_rps__gte? Known: "),
    ],
)
def test_a_misspelt_filter_of_runs_is_told_what_there_is(api: ApiClient, query: str, field: str, said: str) -> None:
    answer = api.get(f"/runs?{query}")
    assert (answer.status_code, answer.json()["field"]) == (422, field)
    assert said in answer.json()["detail"]


@pytest.mark.parametrize(
    "body, detail",
    [
        ([], "The body must be an object: {...}."),
        (
            {"recipe": "limits", "workload": "home", "application": "tomcat", "sut": "sut-1", "driver": "driver-1"},
            "drivers: it is missing; driver: there is no such field here; /api/v1/docs has those that there are",
        ),
        ({}, "application: it is missing; recipe: it is missing; workload: it is missing; and 2 more"),
    ],
)
def test_what_is_wrong_with_a_body_is_told_in_one_sentence(api: ApiClient, body: object, detail: str) -> None:
    answer = api.post("/runs", body)
    assert (answer.status_code, answer.json()["detail"]) == (422, detail)


def test_a_version_that_there_is_not_is_told_the_newest(api: ApiClient, stock: dict[str, Any]) -> None:
    wanted = {name: stock[name].name for name in ("application", "recipe", "workload", "sut")}
    answer = api.post("/runs", {**wanted, "recipe": f"{wanted['recipe']}@9", "drivers": [stock["drivers"][0].name]})
    newest = f"There is no recipe '{wanted['recipe']}@9'. The newest version of {wanted['recipe']} is 1."
    assert (answer.status_code, answer.json()["detail"]) == (422, newest)
