"""What the steps of a recipe need on the SUT beside what every host has: asked before anything is changed."""

from __future__ import annotations

from collections.abc import Sequence

from agents.base.command import script
from agents.base.errors import PlanError
from agents.base.session import Session
from agents.steps.base.step import Program, Step

# Root's programs are often on root's PATH alone.
_MISSING = """
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
for name; do command -v "$name" >/dev/null || echo "$name"; done
"""


async def insist_on_step_programs(session: Session, steps: Sequence[Step]) -> None:
    """PlanError when the host lacks a program of a step that does not go on without it; nothing was changed yet."""
    needed: dict[Program, Step] = {}
    for step in steps:
        if step.insists_on_programs:
            for program in step.programs:
                needed.setdefault(program, step)
    if not needed:
        return
    result = await session.run(script(_MISSING, *(program.name for program in needed)))
    lacking = result.check(f"Looking for what the recipe needs on {session.host}").text.split()
    for program, step in needed.items():
        if program.name in lacking:
            raise PlanError(
                f"{session.host} has no {program.name}, which the step {step.kind} needs ({step.title()}).",
                hint=f"Install it there as root (apt-get install {program.package}), or take the step out.",
            )
