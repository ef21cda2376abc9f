"""Shell text of the recipe's author, with shell text that undoes it.

Who may write one may do anything on the host, so saving and launching such a recipe needs a role of its own.
Parameters of a recipe belong into `arguments` only: they reach the scripts as `$1`..., and no shell reads their text.
"""

from __future__ import annotations

import fnmatch
from dataclasses import replace
from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field, StringConstraints

from agents.base.command import Command, script
from agents.base.rights import Rights
from agents.base.setting_outcome import Result, SettingOutcome
from agents.steps.base.step import HostStep, State, StepContext

Shell = Annotated[str, StringConstraints(min_length=1, max_length=16384, pattern=r"^[^\x00]+$")]
Argument = Annotated[str, StringConstraints(max_length=4096, pattern=r"^[^\x00]*$")]

Path = Annotated[str, StringConstraints(max_length=255, pattern=r"^[^\s\x00]+$")]

SETTING = "observed"


class CommandStep(HostStep):
    """Runs `run`, later `undo`. `observe` prints the state, before and after; after `run` it must print `expect`."""

    model_config = ConfigDict(str_strip_whitespace=False)

    once: ClassVar[bool] = True
    sets_clock: ClassVar[bool] = True
    rights: ClassVar[Rights] = Rights(
        "nothing", whole="it runs shell text of its author on the host", free=("arguments",)
    )
    shown_in_dry_run: ClassVar[bool] = False
    root: ClassVar[str] = "with as_root"

    kind: Literal["command"] = "command"
    run: Shell
    undo: Shell
    observe: Shell | None = None
    expect: str | None = Field(None, max_length=4096)
    arguments: tuple[Argument, ...] = Field((), max_length=100)
    as_root: bool = False
    sets: tuple[Path, ...] = Field(
        (),
        max_length=50,
        description="Paths of the effective configuration that it sets, such as sysctl.net.* or files.app.conf, one "
        "per line: what differs there is asked, and no drift.",
    )
    timeout_s: float = Field(60.0, gt=0, le=3600)

    @property
    def needs_root(self) -> bool:
        return self.as_root

    def title(self) -> str:
        return f"Run {self.run.strip().splitlines()[0][:80]}" if self.run.strip() else "Run nothing"

    def explains(self, path: str) -> bool:
        file = path.partition("@")[0]  # what a file says goes with the file
        return any(fnmatch.fnmatchcase(one, pattern) for one in (path, file) for pattern in self.sets)

    def probe(self, context: StepContext) -> Command:
        return self._command(context, self.observe or ":")

    def parse(self, output: bytes) -> State:
        return {SETTING: output.decode("utf-8", "replace").strip()} if self.observe else {}

    def wanted(self, before: State) -> State:
        return {} if self.expect is None else {SETTING: self.expect.strip()}

    def apply(self, context: StepContext, before: State) -> tuple[Command, ...]:
        wanted = self.wanted(before)
        return () if wanted and wanted == before else (self._command(context, self.run),)

    def revert(self, context: StepContext, before: State) -> tuple[Command, ...]:
        return (self._command(context, self.undo),)

    def outcomes(self, before: State, after: State) -> tuple[SettingOutcome, ...]:
        was, now = before.get(SETTING), after.get(SETTING)
        if not self.observe:
            return (
                SettingOutcome(
                    self.title(), None, None, None, "applied", "not verified: the step has no observe script"
                ),
            )
        result: Result = "unchanged" if was == now else "applied"
        wanted = self.wanted(before).get(SETTING)
        if wanted is not None and now != wanted:
            result = "refused"
        return (SettingOutcome(self.title(), wanted, was, now, result),)

    def _command(self, context: StepContext, text: str) -> Command:
        command = script(text, *self.arguments, privileged=self.as_root, timeout_s=self.timeout_s)
        return replace(command, by_author=True)
