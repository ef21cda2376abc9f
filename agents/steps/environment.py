"""Environment variables of the server process."""

from __future__ import annotations

import re
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, ConfigDict, Field, StringConstraints

from agents.base.process_start import ProcessStart
from agents.base.rights import Gate, Rights
from agents.steps.base.step import LaunchStep


def _not_ours(name: str) -> str:
    if name.startswith("BENCHHUB_"):
        raise ValueError("names beginning with BENCHHUB_ mark the processes of a run")
    return name


# Of all others nobody knows which interpreter, library or script of the host loads or runs what they name.
_KNOWN = re.compile(
    r"TZ|LANG|LANGUAGE|LC_[A-Z]+|MALLOC_(?:ARENA_MAX|ARENA_TEST|TOP_PAD_|TRIM_THRESHOLD_|MMAP_THRESHOLD_|MMAP_MAX_)"
    r"|MALLOC_PERTURB_|GOMAXPROCS|GOGC|GOMEMLIMIT|UV_THREADPOOL_SIZE|OMP_NUM_THREADS|TOKIO_WORKER_THREADS"
    r"|RAYON_NUM_THREADS|WEB_CONCURRENCY"
)
_WORDS = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@:+-]*(?:/[A-Za-z0-9_][A-Za-z0-9_+-]*)*|")


def _tunes(name: str, value: str) -> bool:
    return _KNOWN.fullmatch(name) is not None and _WORDS.fullmatch(value) is not None and ".." not in value


VariableName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$"), AfterValidator(_not_ours)]
VariableValue = Annotated[str, StringConstraints(pattern=r"^[^\x00]*$", max_length=16384)]


class EnvironmentStep(LaunchStep):
    """Sets `variables` for the server process."""

    model_config = ConfigDict(str_strip_whitespace=False)

    sets_clock: ClassVar[bool] = False
    rights: ClassVar[Rights] = Rights(
        "sets known variables of locale, memory and threads",
        gates={
            "variables": Gate(
                "any other variable of the server process",
                lambda step: all(_tunes(name, value) for name, value in step.variables.items()),
            )
        },
    )

    kind: Literal["environment"] = "environment"
    variables: dict[VariableName, VariableValue] = Field(min_length=1, max_length=200)

    def title(self) -> str:
        return f"Environment {', '.join(self.variables)}"

    def parts(self) -> tuple[EnvironmentStep, ...]:
        return tuple(EnvironmentStep(variables={name: value}) for name, value in self.variables.items())

    def explains(self, path: str) -> bool:
        return path.removeprefix("process.environment.") in self.variables

    def contribute(self, launch: ProcessStart) -> ProcessStart:
        return launch.with_(environment={**launch.environment, **self.variables})
