"""The difference between two effective configurations, in three groups: asked, drift and noise."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

NOISE = (
    "*.mhz",
    "*.mhz_now",
    "*uptime*",
    "*.pid",
    "process.threads",
    "*boot_id",
    "*ns_last_pid",
    "*random.uuid",
    "*entropy_avail",
    "*.dentry-state",
    "*.inode-nr",
    "*.inode-state",
    "*.file-nr",
    "*instance_directory",
    "*benchhub.sut",
)
"""Paths that change by themselves (measured on idle hosts)."""


IN_PART = "configuration.recorded_in_part"
"""A path that marks a configuration of which only some values are known."""


@dataclass(frozen=True)
class Difference:
    """One path that differs. None = not there on that side."""

    path: str
    values: tuple[str | None, ...]


@dataclass(frozen=True)
class ConfigurationDiff:
    """What differs, by cause: the recipes differ (`asked`), nobody asked (`drift`), known to vary (`noise`)."""

    asked: tuple[Difference, ...]
    drift: tuple[Difference, ...]
    noise: tuple[Difference, ...]

    @property
    def empty(self) -> bool:
        return not (self.asked or self.drift)


def diff(
    configurations: Iterable[Mapping[str, str]], *, asked: Callable[[str], bool], noise: Iterable[str] = NOISE
) -> ConfigurationDiff:
    """Paths that are not the same in all `configurations`. `asked(path)` says whether the recipes explain a path.

    A side recorded in part (`IN_PART` is in it; an import has nothing at all) says nothing about what it lacks.
    """
    sides = list(configurations)
    partial = [not side or IN_PART in side for side in sides]
    patterns = tuple(noise)
    groups: dict[str, list[Difference]] = {"asked": [], "drift": [], "noise": []}
    for path in sorted(set().union(*sides) - {IN_PART}):
        values = tuple(side.get(path) for side in sides)
        known = {value for value, part in zip(values, partial, strict=True) if value is not None or not part}
        if len(known) == 1:
            continue
        if asked(path):
            group = "asked"
        elif any(fnmatch.fnmatchcase(path, pattern) for pattern in patterns):
            group = "noise"
        else:
            group = "drift"
        groups[group].append(Difference(path, values))
    return ConfigurationDiff(tuple(groups["asked"]), tuple(groups["drift"]), tuple(groups["noise"]))
