"""JMeter's plans: the built-in one, those of others, and what they may not do."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from agents.base.errors import PlanError
from agents.drivers.base.driver import Target
from agents.drivers.jmeter import jmx
from agents.drivers.jmeter.driver import PLAN_NAME, Jmeter
from tests.agents.recorded import damaged
from tests.properties import given, settings, st

TARGET = Target("http://sut:8080/people?a=1")


def test_the_built_in_plan_is_a_plan_that_does_no_harm_and_takes_its_target_from_properties() -> None:
    driver = Jmeter.model_validate(
        {"requests": [{"method": "PUT", "body": '{"a": "<&>"}', "weight": 20}, {"path": "/x", "weight": 80}]}
    )
    plan = driver.files()[PLAN_NAME]
    assert jmx.harm(plan) == []
    assert [p.name for p in jmx.parameters(plan)] == [
        f"benchhub.{name}" for name in ("duration_s", "scheme", "host", "port", "path")
    ]
    assert plan.count("<HTTPSamplerProxy") == 5


def test_the_command_line_fills_in_what_a_property_asks_for() -> None:
    driver = Jmeter.model_validate(
        {"home": "/opt/jmeter", "users": 25, "properties": {"HOST": "{host}", "THREAD": "{users}", "x.y": True}}
    )
    argv = driver.command(TARGET, 90).argv
    assert argv[:3] == ("env", "HEAP=-Xms1g -Xmx1g", "/opt/jmeter/bin/jmeter")
    assert {"-JHOST=sut", "-JTHREAD=25", "-Jbenchhub.duration_s=90"} <= set(argv)
    assert "x.y=true\n" in driver.files()["benchhub.properties"]
    assert "-Jbenchhub.path=/people?a=1" in argv


def test_a_warm_up_has_users_of_its_own_in_the_built_in_plan_and_in_the_properties_of_another() -> None:
    driver = Jmeter.model_validate({"users": 25, "warm_up_users": 10, "properties": {"THREAD": "{users}"}})
    alike = driver.model_copy(update={"warm_up_users": None})
    seen = [
        ("-JTHREAD=25", '"ThreadGroup.num_threads">25<', driver),
        ("-JTHREAD=10", '"ThreadGroup.num_threads">10<', driver.warming_up()),
        ("-JTHREAD=25", '"ThreadGroup.num_threads">25<', alike.warming_up()),
    ]
    for option, written, tool in seen:
        assert option in tool.command(TARGET, 90).argv
        assert written in tool.files()[PLAN_NAME]


def test_a_rate_is_a_schedule_in_the_built_in_plan_and_properties_of_another() -> None:
    driver = Jmeter(users=20, offered_rate_rps=200)
    plan = driver.files()[PLAN_NAME]
    assert jmx.harm(plan) == []
    assert '<stringProp name="throughput">200</stringProp>' in plan
    assert (driver.load_model, driver.latency_basis) == ("open", "service_time")
    assert (Jmeter().load_model, Jmeter().latency_basis) == ("closed", "response_time")
    assert "PreciseThroughputTimer" not in Jmeter().files()[PLAN_NAME]
    own = {"jmx": plan_with("<DebugSampler/>"), "offered_rate_rps": 50}
    told = Jmeter.model_validate({**own, "properties": {"R": "{offered_rate_rps}", "M": "{offered_rate_per_min}"}})
    assert {"-JR=50", "-JM=3000"} <= set(told.command(TARGET, 90).argv)
    with pytest.raises(ValidationError, match="only when it is told to"):
        Jmeter.model_validate(own)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"offered_rate_rps": 50, "think_time_max_ms": 5}, "no think time"),
        ({"properties": {"a b": 1}}, "not the name of a property"),
        ({"properties": {"x": "${__groovy(1)}"}}, "control character or"),
        ({"properties": {"x": "{hots}"}}, "there are {scheme}"),
        ({"properties": {"jmeter.save.saveservice.url": "false"}}, "set by BenchHub"),
        ({"properties": {"beanshell.server.port": 9000}}, "load code"),
        ({"requests": [{}, {}]}, "same label"),
        ({"requests": [{"body": "${x}"}]}, "may not hold"),
        ({"think_time_min_ms": 5}, "smaller than"),
        ({"heap_max": "1g -XX:OnError=x"}, "match pattern"),
        ({"home": "/opt/a b"}, "match pattern"),
        ({"jmx": "<a/>"}, "not the beginning of a test plan"),
    ],
)
def test_options_that_could_not_work_or_would_do_harm_are_refused(options: dict[str, object], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        Jmeter.model_validate(options)


def plan_with(element: str) -> str:
    return f'<jmeterTestPlan version="1.2"><hashTree>{element}<hashTree/></hashTree></jmeterTestPlan>'


RISKY = [
    ('<SystemSampler testclass="SystemSampler" testname="rm"/>', "OS Process Sampler 'rm'"),
    ('<JSR223Sampler testname="x"/>', "JSR223Sampler 'x'"),
    ("<BeanShellPostProcessor/>", "BeanShellPostProcessor"),
    ("<kg.apc.Plugin/>", "kg.apc.Plugin"),
    ('<GenericController testclass="SystemSampler"/>', "OS Process Sampler"),
    ('<DebugSampler><stringProp name="a">${__groovy(1)}</stringProp></DebugSampler>', "__groovy"),
    ('<DebugSampler testname="${ __BeanShell(1)}"/>', "__BeanShell"),
    ('<ResultCollector><stringProp name="filename">/etc/x</stringProp></ResultCollector>', "listener that writes"),
    ('<ResultSaver testname="s"/>', "Save Responses to a file"),
    ('<DebugSampler><objProp><value class="java.lang.ProcessBuilder"/></objProp></DebugSampler>', "ProcessBuilder"),
]


@pytest.mark.parametrize(("element", "named"), RISKY)
def test_a_plan_that_may_run_programs_needs_the_right_to_and_names_what_it_is(element: str, named: str) -> None:
    plan = plan_with(element)
    assert any(named in problem for problem in jmx.harm(plan))
    with pytest.raises(ValidationError, match="allow_shell"):
        Jmeter.model_validate({"jmx": plan})
    allowed = Jmeter.model_validate({"jmx": plan, "allow_shell": True})
    assert {one.field for one in allowed.reserved()} == {"jmx", "allow_shell"}
    assert not Jmeter().reserved()


def test_the_parameters_of_a_plan_are_listed_with_their_defaults() -> None:
    plan = plan_with(
        '<ThreadGroup testname="${__P(NAME,a\\, b)}"><stringProp name="n">${__P(THREAD,10)}</stringProp>'
        '<stringProp name="d">${__P(DURATION)} ${__P(THREAD,12)} ${__property(ramp,,5)} ${__P(none, )}</stringProp>'
        "</ThreadGroup>"
    )
    assert [(p.name, p.default) for p in jmx.parameters(plan)] == [
        ("NAME", "a, b"),
        ("THREAD", "10"),
        ("DURATION", None),
        ("ramp", "5"),
        ("none", ""),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "<a",
        '<!DOCTYPE a [<!ENTITY b "c">]><jmeterTestPlan>&b;</jmeterTestPlan>',
        "<jmeterTestPlan>" + "<hashTree>" * 300 + "</hashTree>" * 300 + "</jmeterTestPlan>",
        "<jmeterTestPlan>" + "<hashTree/>" * 100_001 + "</jmeterTestPlan>",
        "\ud800",
    ],
)
def test_a_plan_that_cannot_be_read_safely_is_refused(text: str) -> None:
    with pytest.raises(PlanError):
        jmx.parameters(text)


@settings(max_examples=200, deadline=None)
@given(damaged([Jmeter().files()[PLAN_NAME], *(plan_with(element) for element, _ in RISKY)]) | st.text(max_size=200))
def test_damaged_plans_give_an_answer_or_a_plan_error(text: str) -> None:
    try:
        jmx.parameters(text)
        jmx.harm(text)
    except PlanError:
        pass


def test_a_property_that_no_phase_changes_is_in_a_file_and_in_no_command_line_that_all_can_see() -> None:
    driver = Jmeter.model_validate({"properties": {"password": "\\ pä\U0001f600=#", "HOST": "{host}"}})
    assert not [word for word in driver.command(TARGET, 90).argv if "password" in word]
    assert "password=\\\\ p\\u00e4\\ud83d\\ude00=#\n" in driver.files()["benchhub.properties"]
