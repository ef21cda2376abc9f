"""Which profilers a run has: by name, `async-profiler` or with what it samples, `async-profiler:alloc`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BeforeValidator, Field

from agents.base.runtime import Runtime
from agents.profilers import PROFILERS
from agents.profilers.base.profiler import Profiler

MAX_PROFILERS = 5
COMMAND = "command"
NAME_THE_PROGRAM = (
    "Of a command it is known where its first word is java, node, python, gunicorn, uvicorn, hypercorn or "
    "waitress-serve: begin it with that, or leave the profiler out."
)


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


def profilers_for(names: Sequence[str], runtime: Runtime) -> tuple[Chosen, ...]:
    """Those of the named profilers that can profile a server that this runs."""
    chosen = (CHOICES[name] for name in names)
    return tuple(one for one in chosen if one.profiler.fits(runtime))


def why_not(names: Sequence[str], servers: Sequence[tuple[str, Runtime]]) -> str:
    """Why these profilers cannot be had for servers of these kinds (each with what runs it), in a sentence that says
    what to do; "" when they can."""
    fitting = [profilers_for(names, runtime) for _, runtime in servers]
    for name in names:
        if not any(name == one.name for chosen in fitting for one in chosen):
            known = ", ".join(kind for kind, _ in servers)
            said = f"{name} profiles {CHOICES[name].profiler.of}, and this application has none ({known})."
            return f"{said} {NAME_THE_PROGRAM if (COMMAND, '') in servers else 'Leave it out.'}"
    for chosen in fitting:
        for one, other in combinations(chosen, 2):
            if one.profiler.occupies(one.event) & other.profiler.occupies(other.event):
                return f"{one.name} and {other.name} would measure each other on one server. Choose one of them."
    return ""
