from __future__ import annotations

import pytest

from agents.base.errors import PlanError
from agents.base.session import Session
from agents.running.step_programs import insist_on_step_programs
from agents.steps.base.step import Program
from agents.steps.network_device import NetworkDeviceStep
from agents.steps.numa import NumaStep
from tests.agents.specs import make_spec

GONE = (Program("no-such-program-at-all", "no-such-package"),)


class Lacking(NumaStep):
    """A step of the server's start that cannot do without a program that no host has."""

    @property
    def programs(self) -> tuple[Program, ...]:
        return GONE


class Skipping(NetworkDeviceStep):
    """A step that may go on without it."""

    @property
    def programs(self) -> tuple[Program, ...]:
        return GONE


async def test_a_run_is_refused_before_anything_is_changed_where_a_step_lacks_its_program(session: Session) -> None:
    with pytest.raises(PlanError, match="has no no-such-program-at-all, which the step numa needs") as refusal:
        await insist_on_step_programs(session, [Lacking(policy="local")])
    assert "apt-get install no-such-package" in refusal.value.hint


async def test_a_step_that_skips_what_is_unsupported_goes_on_without_its_program(session: Session) -> None:
    step = Skipping(interface="eth0", rx_ring=9, unsupported="skip")
    await insist_on_step_programs(session, [step])
    with pytest.raises(PlanError, match="no-such-program-at-all"):
        await insist_on_step_programs(session, [step.model_copy(update={"unsupported": "fail"})])


async def test_steps_that_need_nothing_ask_nothing(session: Session) -> None:
    await insist_on_step_programs(session, make_spec(steps=({"kind": "affinity", "cpus": "0"},)).recipe.steps)
