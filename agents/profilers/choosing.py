"""Which profilers a run has: by name, `async-profiler` or with what it samples, `async-profiler:alloc`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BeforeValidator, Field

from agents.profilers import PROFILERS
from agents.profilers.base.profiler import Profiler

MAX_PROFILERS = 5


@dataclass(frozen=True)
class Chosen:
    """A profiler with what it samples; `name` is how people write it."""

    name: str
    profiler: Profiler
    event: str

    @property
    def key(self) -> str:
        """The name as it may stand in the name of a file or a job."""
        return self.name.replace(":", "-")


CHOICES: dict[str, Chosen] = {
    name: Chosen(name, profiler, event)
    for kind, profiler in PROFILERS.items()
    for number, event in enumerate(profiler.events)
    for name in (f"{kind}:{event}" if number else kind,)
}

if TYPE_CHECKING:
    ProfilerName = str
else:
    ProfilerName = Literal[tuple(CHOICES)]
"""One of the above: pydantic refuses other names, and says so in the schema."""


def _names(given: object) -> object:
    """A text is a list with commas, so that one name needs no brackets; a name is taken once."""
    if isinstance(given, str):
        given = [name.strip() for name in given.split(",") if name.strip()]
    listed = isinstance(given, list | tuple) and all(isinstance(name, str) for name in given)
    return tuple(dict.fromkeys(given)) if listed and isinstance(given, list | tuple) else given


ProfilerNames = Annotated[tuple[ProfilerName, ...], BeforeValidator(_names), Field(max_length=MAX_PROFILERS)]


def profilers_for(names: Sequence[str], kind: str, *, is_jvm: bool) -> tuple[Chosen, ...]:
    """Those of the named profilers that can profile a server of this kind."""
    chosen = (CHOICES[name] for name in names)
    return tuple(one for one in chosen if one.profiler.fits(kind, is_jvm=is_jvm))


def why_not(names: Sequence[str], servers: Sequence[tuple[str, bool]]) -> str:
    """Why these profilers cannot be had for servers of these kinds (each with whether it is a JVM), in a sentence that
    says what to do; "" when they can."""
    fitting = [profilers_for(names, kind, is_jvm=is_jvm) for kind, is_jvm in servers]
    for name in names:
        if not any(name == one.name for chosen in fitting for one in chosen):
            known = ", ".join(kind for kind, _ in servers)
            return (
                f"{name} profiles {CHOICES[name].profiler.of}, and this application has none ({known}). Leave it out."
            )
    for chosen in fitting:
        for one, other in combinations(chosen, 2):
            if one.profiler.occupies(one.event) & other.profiler.occupies(other.event):
                return f"{one.name} and {other.name} would measure each other on one server. Choose one of them."
    return ""
