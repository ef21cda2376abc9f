"""Builds a commit of a repository on the host and puts what it makes into the run's instance."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from agents.base.command import Command, script
from agents.base.rights import Rights
from agents.base.setting_outcome import Result, SettingOutcome
from agents.steps.base.step import HostStep, Program, State, StepContext
from agents.steps.build.scripts import BUILD, COMMANDS, LOG, PROBE, REVERT

KEPT_BUILDS = 20
"""Of each repository, the ones that were used last; the others are removed."""
SHA_LENGTH = 40

Tool = Literal["maven", "gradle", "npm", "make", "cargo", "container"]
_PACKAGES: dict[Tool, tuple[Program, ...]] = {
    "maven": (),  # a project may bring its own mvnw
    "gradle": (),
    "npm": (Program("npm", "npm"),),
    "make": (Program("make", "make"),),
    "cargo": (Program("cargo", "cargo"),),
    "container": (),
}


def _inside(path: str) -> str:
    if path.startswith("/") or ".." in path.split("/"):
        raise ValueError(f"'{path}' is no path inside a directory")
    return path


Repository = Annotated[
    str, StringConstraints(pattern=r"^(?:https?://|ssh://|git://|git@|file:///|/)[^\s\x00-\x1f]+$", max_length=500)
]
Commit = Annotated[str, StringConstraints(pattern=r"^[0-9A-Za-z][0-9A-Za-z._/+-]{0,199}(?:~[0-9]{1,4})?$")]
Pattern = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._*?+@/-]{0,300}$"), AfterValidator(_inside)]
Place = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._+@/-]{0,200}$"), AfterValidator(_inside)]
Argument = Annotated[str, StringConstraints(max_length=1000, pattern=r"^[^\x00\n]*$")]


class BuildStep(HostStep):
    """Checks out `commit` (a SHA, a branch or a tag; main~1 is the one before) of `repository` on the host, builds it
    with `tool` and `arguments`, and puts `artefact`, what the build makes, into the run's instance as `to`.

    What is built is kept in ~/.benchhub/builds by the commit it came from: the next run of the same commit takes it
    from there. How long the build took is said in the run's log, what it printed is kept as server-build.log.
    """

    sets_clock: ClassVar[bool] = False
    root: ClassVar[str] = "never"
    once: ClassVar[bool] = True
    rights: ClassVar[Rights] = Rights("nothing", whole="it builds programs on the host", free=("commit",))

    kind: Literal["build"] = "build"
    repository: Repository
    commit: Commit
    tool: Tool
    arguments: tuple[Argument, ...] = Field((), max_length=50)
    artefact: Pattern = Field("", description="Inside the checkout, such as target/*.jar; one file or directory.")
    to: Place = Field("", description="Inside the instance, such as app.jar; empty: the artefact's own name.")
    timeout_s: int = Field(1800, ge=10, le=24 * 3600)

    @model_validator(mode="after")
    def _something(self) -> BuildStep:
        if self.tool == "container" and self.artefact:
            raise ValueError("artefact: a container build makes an image, benchhub-build, and no file")
        if self.tool != "container" and not self.artefact:
            raise ValueError("artefact: name what the build makes, such as target/*.jar")
        if self.artefact and not self.place.strip("./"):
            raise ValueError("to: name where the artefact goes inside the instance")
        if any(mark in self.place for mark in "*?"):
            raise ValueError("to: name where the artefact goes, as its own name is a pattern")
        return self

    @property
    def place(self) -> str:
        """Where the artefact goes inside the instance; "" where there is none."""
        return self.to or self.artefact.rpartition("/")[2]

    @property
    def in_instance(self) -> bool:
        return True

    @property
    def programs(self) -> tuple[Program, ...]:
        return (Program("git", "git"), *_PACKAGES[self.tool])

    @property
    def keeps(self) -> tuple[str, ...]:
        return (LOG,)

    def settings(self, effective: State) -> Mapping[str, str]:
        """What was built: `build.commit` as a SHA, `build.sha256` of the artefact where it is a file."""
        told = ("commit", "sha256", "image")
        return {f"build.{name}": value for name in told if (value := effective.get(name)) is not None}

    def title(self) -> str:
        name = self.repository.rstrip("/").rpartition("/")[2].removesuffix(".git")
        return f"Build {name} at {self.commit[:SHA_LENGTH]} with {self.tool}"

    def explains(self, path: str) -> bool:
        whole = rf"(?<![A-Za-z0-9_-]){re.escape(self.place)}(?![A-Za-z0-9_-])"
        return path.startswith("build.") or (bool(self.place) and re.search(whole, path) is not None)

    def probe(self, context: StepContext) -> Command:
        return script(PROBE, context.instance, self.place)

    def parse(self, output: bytes) -> State:
        """`commit` that was built, `seconds` that it took, whether it was `cached`, and the artefact's `sha256`."""
        fields = dict(line.partition("=")[::2] for line in output.decode("utf-8", "replace").splitlines())
        return {name: fields.get(name) for name in ("commit", "seconds", "cached", "sha256", "image")}

    def wanted(self, before: State) -> State:
        return {"commit": self.commit}

    def apply(self, context: StepContext, before: State) -> tuple[Command, ...]:
        if before["commit"] == self.commit:
            return ()
        most, run = str(KEPT_BUILDS), COMMANDS[self.tool]
        about = (context.instance, self.repository, self.commit, self.tool, self.artefact, self.place, most, run)
        command = script(BUILD, *about, *self.arguments, timeout_s=float(self.timeout_s))
        return (Command(command.argv, timeout_s=command.timeout_s, by_author=True),)

    def revert(self, context: StepContext, before: State) -> tuple[Command, ...]:
        return (script(REVERT, context.instance, self.place),)

    def differing(self, before: State, now: State) -> tuple[str, ...]:
        return ("commit",) if before["commit"] != now["commit"] else ()

    def outcomes(self, before: State, after: State) -> tuple[SettingOutcome, ...]:
        built = after["commit"]
        result: Result = "refused" if built is None else "unchanged" if built == before["commit"] else "applied"
        took = f"built in {after['seconds']} s" if after["seconds"] else ""
        detail = f"taken from the cache, {took}" if after["cached"] == "yes" else took
        return (SettingOutcome("build.commit", self.commit, before["commit"], built, result, detail),)
