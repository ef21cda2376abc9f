"""What every tuning step must offer. Pure: state in, commands out; the journal does the talking.

Two kinds: a `HostStep` changes something that stays on the host until it is put back; a `LaunchStep` changes only how
the server process is started, so there is nothing to undo.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from agents.base.command import Command
from agents.base.process_start import ProcessStart
from agents.base.rights import Guarded
from agents.base.setting_outcome import Result, SettingOutcome

State = Mapping[str, str | None]
"""Setting -> value as the host shows it. None = there is no such thing on this host."""


@dataclass(frozen=True)
class Program:
    """A program that a step runs on the host, and the package that brings it."""

    name: str
    package: str


@dataclass(frozen=True)
class StepContext:
    """What a step may need to know: the run's private instance directory on the SUT (absolute).

    `sysfs` and `procfs` are where the host mounts them; tests point them at a tree of plain files.
    """

    instance: str
    sysfs: str = "/sys"
    procfs: str = "/proc"

    def path(self, path: str) -> str:
        """`path` as it is when absolute, else inside the instance directory."""
        return path if path.startswith("/") else f"{self.instance}/{path}"


class Step(Guarded, ABC):
    """A tuning step. `title` is one line for the plan page."""

    sets_clock: ClassVar[bool]
    """Whether it may change how fast CPUs run, or how many of them work: turbo depends on that, too."""
    binds_server: ClassVar[bool] = False
    """Whether it gives the server process its CPUs."""
    root: ClassVar[str]
    """When it needs root on the host: "always", "never", or when."""

    kind: str

    @abstractmethod
    def title(self) -> str: ...

    @abstractmethod
    def explains(self, path: str) -> bool:
        """Whether this step sets `path` of the effective configuration, so that a difference there was asked for."""

    @property
    @abstractmethod
    def needs_root(self) -> bool:
        """Whether it needs root on the host, as it is written here."""

    @property
    def programs(self) -> tuple[Program, ...]:
        """What it cannot do without, beside what every host has (`agents/running/needs.py`)."""
        return ()

    @property
    def insists_on_programs(self) -> bool:
        """Whether a run is refused where one of its `programs` is missing."""
        return True

    def contribute(self, launch: ProcessStart) -> ProcessStart:
        """`launch` with what this step does to how the server process is started."""
        return launch

    def parts(self) -> tuple[Step, ...]:
        """The step as steps of one setting each, so that what two steps have alike can be told from what differs."""
        return (self,)


class HostStep(Step):
    """A change on the SUT that must be put back."""

    root: ClassVar[str] = "always"

    once: ClassVar[bool] = False
    """Whether its commands may not be repeated after a cut: they run as detached jobs under a start token."""

    shown_in_dry_run: ClassVar[bool] = True
    """Whether a dry run reads the present state; what an author's own look does is left to the run."""

    independent: ClassVar[bool] = False
    """Whether each setting can be put back without the others: what someone else changed holds up only itself."""

    unsupported: Literal["fail", "skip"] = "fail"
    """What to do about a setting that this host does not have: fail the run, or note it and go on."""

    @property
    def in_instance(self) -> bool:
        """Whether all that it changes is in the run's private instance directory, and gone with it."""
        return False

    @property
    def needs_root(self) -> bool:
        return not self.in_instance

    @property
    def insists_on_programs(self) -> bool:
        return self.unsupported == "fail"

    @abstractmethod
    def probe(self, context: StepContext) -> Command:
        """Reads the present state; exits 0 also where a setting does not exist."""

    @abstractmethod
    def parse(self, output: bytes) -> State:
        """The state in the output of `probe`; every setting of the step is a key."""

    @abstractmethod
    def wanted(self, before: State) -> State:
        """The state that the step asks for, given the one from before."""

    @abstractmethod
    def apply(self, context: StepContext, before: State) -> tuple[Command, ...]:
        """Commands that bring `before` to `wanted`; nothing when it is so already."""

    @property
    def keeps(self) -> tuple[str, ...]:
        """Files that it leaves in the instance and that are kept with the run, beside those of the application."""
        return ()

    def settings(self, effective: State) -> Mapping[str, str]:
        """What of the state read back is a setting of the run that nothing else shows, such as what was built."""
        return {}

    @abstractmethod
    def revert(self, context: StepContext, before: State) -> tuple[Command, ...]:
        """Commands that bring any state between back to `before`. Safe to run twice, and when nothing was applied."""

    def differing(self, before: State, now: State) -> tuple[str, ...]:
        """The keys of `before` that are otherwise now. A step leaves out what only describes the host."""
        return tuple(key for key in before if now.get(key) != before[key])

    def outcomes(self, before: State, after: State) -> tuple[SettingOutcome, ...]:
        """Compare what was asked with what the host shows now."""
        found = []
        for setting, wanted in self.wanted(before).items():
            was, now = before.get(setting), after.get(setting)
            result: Result
            if was is None and now is None and wanted is not None:
                result = "unsupported"
            elif now != wanted:
                result = "refused"
            else:
                result = "unchanged" if was == wanted else "applied"
            found.append(SettingOutcome(setting, wanted, was, now, result))
        return tuple(found)


class LaunchStep(Step):
    """A setting of the server process alone."""

    root: ClassVar[str] = "never"

    @property
    def needs_root(self) -> bool:
        return False

    @abstractmethod
    def contribute(self, launch: ProcessStart) -> ProcessStart:
        """`launch` with this step's settings in it."""
