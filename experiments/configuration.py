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
    """Paths that are not the same in all `configurations`. `asked(path)` says whether the recipes explain a path."""
    sides = list(configurations)
    patterns = tuple(noise)
    groups: dict[str, list[Difference]] = {"asked": [], "drift": [], "noise": []}
    for path in sorted(set().union(*sides)):
        values = tuple(side.get(path) for side in sides)
        if len(set(values)) == 1:
            continue
        if asked(path):
            group = "asked"
        elif any(fnmatch.fnmatchcase(path, pattern) for pattern in patterns):
            group = "noise"
        else:
            group = "drift"
        groups[group].append(Difference(path, values))
    return ConfigurationDiff(tuple(groups["asked"]), tuple(groups["drift"]), tuple(groups["noise"]))
