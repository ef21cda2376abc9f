"""The difference between two effective configurations, in three groups: asked, drift and noise."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from experiments.registry.documents.file_settings import settings_of

NOISE = (
    "*.mhz",
    "*.mhz_now",
    "*uptime*",
    "*.pid",
    "process.threads",
    "members.*.process.threads",
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

_LISTS = re.compile(
    r"((?:members\.[a-z0-9_]{1,12}\.)?"
    r"(?:process\.arguments|jvm\.arguments\.jvm_options|files\.[^\n]{1,300}@line))\[([0-9]{1,6})\]"
)
_FILES = re.compile(r"(?:members\.[a-z0-9_]{1,12}\.)?files\.")
"""Whole files: they are compared by their settings, and where they are no list of settings, by their lines."""
_OPTIONS = "jvm.arguments"
"""Command lines: one option more moves all that follow, and what only moved does not differ."""

IN_PART = "configuration.recorded_in_part"
"""A path that marks a configuration of which only some values are known."""

PARAMETERS = "parameters."
"""In front of what was chosen for a run that others measured."""


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
    given = _in_settings(list(configurations))
    partial = [_in_part(side) for side in given]
    sides = _aligned(given)
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


def _in_part(side: Mapping[str, str]) -> bool:
    return not side or IN_PART in side


def _in_settings(sides: list[Mapping[str, str]]) -> list[Mapping[str, str]]:
    """The sides with each file that differs as its settings: `files.nginx.conf@http.server.listen`."""
    texts = [{path: text for path, text in side.items() if _FILES.match(path)} for side in sides]
    differing = [path for path in set().union(*texts) if len({one.get(path) for one in texts}) > 1]
    if not any("\n" in one.get(path, "") for path in differing for one in texts):
        return sides
    opened: list[Mapping[str, str]] = []
    for side in sides:
        own = {path: value for path, value in side.items() if path not in differing}
        for path in differing:
            if path in side:
                own |= _opened(path, side[path], alone=any(path not in one for one in texts))
        opened.append(own)
    return opened


def _opened(path: str, text: str, *, alone: bool) -> Mapping[str, str]:
    """The file's settings, else its lines; whole where another side has no such file to compare the lines with."""
    settings = settings_of(path, text)
    if settings is not None:
        return {f"{path}@{name}": value for name, value in settings.items()}
    if alone:
        return {path: text}
    lines = ["", *text.splitlines()]  # so that the first line has the number 1
    return {f"{path}@line[{number}]": line for number, line in enumerate(lines)}


def _aligned(sides: Sequence[Mapping[str, str]]) -> list[dict[str, str]]:
    """The sides without those members of their lists that all of them have in the same order."""
    aligned = [dict(side) for side in sides]
    _keep_own_options(aligned)
    lists: dict[str, list[dict[int, str]]] = {}
    for number, side in enumerate(sides):
        for match in filter(None, map(_LISTS.fullmatch, side)):
            lists.setdefault(match[1], [{} for _ in sides])[number][int(match[2])] = aligned[number].pop(match[0])
    for name, members in lists.items():
        ordered = [[one[at] for at in sorted(one)] for one in members]
        known = [items for side, items in zip(sides, ordered, strict=True) if items or not _in_part(side)]
        common = _common(known)
        left = [_left(items, common) for items in ordered]
        at = -1
        for row in range(max(map(len, left))):
            at = max(at + 1, next(own[row][0] for own in left if row < len(own)))
            moved = len({own[row][1] for own in left if row < len(own)}) == 1
            for side, own in zip(aligned, left, strict=True):
                if row < len(own):
                    side[f"{name}[{at}]"] = own[row][1]
                    at += moved  # to another place: what one side has there, the others have not
    return aligned


def _keep_own_options(sides: Sequence[dict[str, str]]) -> None:
    """Of the JVM's options, which are one long text, only those that not all sides have."""
    known = {number: re.split(r" (?=-)", side[_OPTIONS]) for number, side in enumerate(sides) if _OPTIONS in side}
    common = _common(list(known.values())) if len(known) > 1 else []
    for number, options in known.items():
        own = [option for _, option in _left(options, common)]
        if own:
            sides[number][_OPTIONS] = " ".join(own)
        elif any(options != other for other in known.values()):
            del sides[number][_OPTIONS]


def _common(lists: Sequence[Sequence[str]]) -> Sequence[str]:
    """The longest runs of members that all lists have, in their order."""
    common = lists[0]
    for items in lists[1:]:
        blocks = SequenceMatcher(None, common, items, autojunk=False).get_matching_blocks()
        common = [item for block in blocks for item in common[block.a : block.a + block.size]]
    return common


def _left(items: Sequence[str], common: Sequence[str]) -> list[tuple[int, str]]:
    """The members, with their places, that are not in `common`, of which each has its turn."""
    left, turn = [], 0
    for at, item in enumerate(items):
        if turn < len(common) and item == common[turn]:
            turn += 1
        else:
            left.append((at, item))
    return left
