"""Which groups of the identity provider belong to which team: read from the settings, so without the database."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

EVERYONE = "*"
"""As a group: whoever signs in through the identity provider."""
ROLES = ("viewer", "launcher", "editor", "admin")
"""`Role`, whose module cannot be loaded while the settings are read."""


@dataclass(frozen=True)
class GroupRule:
    """Members of `group` are members of the team `slug` with at least this role."""

    group: str
    slug: str
    role: str


def read_rules(entries: Collection[str]) -> tuple[GroupRule, ...]:
    """Rules as `group=team:role`. ValueError with a sentence for one that cannot be read."""
    return tuple(_rule(entry) for entry in entries)


def _rule(entry: str) -> GroupRule:
    group, mark, rest = entry.rpartition("=")
    slug, _, role = rest.partition(":")
    if not (mark and group and slug) or role not in ROLES:
        raise ValueError(f"{entry!r} is no rule: write group=team:role, role one of {', '.join(ROLES)}")
    return GroupRule(group, slug, role)
