"""Which differences between two effective configurations the recipes explain: those are *asked*, the rest drifted."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from agents.running.system import OF_A_MEMBER
from agents.servers.base.server import SECTIONS
from agents.spec import RunSpec
from agents.steps.base.step import Step
from agents.system import LOADED


def explained_by(specs: Sequence[RunSpec]) -> Callable[[str], bool]:
    """A test for paths of the effective configuration: True when the specs differ in something that sets this path.

    A setting that all specs have alike explains nothing: what differs there came from somewhere else. Where all have
    the same settings in another order, each of them may have won over another one. What is meant for one member of a
    system explains nothing on another.
    """
    roles = list(dict.fromkeys(part.role for spec in specs for part in spec.parts))
    by_role = {role: _explained_on(role, specs) for role in roles}

    def asked(path: str) -> bool:
        member = OF_A_MEMBER.fullmatch(path)
        role, own = (member[1], member[2]) if member else (LOADED, path)
        return role in by_role and by_role[role](own)

    return asked


def _explained_on(role: str, specs: Sequence[RunSpec]) -> Callable[[str], bool]:
    """The same of one server of the runs, its paths without the role in front."""
    parts_of = [{part.role: part for part in spec.parts}.get(role) for spec in specs]
    recipes = [[one for step in (part.steps if part else ()) for one in step.parts()] for part in parts_of]
    same_order = len({tuple(map(_identity, parts)) for parts in recipes}) <= 1
    common = set.intersection(*(set(map(_identity, parts)) for parts in recipes)) if recipes else set()
    differing = [part for parts in recipes for part in parts if _identity(part) not in common]
    if not differing and not same_order:
        differing = [part for parts in recipes for part in parts]
    servers = {part.server.model_dump_json(): part.server for part in parts_of if part}
    sections = (*SECTIONS, *(section for server in servers.values() for section in server.sections))

    def asked(path: str) -> bool:
        if len(servers) > 1 and path.startswith(sections):
            return True
        return any(step.explains(path) for step in differing)

    return asked


def _identity(step: Step) -> str:
    return step.model_dump_json()
