"""Runs the commands of steps in a real shell on this machine, with plain files in place of /sys and /proc."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from agents.base.command import Command
from agents.steps import AnyStep
from agents.steps.base.step import HostStep, LaunchStep, State, StepContext

STEP: TypeAdapter[HostStep | LaunchStep] = TypeAdapter(AnyStep)


def run(command: Command) -> bytes:
    """What it prints; it must succeed."""
    done = subprocess.run(command.argv, input=command.stdin, capture_output=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def fails(command: Command) -> str:
    """What it says on standard error; it must fail."""
    done = subprocess.run(command.argv, input=command.stdin, capture_output=True, timeout=300, check=False)
    assert done.returncode != 0
    return done.stderr.decode()


def state(step: HostStep, context: StepContext) -> State:
    return step.parse(run(step.probe(context)))


def apply(step: HostStep, context: StepContext) -> State:
    """Applies the step and gives the state from before."""
    before = state(step, context)
    for command in step.apply(context, before):
        run(command)
    return before


def revert(step: HostStep, context: StepContext, before: State) -> None:
    """Takes the step back, twice: the second time must change nothing."""
    for command in step.revert(context, before) * 2:
        run(command)


def results(step: HostStep, context: StepContext, before: State) -> dict[str, str]:
    return {outcome.setting: outcome.result for outcome in step.outcomes(before, state(step, context))}


def host_step(raw: Mapping[str, object]) -> HostStep:
    step = STEP.validate_python(raw)
    assert isinstance(step, HostStep)
    return step


def tree(root: Path, files: Mapping[str, str]) -> Path:
    """Writes the files below `root`."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return root


@pytest.fixture
def context(tmp_path: Path) -> StepContext:
    """An instance directory with an empty conf, and roots for /sys and /proc."""
    instance = tmp_path / "instance"
    (instance / "conf").mkdir(parents=True)
    return StepContext(str(instance), sysfs=str(tmp_path / "sys"), procfs=str(tmp_path / "proc"))
