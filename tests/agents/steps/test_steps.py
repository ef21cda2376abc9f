"""Every step as text: what it asks the host, and what it makes of the answer. A new case is a file in cases/steps."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from agents.base.command import Command
from agents.base.errors import AgentError
from agents.base.process_start import ProcessStart
from agents.steps import STEPS, AnyStep, is_host_step
from agents.steps.base.step import HostStep, LaunchStep, Step, StepContext

CASES = sorted((Path(__file__).parents[1] / "cases" / "steps").glob("*.json"))
STEP: TypeAdapter[Step] = TypeAdapter(AnyStep)
CONTEXT = StepContext("/run/1/instance")


def read(path: Path) -> tuple[Step, dict[str, Any]]:
    case = json.loads(path.read_text())
    return STEP.validate_python(case["step"]), case


def cases(*, host: bool) -> list[Any]:
    return [pytest.param(*read(path), id=path.stem) for path in CASES if is_host_step(read(path)[0]) is host]


def check(commands: tuple[Command, ...], expected: list[dict[str, Any]]) -> None:
    assert len(commands) == len(expected)
    for command, want in zip(commands, expected, strict=True):
        assert list(command.argv[:2]) == ["sh", "-c"]
        assert list(command.argv[4:]) == want["args"]
        assert command.stdin.decode() == want.get("stdin", "")
        assert command.privileged == want.get("privileged", False)
        if "text" in want:
            assert command.argv[2] == want["text"]


@pytest.mark.parametrize("step, case", cases(host=True))
def test_a_host_step_probes_applies_and_reverts_as_text(step: HostStep, case: dict[str, Any]) -> None:
    assert "\n" not in step.title()
    probed = case["probe_output"].encode()
    if "probe_refused" in case:
        with pytest.raises(AgentError) as refusal:
            step.parse(probed)
        assert case["probe_refused"] in refusal.value.message
        return
    before = step.parse(probed)
    assert before == case["before"]
    if "refused" in case:
        with pytest.raises(AgentError) as refusal:
            step.apply(CONTEXT, before)
        assert case["refused"] in refusal.value.message
        assert refusal.value.hint
        return
    check(step.apply(CONTEXT, before), case["apply"])
    check(step.revert(CONTEXT, before), case["revert"])
    changes = (*step.apply(CONTEXT, before), *step.revert(CONTEXT, before))
    assert {command.privileged for command in changes} <= {step.needs_root}, "what it says of root is what it does"
    if "wanted" in case:
        assert step.wanted(before) == case["wanted"]
    outcomes = step.outcomes(before, step.parse(case["after_output"].encode()))
    assert [[o.setting, o.wanted, o.before, o.effective, o.result] for o in outcomes] == case["outcomes"]
    if "details" in case:
        assert [o.detail for o in outcomes] == case["details"]


@pytest.mark.parametrize("step, case", cases(host=False))
def test_a_launch_step_adds_to_how_the_server_starts(step: LaunchStep, case: dict[str, Any]) -> None:
    launch = dataclasses.asdict(step.contribute(ProcessStart()))
    assert json.loads(json.dumps(launch)) == case["launch"]
    assert "\n" not in step.title()


def test_launch_steps_add_up_and_the_later_one_wins() -> None:
    launch = ProcessStart()
    for raw in (
        {"kind": "environment", "variables": {"A": "1", "B": "1"}},
        {"kind": "environment", "variables": {"B": "2"}},
        {"kind": "jvm_options", "options": ["-Xmx1g"]},
        {"kind": "jvm_options", "options": ["-Xmx2g"]},
        {"kind": "limits", "nofile": 1024},
        {"kind": "limits", "nproc": 99},
        {"kind": "affinity", "cpus": "0"},
        {"kind": "affinity", "cpus": "1"},
    ):
        step = STEP.validate_python(raw)
        assert isinstance(step, LaunchStep)
        launch = step.contribute(launch)
    assert launch == ProcessStart({"A": "1", "B": "2"}, ("-Xmx1g", "-Xmx2g"), {"nofile": 1024, "nproc": 99}, "1")


def test_every_registered_step_has_cases_and_its_kind() -> None:
    with_cases = {path.stem.partition("-")[0] for path in CASES}
    assert with_cases == set(STEPS)
    assert all(step.model_fields["kind"].default == kind for kind, step in STEPS.items())


def test_every_step_survives_being_stored_as_json() -> None:
    for path in CASES:
        step, _ = read(path)
        assert STEP.validate_json(step.model_dump_json()) == step
        assert is_host_step(step) == isinstance(step, HostStep)


@pytest.mark.parametrize(
    "raw, field",
    [
        ({"kind": "nonsense"}, "kind"),
        ({"kind": "cpu_online", "online": ""}, "online"),
        ({"kind": "cpu_online", "online": "0-"}, "online"),
        ({"kind": "affinity", "cpus": ""}, "cpus"),
        ({"kind": "limits"}, "at least one"),
        ({"kind": "limits", "nofile": 0}, "nofile"),
        ({"kind": "limits", "nofiles": 65535}, "nofiles"),
        ({"kind": "jvm_options", "options": []}, "options"),
        ({"kind": "jvm_options", "options": ["Xmx1g"]}, "options"),
        ({"kind": "environment", "variables": {"A-B": "1"}}, "A-B"),
        ({"kind": "environment", "variables": {"BENCHHUB_JOB": "1"}}, "BENCHHUB_JOB"),
        ({"kind": "sysctl", "values": {}}, "values"),
        ({"kind": "sysctl", "values": {"kernel.core_pattern": "|/bin/sh"}}, "kernel.core_pattern"),
        ({"kind": "sysctl", "values": {"kernel.modules_disabled": 1}}, "kernel.modules_disabled"),
        ({"kind": "sysctl", "values": {"vm.drop_caches": 3}}, "cannot be put back"),
        ({"kind": "sysctl", "values": {"net.ipv4.ip_forward": 1}}, "cannot be put back"),
        ({"kind": "sysctl", "values": {"net.core..somaxconn": 1}}, "net.core..somaxconn"),
        ({"kind": "sysctl", "values": {"net.core/../../../etc/passwd": 1}}, "passwd"),
        ({"kind": "sysctl", "values": {"net.core.somaxconn": True}}, "somaxconn"),
        ({"kind": "sysctl", "values": {"vm.dirty_bytes": 1, "vm.dirty_ratio": 1}}, "one setting"),
        ({"kind": "file", "path": "../x", "content": ""}, "path"),
        ({"kind": "file", "path": "a/../../x", "content": ""}, "path"),
        ({"kind": "file", "path": "/proc/sys/kernel/core_pattern", "content": ""}, "/proc"),
        ({"kind": "file", "path": "/sys", "content": ""}, "/sys"),
        ({"kind": "file", "path": "/etc/sudoers.d/x", "content": ""}, "/etc/sudoers.d"),
        ({"kind": "file", "path": "/a", "content": "", "mode": "4755"}, "mode"),
        ({"kind": "xml_edit", "path": "a.xml", "edits": []}, "edits"),
        ({"kind": "xml_edit", "path": "a.xml", "edits": [{"op": "remove", "select": "//Valve"}]}, "select"),
        ({"kind": "xml_edit", "path": "a.xml", "edits": [{"op": "remove", "select": "a[last()]"}]}, "select"),
        (
            {"kind": "xml_edit", "path": "a.xml", "edits": [{"op": "set", "select": "a", "attributes": {}}]},
            "attributes",
        ),
        ({"kind": "xml_edit", "path": "a.xml", "edits": [{"op": "add", "under": "a", "tag": "b c"}]}, "tag"),
        (
            {"kind": "xml_edit", "path": "a.xml", "edits": [{"op": "add", "under": "a", "tag": "b", "before": "c"}]},
            "before",
        ),
        ({"kind": "command", "run": "true"}, "undo"),
    ],
)
def test_a_step_that_makes_no_sense_is_refused_by_name(raw: dict[str, Any], field: str) -> None:
    with pytest.raises(ValidationError, match=field.replace("[", r"\[")):
        STEP.validate_python(raw)
