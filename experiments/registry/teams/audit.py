"""The audit trail: who changed what, with the values before and after."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from experiments.models import AuditEntry, Member, Team


def record(
    who: Member | Team,
    action: str,
    subject: str,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
) -> AuditEntry:
    """Append one entry in the caller's transaction; of a team itself when nobody in person did it.

    Values must be JSON data without secrets.
    """
    team_id, actor_id = (who.pk, None) if isinstance(who, Team) else (who.team_id, who.user_id)
    return AuditEntry.objects.create(
        team_id=team_id,
        actor_id=actor_id,
        action=action,
        subject=subject[:200],
        before=None if before is None else dict(before),
        after=None if after is None else dict(after),
    )
