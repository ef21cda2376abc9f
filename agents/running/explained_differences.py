"""Which differences between two effective configurations the recipes explain: those are *asked*, the rest drifted."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from agents.servers.base.server import SECTIONS
from agents.spec import RunSpec
from agents.steps.base.step import Step


def asked_by(specs: Sequence[RunSpec]) -> Callable[[str], bool]:
    """A test for paths of the effective configuration: True when the specs differ in something that sets this path.

    A setting that all specs have alike explains nothing: what differs there came from somewhere else. Where all have
    the same settings in another order, each of them may have won over another one.
    """
    recipes = [[part for step in spec.recipe.steps for part in step.parts()] for spec in specs]
    same_order = len({tuple(map(_identity, parts)) for parts in recipes}) <= 1
    common = set.intersection(*(set(map(_identity, parts)) for parts in recipes)) if recipes else set()
    differing = [part for parts in recipes for part in parts if _identity(part) not in common]
    if not differing and not same_order:
        differing = [part for parts in recipes for part in parts]
    servers = {spec.application.server.model_dump_json(): spec.application.server for spec in specs}
    sections = (*SECTIONS, *(section for server in servers.values() for section in server.sections))

    def asked(path: str) -> bool:
        if len(servers) > 1 and path.startswith(sections):
            return True
        return any(step.explains(path) for step in differing)

    return asked


def _identity(step: Step) -> str:
    return step.model_dump_json()
