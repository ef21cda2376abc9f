"""The audit trail: who changed what, with the values before and after."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from experiments.models import AuditEntry, Member


def record(
    member: Member,
    action: str,
    subject: str,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
) -> AuditEntry:
    """Append one entry in the caller's transaction. Values must be JSON data without secrets."""
    return AuditEntry.objects.create(
        team_id=member.team_id,
        actor_id=member.user_id,
        action=action,
        subject=subject[:200],
        before=None if before is None else dict(before),
        after=None if after is None else dict(after),
    )
