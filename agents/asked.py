"""Which differences between two effective configurations the recipes explain: those are *asked*, the rest drifted."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from agents.spec import RunSpec
from agents.steps.base import Step


def asked_by(specs: Sequence[RunSpec]) -> Callable[[str], bool]:
    """A test for paths of the effective configuration: True when the specs differ in something that sets this path.

    A step that all specs have alike explains nothing: what differs there came from somewhere else.
    """
    steps = [set(map(_identity, spec.recipe.steps)) for spec in specs]
    common = set.intersection(*steps) if steps else set()
    differing = [step for spec in specs for step in spec.recipe.steps if _identity(step) not in common]
    servers = {spec.application.server.model_dump_json() for spec in specs}

    def asked(path: str) -> bool:
        if len(servers) > 1 and path.startswith(("tomcat.", "process.", "jvm.", "server.", "instances.")):
            return True
        return any(step.explains(path) for step in differing)

    return asked


def _identity(step: Step) -> str:
    return step.model_dump_json()
