"""Which option is the number of connections or users, tool by tool."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter

from agents.base.errors import PlanError
from agents.drivers import DRIVERS, AnyDriver
from agents.drivers.base.driver import Driver
from agents.drivers.concurrency import at_concurrency, concurrency, concurrency_text
from tests.agents.drivers.test_jmeter_plans import plan_with

READ: TypeAdapter[Any] = TypeAdapter(AnyDriver)
TOOLS: dict[str, dict[str, Any]] = {
    "command": {"argv": ["load", "{url}", "-c{connections}"], "connections": 8},
    "gatling": {"users": 8},
    "hyperfoil": {"connections": 8, "threads": 2, "home": "/opt/hyperfoil"},
    "iperf3": {"streams": 8},
    "jmeter": {"users": 8},
    "k6": {"users": 8},
    "locust": {"users": 8},
    "pgbench": {"clients": 8},
    "redis-benchmark": {"clients": 8, "requests": 100},
    "sysbench": {"threads": 8},
    "wrk": {"connections": 8, "threads": 2},
    "wrk2": {"connections": 8, "threads": 2, "offered_rate_rps": 10},
    "ycsb": {"binding": "redis", "threads": 8},
}


@pytest.mark.parametrize("kind", sorted(kind for kind, tool in DRIVERS.items() if tool.concurrency_option))
def test_a_tool_with_another_number_of_connections_or_users_has_it(kind: str) -> None:
    driver: Driver = READ.validate_python({"kind": kind, **TOOLS.get(kind, {"connections": 8})})
    found = at_concurrency(driver, 12)
    assert (concurrency(driver), concurrency(found)) == (8, 12)
    assert concurrency_text(found) == f"12 {DRIVERS[kind].concurrency_option}"
    assert at_concurrency(found, 8) == driver


def test_every_tool_with_such_a_number_is_known() -> None:
    names = {"connections", "users", "clients", "streams"}
    named = {kind for kind, tool in DRIVERS.items() if names & set(tool.model_fields)} | {"sysbench", "ycsb"}
    assert named - {"vegeta"} == {kind for kind, tool in DRIVERS.items() if tool.concurrency_option}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"kind": "wrk", "connections": 8, "threads": 8}, "wrk cannot use 12 connections: connections (12) must be a"),
        ({"kind": "h2load", "connections": 16, "threads": 16}, "16 threads need at least 16 connections"),
        ({"kind": "k6", "users": 8, "max_users": 10}, "k6 cannot use 12 users: max_users (10)"),
        ({"kind": "vegeta", "offered_rate_rps": 10}, "vegeta has no number of connections or users"),
        ({"kind": "command", "argv": ["load", "{url}"], "connections": 8}, "its argv has no {connections}"),
        ({"kind": "jmeter", "jmx": plan_with("")}, "none of its properties holds {users}"),
    ],
    ids=lambda given: given["kind"] if isinstance(given, dict) else "",
)
def test_a_number_that_a_tool_cannot_have_is_refused_in_words(given: dict[str, Any], words: str) -> None:
    driver: Driver = READ.validate_python(given)
    with pytest.raises(PlanError) as refusal:
        at_concurrency(driver, 12)
    assert words in refusal.value.message
