"""Which option is the rate, tool by tool."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter

from agents.base.errors import PlanError
from agents.drivers import DRIVERS, AnyDriver
from agents.drivers.base.driver import Driver
from agents.drivers.rates import at_rate, offered_rate_rps, rate_step_rps

READ: TypeAdapter[Any] = TypeAdapter(AnyDriver)
RATED = {kind: tool for kind, tool in DRIVERS.items() if tool.rate_option}
TOOLS: dict[str, dict[str, Any]] = {
    "autocannon": {"connections": 8},
    "command": {"argv": ["load", "{url}", "{offered_rate_rps}"], "offered_rate_rps": 5},
    "gatling": {"offered_rate_rps": 10},
    "h2load": {"connections": 8},
    "hyperfoil": {"connections": 8, "threads": 2, "home": "/opt/hyperfoil"},
    "jmeter": {"users": 8},
    "k6": {"users": 8},
    "oha": {"connections": 8},
    "vegeta": {"offered_rate_rps": 10},
    "wrk2": {"connections": 8, "threads": 2, "offered_rate_rps": 10},
}


@pytest.mark.parametrize("kind", sorted(RATED))
def test_a_tool_at_another_rate_offers_that_rate(kind: str) -> None:
    driver: Driver = READ.validate_python({"kind": kind, **TOOLS.get(kind, {"connections": 8})})
    step = rate_step_rps(driver)
    for asked in (1.0, 999.0, 123_456.7):
        found = at_rate(driver, asked)
        offered = offered_rate_rps(found)
        assert offered == max(step, round(asked / step) * step)
        assert found.load_model == "open"
        assert at_rate(found, offered or 0) == found


def test_every_tool_with_a_rate_is_known() -> None:
    for kind, tool in RATED.items():
        assert tool.rate_option in tool.model_fields, kind
    named = {kind for kind, tool in DRIVERS.items() for field in tool.model_fields if field.endswith("_rate_rps")}
    assert named | {"h2load"} == set(RATED)


@pytest.mark.parametrize(
    "given",
    [
        {"kind": "wrk", "connections": 8, "threads": 2},
        {"kind": "hey", "connections": 8},
        {"kind": "autocannon", "connections": 8, "workers": 2},
        {"kind": "command", "argv": ["load", "{url}"]},
        {"kind": "k6", "users": 8, "script": "export default function () {}"},
    ],
    ids=lambda given: str(given["kind"]),
)
def test_a_tool_that_cannot_offer_a_rate_is_refused_in_words(given: dict[str, Any]) -> None:
    driver: Driver = READ.validate_python(given)
    with pytest.raises(PlanError) as refusal:
        at_rate(driver, 100.0)
    assert "offer a rate" in refusal.value.message
