"""Reading the audit trail: whose, what, about what, when."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from experiments.models import AuditEntry, Team
from experiments.models.teams import TeamOwnedQuerySet

LONGEST_VALUE = 400


@dataclass(frozen=True)
class AuditFilter:
    """Empty words and None filter nothing. `action` is a beginning: `host` finds `host.add`. since <= at < until."""

    person: str = ""
    action: str = ""
    subject: str = ""
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True)
class Change:
    """One value that an entry changed; "" where there was, or is, none."""

    name: str
    before: str
    after: str


def audit_entries(team: Team, wanted: AuditFilter) -> TeamOwnedQuerySet:
    """The team's entries that fit, the newest first."""
    found: TeamOwnedQuerySet = AuditEntry.objects.for_team(team).select_related("actor").order_by("-id")
    if wanted.person:
        found = found.filter(actor__username=wanted.person)
    if wanted.action:
        found = found.filter(action__startswith=wanted.action)
    if wanted.subject:
        found = found.filter(subject__icontains=wanted.subject)
    if wanted.since:
        found = found.filter(at__gte=wanted.since)
    if wanted.until:
        found = found.filter(at__lt=wanted.until)
    return found


def changes_of(entry: AuditEntry) -> tuple[Change, ...]:
    """What differs between before and after, one row for each value however deep it lies."""
    before, after = dict(_flat(entry.before)), dict(_flat(entry.after))
    return tuple(
        Change(name, before.get(name, ""), after.get(name, ""))
        for name in dict.fromkeys([*before, *after])
        if before.get(name, "") != after.get(name, "")
    )


def _flat(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """(path, text) of each value: dictionaries are walked, anything else is one value."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _flat(inner, f"{name}.{key}" if name else str(key))
    elif name and value is not None:
        yield name, _text(value)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(_text(one) for one in value)[:LONGEST_VALUE]
    return str(value)[:LONGEST_VALUE]
