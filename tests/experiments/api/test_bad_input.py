"""Bad input: a clear answer below 500, the field is named, nothing is stored."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from experiments.models import Experiment, Host, Recipe, Run
from tests.experiments.api.conftest import ApiClient
from tests.experiments.api.test_auth import BODIES, NAMES

DEEP = b'{"notes":' + b"[" * 1000 + b"]" * 1000 + b"}"
VERY_DEEP = b"[" * 100_000
MANY_KEYS = b"{" + b",".join(b'"k%d":0' % number for number in range(50_001)) + b"}"
DOUBLE_AT_THE_END = b"{" + b",".join(b'"k%d":0' % number for number in range(40_000)) + b',"k39999":0}'


def cursor(*position: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(position).encode()).decode().rstrip("=")


def raw(**changes: Any) -> bytes:
    return json.dumps({**NAMES, **changes}).encode()


@pytest.mark.parametrize(
    "body, status, field",
    [
        (b"", 422, ""),
        (b"{", 400, ""),
        (b"null", 422, ""),
        (b"[]", 422, ""),
        (b'"text"', 422, ""),
        (b"\xff\xfe", 400, ""),
        (b'{"application": "\xc3("}', 400, ""),
        (DEEP, 422, ""),
        (VERY_DEEP, 422, ""),
        (MANY_KEYS, 422, ""),
        (DOUBLE_AT_THE_END, 422, "k39999"),
        (b'{"notes": [' + b"0," * 50_000 + b"0]}", 422, ""),
        (b'{"notes": [' + b"[]," * 50_000 + b"[]]}", 422, ""),
        (b'{"notes": [' + b"true," * 50_000 + b"true]}", 422, ""),
        (b'{"application": 1e999}', 422, ""),
        (b'{"application": NaN}', 422, ""),
        (b'{"application": -Infinity}', 422, ""),
        (b'{"application": 9223372036854775808}', 422, ""),
        (b'{"application": ' + b"9" * 5000 + b"}", 422, ""),
        (b'{"application": "a", "application": "b"}', 422, "application"),
        (b'{"application": "a\\u0000"}', 422, ""),
        (b'{"application": "\\ud800"}', 422, ""),
        (raw(application=1), 422, "application"),
        (raw(application=None), 422, "application"),
        (raw(application=["tomcat"]), 422, "application"),
        (raw(application="x" * 131), 422, "application"),
        (raw(application="tomcat@99"), 422, "application"),
        (raw(application="tomcat@99999999999999999999"), 422, "application"),
        (raw(recipe="nope"), 422, "recipe"),
        (raw(sut="nope"), 422, "sut"),
        (raw(sut="driver-1"), 422, "sut"),
        (raw(parameters={"nofile": "many"}), 422, "parameters.nofile"),
        (raw(parameters={"nofile": 2**62}), 422, ""),
        (raw(parameters={"nofile": {}}), 422, "parameters.nofile"),
        (raw(parameters={"other": 1}), 422, "parameters.other"),
        (raw(parameters=[]), 422, "parameters"),
        (raw(labels={"a b": "c"}), 422, "labels"),
        (raw(labels={"a": 1}), 422, "labels.a"),
        (raw(labels={f"k{n}": "v" for n in range(51)}), 422, "labels"),
        (raw(tags=["two words"]), 422, "tags"),
        (raw(state="finished"), 422, "state"),
        (raw(team=2), 422, "team"),
        (raw(notes="x" * 10_001), 422, "notes"),
        (b'{"spec": {}}', 422, "spec.application"),
        (b'{"spec": 1}', 422, "spec"),
        (b'{"application": {}}', 422, "application.server"),
    ],
)
def test_a_run_that_cannot_be(api: ApiClient, stock: dict[str, Any], body: bytes, status: int, field: str) -> None:
    answer = api.post("/runs", body)
    said = answer.json()
    assert (answer.status_code, answer["Content-Type"]) == (status, "application/problem+json"), said
    assert said["status"] == status
    assert said["detail"]
    if field:
        assert said["field"] == field, said
    assert not Run.objects.exists()


def test_ten_megabytes_are_too_large(api: ApiClient, stock: dict[str, Any]) -> None:
    answer = api.post("/runs", raw(notes="x" * (11 << 20)))
    assert answer.status_code == 413


@pytest.mark.parametrize(
    "content_type", ["text/plain", "multipart/form-data", "", "application/xml", "text/html; charset=x"]
)
def test_another_content_type_is_refused(api: ApiClient, stock: dict[str, Any], content_type: str) -> None:
    assert api.post("/runs", raw(), content_type=content_type).status_code == 415


@pytest.mark.parametrize(
    "path",
    [
        "/runs?limit=0",
        "/runs?limit=x",
        "/runs?cursor=x",
        "/runs?sort=spec",
        "/runs?state=x",
        "/runs?label=x",
        "/runs?since=x",
        "/runs?query=%00",
        "/runs?fields=spec",
        "/runs?since=0001-01-01T00:00:00%2B23:59",
        "/runs?until=9999-12-31T23:59:59-23:59",
        f"/runs?sort=-finished_at&cursor={cursor('-finished_at', 1, 1, False)}",
        f"/runs?sort=throughput_rps&cursor={cursor('throughput_rps', 10**400, 1, False)}",
        "/runs/csv?columns=x",
        "/runs/csv?since=0001-01-01T00:00:00%2B23:59",
        "/runs/1/samples?channel=cpu&channel=%00",
        "/runs/1/events?after=-1",
        "/runs/1/events?after=99999999999999999999",
        "/compare?baseline=1&candidate=2",
        "/compare?baseline=1",
        "/compare?baseline=x&candidate=2",
        "/compare?baseline=1&candidate=99999999999999999999",
        "/series/x?metric=nope",
        "/series/x?since=2026-99-99",
        "/recipes/limits?version=0",
        "/recipes/limits/diff?a=1",
        "/experiments?cursor=99999999999999999999",
        "/experiments/1/verdict?wait=121",
        "/experiments/1/verdict?wait=-1",
    ],
)
def test_a_question_that_cannot_be(api: ApiClient, stock: dict[str, Any], path: str) -> None:
    answer = api.get(path)
    assert answer.status_code == 422, answer.content
    assert answer.json()["field"], answer.content


@pytest.mark.parametrize(
    "path",
    [
        "/runs/99999999999999999999",
        "/runs/0",
        "/experiments/99999999999999999999/verdict",
        "/hosts/a%00b",
        "/recipes/limits?version=99999999999999999999",
        "/recipes/%F0%9F%92%A9",
        "/recipes/..%2f..%2fetc",
        "/profiles/'; drop table runs; --",
        "/runs/1/artifacts/..%2f..%2fetc%2fpasswd",
    ],
)
def test_what_does_not_exist_is_not_found(api: ApiClient, stock: dict[str, Any], path: str) -> None:
    answer = api.get(path)
    assert (answer.status_code, answer["Content-Type"]) == (404, "application/problem+json"), answer.content


@pytest.mark.parametrize(
    "change, field",
    [
        ({"variants": []}, "variants"),
        ({"variants": [{}]}, "variants.0.name"),
        ({"variants": BODIES["create_experiment"]["variants"] * 2}, "variants"),
        ({"repetitions": 0}, "repetitions"),
        ({"repetitions": 2**31}, "repetitions"),
        ({"repetitions": True}, "repetitions"),
        ({"repetitions": "2"}, "repetitions"),
        ({"margin_ratio": 0}, "margin_ratio"),
        ({"order": "random"}, "order"),
        ({"primary_metric": "speed"}, "primary_metric"),
        ({"workload": "nope"}, "workload"),
        ({"name": " "}, "name"),
        ({"seed": 1}, "seed"),
    ],
)
def test_an_experiment_that_cannot_be(api: ApiClient, stock: dict[str, Any], change: Any, field: str) -> None:
    answer = api.post("/experiments", {**BODIES["create_experiment"], **change})
    assert (answer.status_code, answer.json()["field"]) == (422, field), answer.content
    assert not Experiment.objects.exists()


@pytest.mark.parametrize(
    "change, field",
    [
        ({"address": "; reboot"}, "address"),
        ({"address": "-oProxyCommand=x"}, ""),
        ({"user": "root; id"}, "user"),
        ({"name": "../x"}, "name"),
        ({"port": 70000}, "port"),
        ({"host_key": "ssh-ed25519 AAAA"}, "host_key"),
        ({"state": "ready"}, "state"),
        ({"private_key": "x"}, "private_key"),
        ({"jump": "nope"}, "jump"),
    ],
)
def test_a_host_that_cannot_be(api: ApiClient, change: Any, field: str) -> None:
    answer = api.post("/hosts", {"name": "h", "address": "127.0.0.1", "user": "bench", **change})
    if field:
        assert (answer.status_code, answer.json()["field"]) == (422, field), answer.content
        assert not Host.objects.exists()
    else:
        assert answer.status_code < 500


@pytest.mark.parametrize(
    "path, body, field",
    [
        ("/experiments/copies", {"experiment": True}, "experiment"),
        ("/experiments/copies", {"experiment": "nope", "repetitions": True}, "repetitions"),
        ("/experiments/1/launch", {"repetitions": True}, "repetitions"),
        ("/hosts/sut-1/drain", {"drained": 1}, "drained"),
        ("/tokens", {"name": "ci", "scopes": ["read"], "days": True}, "days"),
    ],
)
def test_yes_is_not_a_number(api: ApiClient, stock: dict[str, Any], path: str, body: Any, field: str) -> None:
    answer = api.post(path, body)
    assert (answer.status_code, answer.json()["field"]) == (422, field), answer.content


@pytest.mark.parametrize("kind", [[], {}, [[]], None, 1, "nope"])
def test_a_step_without_a_kind_is_named(api: ApiClient, kind: Any) -> None:
    answer = api.put("/recipes/odd", {"steps": [{"kind": kind}]})
    assert (answer.status_code, answer.json()["field"]) == (422, "steps.0.kind"), answer.content
    assert not Recipe.objects.filter(name="odd").exists()


@pytest.mark.parametrize("jump", ["", " ", None])
def test_no_jump_host_can_be_said_in_words_too(api: ApiClient, jump: str | None) -> None:
    api.post("/hosts", {"name": "h", "address": "127.0.0.1", "user": "bench"})
    answer = api.send("PATCH", "/hosts/h", {"jump": jump})
    assert (answer.status_code, answer.json()["jump"]) == (200, None), answer.content
