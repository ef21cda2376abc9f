"""RunSpec: what it refuses, the URL it makes, and what counts as the same series."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from agents.fingerprint import fingerprint
from agents.spec import RunSpec
from tests.agents.specs import address, make_spec


@pytest.mark.parametrize(
    "workload, sut, url",
    [
        ({}, {}, "http://127.0.0.1:8080/"),
        ({"scheme": "https", "path": "/a?b=c"}, {}, "https://127.0.0.1:8080/a?b=c"),
        ({}, {"data_address": "10.0.0.2"}, "http://10.0.0.2:8080/"),
        ({}, {"data_address": "fe80::1"}, "http://[fe80::1]:8080/"),
    ],
)
def test_the_driver_requests_the_data_address(workload: dict[str, Any], sut: dict[str, Any], url: str) -> None:
    assert make_spec(workload=workload, sut=address("sut", **sut)).url == url


PGBENCH = {"kind": "pgbench", "clients": 2}


@pytest.mark.parametrize(
    ("workload", "server", "urls", "ready", "target"),
    [
        ({"path": "/a"}, {"ready": {"path": "/up"}}, ("http://127.0.0.1:8080/a",), "http://127.0.0.1:8080/up", None),
        ({"driver": PGBENCH}, {"port": 5432}, ("tcp://127.0.0.1:5432",), "http://127.0.0.1:5432/", "tcp://SUT:PORT"),
        (
            {"driver": {"kind": "fio"}},
            {},
            ("tcp://127.0.0.1:8080",),
            "http://127.0.0.1:8080/",
            "the driver host itself",
        ),
    ],
)
def test_a_tool_gets_a_page_or_a_port_and_readiness_asks_for_its_own(
    workload: dict[str, Any], server: dict[str, Any], urls: tuple[str, ...], ready: str, target: str | None
) -> None:
    spec = make_spec(workload=workload, server=server)
    assert (spec.urls, spec.ready_urls) == (urls, (ready,))
    assert spec.workload.target == (target or "http://SUT:PORT/a")


WARM_UP = {"name": "w", "kind": "warm_up", "duration_s": 1}
MEASURE = {"name": "m", "kind": "measure", "duration_s": 1}


@pytest.mark.parametrize(
    "workload, field",
    [
        ({"phases": []}, "phases"),
        ({"phases": [WARM_UP]}, "phases"),
        ({"phases": [MEASURE, WARM_UP]}, "phases"),
        ({"phases": [MEASURE, MEASURE]}, "phases"),
        ({"phases": [{**MEASURE, "duration_s": 0}]}, "duration_s"),
        ({"phases": [{**MEASURE, "duration_s": 86401}]}, "duration_s"),
        ({"path": "relative"}, "path"),
        ({"path": "/a b"}, "path"),
        ({"cpus": "3-1"}, "cpus"),
        ({"colour": "red"}, "colour"),
        ({"driver": PGBENCH, "path": "/a"}, "pgbench asks for no page"),
        ({"driver": PGBENCH, "scheme": "https"}, "pgbench asks for no page"),
        ({"driver": {**PGBENCH, "initialise": True}, "phases": [MEASURE]}, "makes its data in a warm_up phase"),
    ],
)
def test_a_workload_that_cannot_be_driven_is_refused(workload: dict[str, Any], field: str) -> None:
    with pytest.raises(ValidationError) as refusal:
        make_spec(workload=workload)
    assert field in str(refusal.value)


@pytest.mark.parametrize(
    "given", [{"address": "a b"}, {"address": "$(id)"}, {"user": "-oProxyCommand"}, {"port": 0}, {"port": 65536}]
)
def test_an_address_is_no_way_into_a_shell(given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        address("sut", **given)


def test_a_spec_is_the_same_after_a_round_through_json() -> None:
    spec = make_spec(steps=({"kind": "limits", "nofile": 4096}, {"kind": "affinity", "cpus": "0,1,2"}))
    assert RunSpec.model_validate(spec.model_dump(mode="json")) == spec
    assert RunSpec.model_validate_json(spec.model_dump_json()) == spec


def test_seconds_of_load_are_the_sum_of_the_phases() -> None:
    assert make_spec(workload={"phases": [WARM_UP, WARM_UP, {**MEASURE, "duration_s": 60}]}).workload.load_s == 62


BASE: dict[str, Any] = {"driver_version": "4.2.0", "profile_digest": "abc"}


@pytest.mark.parametrize(
    "spec, more, same",
    [
        (make_spec(), {}, True),
        (make_spec(steps=({"kind": "limits", "nofile": 4096},)), {}, True),
        (make_spec(workload={"version": 2}), {}, False),
        (
            make_spec(workload={"driver": {"kind": "wrk2", "offered_rate_rps": 9, "connections": 2, "threads": 1}}),
            {},
            False,
        ),
        (make_spec(), {"driver_version": "4.2.1"}, False),
        (make_spec(), {"profile_digest": "abd"}, False),
    ],
    ids=["same", "recipe", "workload version", "tool", "tool version", "hardware"],
)
def test_what_makes_a_series(spec: RunSpec, more: dict[str, str], same: bool) -> None:
    assert (fingerprint(spec, **{**BASE, **more}) == fingerprint(make_spec(), **BASE)) is same
