"""Environment variables of the server process."""

from __future__ import annotations

import re
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, ConfigDict, Field, StringConstraints

from agents.base.process_start import Launch
from agents.steps.base.step import LaunchStep


def _not_ours(name: str) -> str:
    if name.startswith("BENCHHUB_"):
        raise ValueError("names beginning with BENCHHUB_ mark the processes of a run")
    return name


# What these name, every program or every JVM loads or runs.
_LOADS_CODE = re.compile(
    r"LD_.*|PATH|IFS|ENV|BASH_.*|SHELLOPTS|PS4|GCONV_PATH|CLASSPATH|J(?:AVA|RE)_HOME|_?J.*_OPT(?:ION)?S|.*_OPTS"
    r"|(?:PYTHON|PERL|RUBY|NODE).*"
)

VariableName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$"), AfterValidator(_not_ours)]
VariableValue = Annotated[str, StringConstraints(pattern=r"^[^\x00]*$", max_length=16384)]


class EnvironmentStep(LaunchStep):
    """Sets `variables` for the server process."""

    model_config = ConfigDict(str_strip_whitespace=False)

    sets_clock: ClassVar[bool] = False
    needs_admin: ClassVar[bool] = False

    kind: Literal["environment"] = "environment"
    variables: dict[VariableName, VariableValue] = Field(min_length=1, max_length=200)

    def title(self) -> str:
        return f"Environment {', '.join(self.variables)}"

    @property
    def needs_shell(self) -> bool:
        return any(_LOADS_CODE.fullmatch(name) for name in self.variables)

    def parts(self) -> tuple[EnvironmentStep, ...]:
        return tuple(EnvironmentStep(variables={name: value}) for name, value in self.variables.items())

    def explains(self, path: str) -> bool:
        return path.removeprefix("process.environment.") in self.variables

    def contribute(self, launch: Launch) -> Launch:
        return launch.with_(environment={**launch.environment, **self.variables})
