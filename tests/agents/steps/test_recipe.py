"""Recipes: parameters with types and bounds, references in steps, and errors that name what is wrong."""

from __future__ import annotations

import math
from typing import Any

import pytest
from pydantic import ValidationError

from agents.base.errors import PlanError
from agents.steps.command import CommandStep
from agents.steps.limits import LimitsStep
from agents.steps.recipe import MAX_STEPS, RecipeDocument

PARAMETERS: dict[str, Any] = {
    "threads": {"type": "int", "default": 8, "minimum": 1, "maximum": 600},
    "factor": {"type": "float", "default": 0.5},
    "mode": {"type": "str", "default": "nio", "choices": ["nio", "apr"]},
    "log": {"type": "bool", "default": False},
    "path": {"type": "str"},
}


def resolved(step: dict[str, Any], **given: Any) -> Any:
    document = RecipeDocument.model_validate({"parameters": PARAMETERS, "steps": [step]})
    return document.resolve({"path": "/srv", **given}, built_in={"sut_cpu_count": 4})[0]


@pytest.mark.parametrize(
    "step, given, field, expected",
    [
        ({"kind": "limits", "nofile": "${threads}"}, {"threads": 400}, "nofile", 400),
        ({"kind": "limits", "nofile": "${threads + 100}"}, {}, "nofile", 108),
        ({"kind": "limits", "nofile": "${ threads*100 }"}, {}, "nofile", 800),
        ({"kind": "limits", "nofile": "${sut_cpu_count * 32}"}, {}, "nofile", 128),
        ({"kind": "affinity", "cpus": "0-${sut_cpu_count - 1}"}, {}, "cpus", "0-3"),
        ({"kind": "affinity", "cpus": "${threads}"}, {}, "cpus", "8"),
        (
            {"kind": "environment", "variables": {"N": "${threads}", "L": "${log}", "F": "${factor}"}},
            {"log": True},
            "variables",
            {"N": "8", "L": "true", "F": "0.5"},
        ),
        ({"kind": "sysctl", "values": {"vm.swappiness": "${threads}"}}, {}, "values", {"vm.swappiness": "8"}),
        ({"kind": "jvm_options", "options": ["-Xmx${threads}g"]}, {}, "options", ("-Xmx8g",)),
        (
            {"kind": "file", "path": "/etc/x.conf", "content": "$HOME $(id) ${mode}${path}\n"},
            {"mode": "apr"},
            "content",
            "$HOME $(id) apr/srv\n",
        ),
    ],
)
def test_references_become_values(step: dict[str, Any], given: dict[str, Any], field: str, expected: object) -> None:
    assert getattr(resolved(step, **given), field) == expected


def test_edits_of_xml_get_text() -> None:
    edit = {"op": "set", "select": "Service/Connector", "attributes": {"maxThreads": "${threads}", "log": "${log}"}}
    step = resolved({"kind": "xml_edit", "path": "conf/server.xml", "edits": [edit]})
    assert step.edits[0].attributes == {"maxThreads": "8", "log": "false"}


def test_a_shell_step_gets_parameters_as_arguments_only() -> None:
    hostile = "'; touch PWNED; ${threads} $(id) #"
    step = resolved(
        {
            "kind": "command",
            "run": 'echo ${threads} "$1" "$2"',
            "undo": "echo ${path}",
            "arguments": ["${path}", "${threads - 1}"],
        },
        path=hostile,
    )
    assert isinstance(step, CommandStep)
    assert step.run == 'echo ${threads} "$1" "$2"'
    assert step.undo == "echo ${path}"
    assert step.arguments == (hostile, "7")


@pytest.mark.parametrize(
    "given, message",
    [
        ({"threads": "8"}, "Parameter threads: '8' is not of type int."),
        ({"threads": True}, "Parameter threads: True is not of type int."),
        ({"threads": 8.0}, "Parameter threads: 8.0 is not of type int."),
        ({"threads": 0}, "Parameter threads: 0 is below the minimum 1."),
        ({"threads": 601}, "Parameter threads: 601 is above the maximum 600."),
        ({"factor": math.nan}, "Parameter factor: nan is not a number that can be set."),
        ({"factor": math.inf}, "Parameter factor: inf is not a number that can be set."),
        ({"factor": 10**400}, f"Parameter factor: {10**400} is not a number that can be set."),
        ({"mode": "ajp"}, "Parameter mode: 'ajp' is not one of 'nio', 'apr'."),
        ({"log": 1}, "Parameter log: 1 is not of type bool."),
        ({"treads": 8}, "The recipe has no parameter 'treads'; it has: factor, log, mode, path, threads."),
    ],
)
def test_a_value_that_does_not_fit_is_refused_by_name(given: dict[str, Any], message: str) -> None:
    with pytest.raises(PlanError) as refusal:
        resolved({"kind": "limits", "nofile": 1024}, **given)
    assert refusal.value.message == message


