"""A JMeter plan over the API: what it asks for, what in it could do harm, and the workload that is made of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.models import Workload
from tests.experiments.api.conftest import ApiClient

PEOPLE = (Path(__file__).parents[2] / "agents" / "cases" / "jmx" / "people.jmx").read_text()


def test_a_plan_tells_its_properties_and_becomes_a_workload(api: ApiClient) -> None:
    found = api.post("/jmeter-plans", {"jmx": PEOPLE}).json()
    assert [(one["name"], one["default"]) for one in found["properties"]] == [
        ("LOOPS", "-1"),
        ("THREAD", "10"),
        ("RAMP", "1"),
        ("DURATION", "10"),
        ("HOST", "sut"),
        ("PORT", "80"),
        ("PROTO", "http"),
        ("TIMEOUT", "2000"),
    ]
    assert found["needs_shell"] == []
    assert found["suggested"] == {
        "LOOPS": "{loops}",
        "THREAD": "{users}",
        "RAMP": "{ramp_up_s}",
        "DURATION": "{duration_s}",
        "HOST": "{host}",
        "PORT": "{port}",
        "PROTO": "{scheme}",
    }
    driver = {"kind": "jmeter", "users": 25, "jmx": PEOPLE, "properties": found["suggested"] | {"TIMEOUT": 500}}
    phases = [{"name": "load", "kind": "measure", "duration_s": 90}]
    assert api.put("/workloads/people", {"driver": driver, "phases": phases}).status_code == 201
    assert Workload.objects.get().body["driver"]["properties"]["TIMEOUT"] == 500


def test_a_secret_has_no_default_and_what_runs_programs_is_named(api: ApiClient) -> None:
    plan = (
        '<jmeterTestPlan><hashTree><SystemSampler testname="rm"/><DebugSampler testname="${__P(db.password,tiger)}'
        '${__P(API_TOKEN,abc)}${__P(keys,5)}"/></hashTree></jmeterTestPlan>'
    )
    answer = api.post("/jmeter-plans", {"jmx": plan})
    assert [tuple(one.values()) for one in answer.json()["properties"]] == [
        ("db.password", None, True),
        ("API_TOKEN", None, True),
        ("keys", "5", False),
    ]
    assert answer.json()["needs_shell"] == ["OS Process Sampler 'rm'"]
    assert "tiger" not in answer.content.decode()


@pytest.mark.parametrize(
    "text", ["<a/>", "no plan", '<!DOCTYPE a [<!ENTITY b "c">]><jmeterTestPlan>&b;</jmeterTestPlan>']
)
def test_what_is_no_plan_is_refused_at_its_field(api: ApiClient, text: str) -> None:
    answer = api.post("/jmeter-plans", {"jmx": text})
    assert (answer.status_code, answer.json()["field"]) == (422, "jmx")
