"""The options with which a file system is mounted."""

from __future__ import annotations

import re
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field, StringConstraints

from agents.base.command import Command, script
from agents.base.errors import PlanError
from agents.base.rights import Rights
from agents.base.setting_outcome import Result, SettingOutcome
from agents.steps.base.step import HostStep, State, StepContext

_PROBE = r"""
[ -r "$1/self/mountinfo" ] || exit 0
while read -r _ _ _ _ at own rest; do
  [ "$(printf '%b' "$at")" != "$2" ] || last="$own $rest"
done <"$1/self/mountinfo"
[ -z "${last-}" ] || printf '%s\n' "$last"
"""

# With what is mounted now as its base, and not what /etc/fstab says: only the options that are named change.
_REMOUNT = """
mount --options-source=mtab -o "remount,$2" -- "$1" || echo "the kernel refused $2" >&2
"""

FAMILIES: dict[str, tuple[tuple[str, ...], str]] = {
    "access time": (("noatime", "relatime", "strictatime"), "strictatime"),
    "access time of directories": (("nodiratime", "diratime"), "diratime"),
    "lazy times": (("lazytime", "nolazytime"), "nolazytime"),
    "write barriers": (("nobarrier", "barrier"), "barrier"),
    "discard": (("discard", "nodiscard"), "nodiscard"),
    "allocation on rename": (("noauto_da_alloc", "auto_da_alloc"), "auto_da_alloc"),
    "locks of direct reads": (("dioread_nolock", "dioread_lock"), "dioread_lock"),
    "synchronous": (("sync", "async"), "async"),
}
"""What options exclude each other -> them, and the one that the kernel has where it shows none of them."""

COMMIT = "commit"
_COMMIT = re.compile(r"commit=(\d{1,4})")
_SHOWN_AS = {"barrier=0": "nobarrier", "barrier=1": "barrier", "noauto_da_alloc=1": "noauto_da_alloc"}


def _family(option: str) -> str | None:
    if _COMMIT.fullmatch(option):
        return COMMIT
    return next((family for family, (options, _) in FAMILIES.items() if option in options), None)


def _known(option: str) -> str:
    if _family(option) is None:
        offered = ", ".join(option for options, _ in FAMILIES.values() for option in options)
        raise ValueError(f"'{option}' is none of {offered}, commit=SECONDS")
    return option


Option = Annotated[str, StringConstraints(max_length=40), AfterValidator(_known)]


def _once(options: tuple[str, ...]) -> tuple[str, ...]:
    families = [_family(option) for option in options]
    if len(set(families)) < len(families):
        raise ValueError("name one option of those that exclude each other")
    return options


class MountStep(HostStep):
    """Mounts the file system at `path` anew, in use as it is, with `options` in place of those that exclude them
    (noatime, lazytime, nobarrier, commit=30).
    """

    sets_clock: ClassVar[bool] = False
    rights: ClassVar[Rights] = Rights("nothing", whole="it changes how file systems of the host are mounted")

    kind: Literal["mount"] = "mount"
    path: Annotated[str, StringConstraints(pattern=r"^/[A-Za-z0-9._+@:/-]*$", max_length=500)]
    options: Annotated[tuple[Option, ...], Field(min_length=1, max_length=10), AfterValidator(_once)]

    def title(self) -> str:
        return f"Mount {self.path} with {', '.join(self.options)}"

    def explains(self, path: str) -> bool:
        return path.startswith("mount.") and path.endswith(self.path)

    def probe(self, context: StepContext) -> Command:
        return script(_PROBE, context.procfs, self.path)

    def parse(self, output: bytes) -> State:
        """What each family of options is now, None where nothing is mounted there; `file system` is its type."""
        words = output.decode("utf-8", "replace").split()
        families = [_family(option) or "" for option in self.options]
        if "-" not in words:
            return {**dict.fromkeys(families), "file system": None}
        after = words[words.index("-") + 1 :]
        shown = [_SHOWN_AS.get(one, one) for text in (words[0], after[-1]) for one in text.split(",")]
        state: dict[str, str | None] = {family: _now(family, shown) for family in families}
        return {**state, "file system": after[0]}

    def wanted(self, before: State) -> State:
        return {_family(option) or "": option for option in self.options}

    def apply(self, context: StepContext, before: State) -> tuple[Command, ...]:
        if before["file system"] is None:
            if self.unsupported == "skip":
                return ()
            raise PlanError(
                f"no file system is mounted at {self.path}",
                hint="Name a mount point (findmnt lists them), or set unsupported: skip on the step.",
            )
        options = [value for name, value in self.wanted(before).items() if value and before[name] != value]
        return (self._remount(options),) if options else ()

    def revert(self, context: StepContext, before: State) -> tuple[Command, ...]:
        # What was so already is left out: a file system may not know the option, and would refuse the others with it.
        wanted = self.wanted(before)
        old = [value for name, value in before.items() if value is not None and wanted.get(name, value) != value]
        return (self._remount(old),) if old else ()

    def differing(self, before: State, now: State) -> tuple[str, ...]:
        return tuple(key for key in super().differing(before, now) if key != "file system")

    def outcomes(self, before: State, after: State) -> tuple[SettingOutcome, ...]:
        found = []
        for family, wanted in self.wanted(before).items():
            was, now = before[family], after[family]
            result: Result = "refused"
            detail = "this file system does not take it"
            if before["file system"] is None:
                result, detail = "unsupported", "nothing is mounted there"
            elif now == wanted:
                result, detail = ("unchanged" if was == wanted else "applied"), ""
            found.append(SettingOutcome(f"{self.path} {family}", wanted, was, now, result, detail))
        return tuple(found)

    def _remount(self, options: list[str]) -> Command:
        return script(_REMOUNT, self.path, ",".join(map(_written, options)), privileged=True, timeout_s=120)


def _written(option: str) -> str:
    """As mount(8) has to be told: relatime beside a noatime that is there already changes nothing."""
    return f"atime,{option}" if option in ("relatime", "strictatime") else option


def _now(family: str, shown: list[str]) -> str:
    if family == COMMIT:
        return next((option for option in shown if _COMMIT.fullmatch(option)), "commit=0")
    options, default = FAMILIES[family]
    return next((option for option in shown if option in options), default)