@pytest.mark.parametrize(
    "name, text, expected",
    [
        ("threads", "8", 8),
        ("threads", " -1 ", -1),
        ("factor", "0.5", 0.5),
        ("factor", "1e3", 1000.0),
        ("factor", "2", 2),
        ("log", "true", True),
        ("log", "False", False),
        *(("mode", text, text) for text in ("1234567", "12e4567", "1.10", "true", '"x"', " x ", "")),
        ("threads", 8, 8),
        ("mode", 8, 8),
    ],
)
def test_a_text_is_read_as_the_type_of_its_parameter(name: str, text: Any, expected: object) -> None:
    found = RecipeDocument.model_validate({"parameters": PARAMETERS}).parameters[name].read(name, text)
    assert (found, type(found)) == (expected, type(expected))


@pytest.mark.parametrize(
    "name, texts",
    [
        ("threads", ("many", "", "8.0", "1e3", "true", "12e4567", "Infinity")),
        ("factor", ("half", "", "inf", "Infinity", "nan", "12e4567", "false")),
        ("log", ("1", "", "yes")),
    ],
)
def test_a_text_that_is_no_such_number_is_refused_by_name(name: str, texts: tuple[str, ...]) -> None:
    parameter = RecipeDocument.model_validate({"parameters": PARAMETERS}).parameters[name]
    for text in texts:
        with pytest.raises(PlanError) as refusal:
            parameter.read(name, text)
        assert refusal.value.message == f"Parameter {name}: {text!r} is not of type {parameter.type}."


def test_a_parameter_without_a_default_must_be_given() -> None:
    document = RecipeDocument.model_validate({"parameters": PARAMETERS})
    with pytest.raises(PlanError, match="Parameter path has no default and was not given"):
        document.resolve({})
    assert document.values({"path": "/"}) == {"threads": 8, "factor": 0.5, "mode": "nio", "log": False, "path": "/"}


@pytest.mark.parametrize(
    "step, message",
    [
        ({"kind": "limits", "nofile": "${tread}"}, "${tread} is used in the recipe but is no parameter"),
        ({"kind": "limits", "nofile": "${mode - 1}"}, "${mode - 1}: mode is not a number."),
        ({"kind": "limits", "nofile": "${log + 1}"}, "${log + 1}: log is not a number."),
        ({"kind": "limits", "nofile": "${threads - 1}"}, "Step 1 of the recipe, limits.nofile: "),
        ({"kind": "limits", "nofile": "many"}, "Step 1 of the recipe, limits.nofile: "),
        ({"kind": "limits", "no_file": 1}, "Step 1 of the recipe, limits.no_file: "),
        ({"kind": "reboot"}, "Step 1 of the recipe, kind: "),
        ({"nofile": 1}, "Step 1 of the recipe, kind: "),
    ],
)
def test_a_step_that_does_not_fit_is_named(step: dict[str, Any], message: str) -> None:
    with pytest.raises(PlanError) as refusal:
        resolved(step)
    assert refusal.value.message.startswith(message)


@pytest.mark.parametrize(
    "body",
    [
        {"parameters": {"n": {"type": "int", "default": "x"}}},
        {"parameters": {"n": {"type": "int", "default": 5, "maximum": 4}}},
        {"parameters": {"N": {}}},
        {"parameters": {"n": {"typ": "int"}}},
        {"steps": [{"kind": "limits", "nofile": 1024}] * (MAX_STEPS + 1)},
        {"step": []},
    ],
)
def test_a_document_that_cannot_work_is_not_saved(body: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        RecipeDocument.model_validate(body)


def test_the_second_step_is_called_the_second() -> None:
    document = RecipeDocument.model_validate({"steps": [{"kind": "limits", "nofile": 99}, {"kind": "limits"}]})
    with pytest.raises(PlanError, match="Step 2 of the recipe"):
        document.resolve({})


def test_steps_without_references_stay_as_they_are() -> None:
    assert resolved({"kind": "limits", "nofile": 4096}) == LimitsStep(nofile=4096)
