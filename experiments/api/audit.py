"""The audit trail of the team."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.http import HttpRequest
from ninja import Router
from ninja.params.functions import Query
from pydantic import AwareDatetime, BaseModel, Field

from experiments.api.plumbing.auth import ADMIN, member_of
from experiments.api.shapes import MAX_ID
from experiments.models import Role
from experiments.registry.teams.access import require
from experiments.registry.teams.audit_trail import AuditFilter, audit_entries

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
    request: HttpRequest,
    cursor: int = Query(0, ge=0, le=MAX_ID),
    limit: int = Query(100, ge=1, le=500),
    person: str = Query("", max_length=150, description="User name of who did it"),
    action: str = Query("", max_length=60, description="A beginning: `host` finds `host.add`"),
    subject: str = Query("", max_length=200, description="A part of what it was done to"),
    since: AwareDatetime | None = None,
    until: AwareDatetime | None = None,
) -> AuditPage:
    """Who changed what, the newest first. For admins."""
    member = member_of(request)
    require(member, Role.ADMIN)
    wanted = AuditFilter(person, action, subject, since, until)
    rows, before = audit_entries(member.team, wanted).newest_page(cursor or None, limit)
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
            for row in rows
        ],
        next_cursor=str(before or ""),
    )
