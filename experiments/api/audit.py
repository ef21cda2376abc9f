"""The audit trail of the team."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.http import HttpRequest
from ninja import Router
from ninja.params.functions import Query
from pydantic import BaseModel, Field

from experiments.api.auth import ADMIN, member_of
from experiments.api.shapes import MAX_ID
from experiments.models import AuditEntry, Role
from experiments.teams.access import require

router = Router(auth=ADMIN, tags=["audit"])


class EntryOut(BaseModel):
    id: int
    at: datetime
    actor: str | None
    action: str
    subject: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None


class AuditPage(BaseModel):
    items: list[EntryOut]
    next_cursor: str = Field(description="Empty at the end")


@router.get("", response=AuditPage)
def list_audit(
    request: HttpRequest, cursor: int = Query(0, ge=0, le=MAX_ID), limit: int = Query(100, ge=1, le=500)
) -> AuditPage:
    """Who changed what, the newest first. For admins."""
    member = member_of(request)
    require(member, Role.ADMIN)
    found = AuditEntry.objects.for_team(member.team).select_related("actor").order_by("-id")
    rows = list((found.filter(id__lt=cursor) if cursor else found)[: limit + 1])
    return AuditPage(
        items=[
            EntryOut(
                id=row.pk,
                at=row.at,
                actor=row.actor.get_username() if row.actor else None,
                action=row.action,
                subject=row.subject,
                before=row.before,
                after=row.after,
            )
            for row in rows[:limit]
        ],
        next_cursor=str(rows[limit - 1].pk) if len(rows) > limit else "",
    )
