"""What holds for every operation of the schema: its methods, its headers, and what it says to a body that is none."""

from __future__ import annotations

import json
from collections import defaultdict

from experiments.api.plumbing.problems import OF_EVERY_ANSWER
from tests.experiments.api.conftest import ApiClient
from tests.experiments.api.test_auth import OPERATIONS, SCHEMA, address, calls, counts, full  # noqa: F401 - the fixture

METHODS = ("DELETE", "GET", "PATCH", "POST", "PUT")


def test_every_address_says_its_methods_and_refuses_the_others(api: ApiClient, full: dict[str, str]) -> None:  # noqa: F811
    methods = defaultdict(set)
    for method, path, said in OPERATIONS:
        methods[address(path, said, full).partition("?")[0]].add(method)
    before = counts()
    for path, there in methods.items():
        allowed = ", ".join(sorted({*there, "OPTIONS", *({"HEAD"} if "GET" in there else ())}))
        asked = api.send("OPTIONS", path)
        assert (asked.status_code, asked["Allow"], asked.content) == (204, allowed, b""), path
        for method in METHODS:
            if method not in there:
                refused = api.send(method, path, {})
                assert (refused.status_code, refused["Allow"]) == (405, allowed), (method, path)
                assert refused["Content-Type"] == "application/problem+json"
    assert counts() == before


def test_every_operation_refuses_a_body_that_it_cannot_read(api: ApiClient, full: dict[str, str]) -> None:  # noqa: F811
    before = counts()
    for method, path, _, said in calls(full):
        if "requestBody" not in said:
            continue
        for status, body, content_type in ((415, b"a=1", "text/plain"), (400, b"{", "application/json")):
            answer = api.send(method, path, body, content_type=content_type)
            assert (answer.status_code, answer["Content-Type"]) == (status, "application/problem+json"), (method, path)
            assert answer["RateLimit"].startswith('"'), (method, path)
    assert counts() == before


def test_every_reading_operation_says_what_is_left_and_its_etag_where_it_has_one(
    api: ApiClient,
    full: dict[str, str],  # noqa: F811
) -> None:
    for method, path, _, said in calls(full):
        if method != "GET":
            continue
        answer = api.get(path)
        documented = said["responses"].get(str(answer.status_code), {})
        for name in OF_EVERY_ANSWER:
            assert name in answer, path
        if answer.status_code == 200:
            sent = {name for name in ("ETag", "Content-Disposition") if name in answer}
            assert set(documented["headers"]) - {"Link"} == {*OF_EVERY_ANSWER, *sent}, path


def test_every_refusal_is_documented_with_its_headers_and_an_example() -> None:
    answers = SCHEMA["components"]["responses"]
    for _, path, said in OPERATIONS:
        for status in ("401", "403", "404", "422", "429", "503", *(("400", "413", "415") * ("requestBody" in said))):
            assert said["responses"][status] == {"$ref": f"#/components/responses/Problem{status}"}, path
    for name, answer in answers.items():
        example = answer["content"]["application/problem+json"]["example"]
        assert (name, bool(example["detail"])) == (f"Problem{example['status']}", True)
        for header in answer["headers"].values():
            assert header["$ref"].rpartition("/")[2] in SCHEMA["components"]["headers"]
    assert {"Retry-After"} <= set(answers["Problem429"]["headers"]) & set(answers["Problem503"]["headers"])
    json.dumps(answers)


def test_the_root_of_the_api_leads_to_its_reference(api: ApiClient) -> None:
    answer = api.get("/")
    assert (answer.status_code, answer["Content-Type"]) == (404, "application/problem+json")
    assert "/api/v1/docs" in answer.json()["detail"]
