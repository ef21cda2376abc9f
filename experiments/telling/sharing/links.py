"""Share links: made, opened, revoked. The token is random and shown once; only its digest is stored."""

from __future__ import annotations

import hashlib
import re
import secrets
from dataclasses import dataclass
from datetime import timedelta

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now

from experiments.models import Member, Role, ShareLink
from experiments.registry.database_clock import database_now
from experiments.registry.errors import Conflict, Forbidden, NotFound, RequestError
from experiments.registry.teams.access import require
from experiments.registry.teams.audit import record
from experiments.telling.sharing.sheet import Sheet
from experiments.telling.sharing.subjects import Subject, freeze

DEFAULT_DAYS, MAX_DAYS = 30, 366
MAX_LIVE = 1000
"""Live links of a team: more is a script that forgot to revoke."""
TOKEN_BYTES = 24
_TOKEN = re.compile(r"[A-Za-z0-9_\-]{32}")


@dataclass(frozen=True)
class NewLink:
    """A link with its token, which cannot be told again."""

    link: ShareLink
    token: str


def share(member: Member, subject: Subject, *, days: int | None = DEFAULT_DAYS) -> NewLink:
    """Freeze the subject and make a link to it. Editors may; `days` None is a link that never expires, for admins."""
    require(member, Role.EDITOR)
    if days is None and member.role != Role.ADMIN:
        raise Forbidden("Only an admin may make a link that never expires.", field="days")
    if days is not None and not 1 <= days <= MAX_DAYS:
        raise RequestError(f"A link lives between 1 and {MAX_DAYS} days.", field="days")
    if ShareLink.objects.for_team(member.team).live().count() >= MAX_LIVE:
        raise Conflict(f"The team has {MAX_LIVE} live links; revoke some that nobody needs.")
    frozen = freeze(member.team, subject)
    token = secrets.token_urlsafe(TOKEN_BYTES)
    with transaction.atomic():
        link = ShareLink.objects.create(
            team_id=member.team_id,
            kind=frozen.kind,
            subject=frozen.subject,
            token_digest=_digest(token),
            sheet=frozen.sheet.model_dump(mode="json"),
            run_ids=list(frozen.run_ids),
            created_by_id=member.user_id,
            expires_at=None if days is None else database_now() + timedelta(days=days),
        )
        after = {"link": link.pk, "kind": link.kind, "days": "never expires" if days is None else days}
        record(member, "share.create", link.subject, after=after)
    return NewLink(link, token)


def revoke_link(member: Member, link_id: int) -> ShareLink:
    """End a link at once. Editors may end any link of their team."""
    require(member, Role.EDITOR)
    with transaction.atomic():
        link: ShareLink | None = ShareLink.objects.for_team(member.team).filter(pk=link_id).first()
        if link is None:
            raise NotFound("There is no such link.")
        if ShareLink.objects.filter(pk=link.pk, revoked_at=None).update(revoked_at=database_now()):
            record(member, "share.revoke", link.subject, before={"link": link.pk, "opened": link.opened_count})
    link.refresh_from_db()
    return link


def live_link(token: str) -> ShareLink | None:
    """The link behind a token, or None: unknown, expired and revoked ones look the same."""
    if not _TOKEN.fullmatch(token):
        return None
    return ShareLink.objects.live().filter(token_digest=_digest(token)).first()


def sheet_of(link: ShareLink) -> Sheet:
    """What the link shows."""
    return Sheet.model_validate(link.sheet)


def count_opening(link: ShareLink) -> None:
    """Remember that somebody looked."""
    ShareLink.objects.filter(pk=link.pk).update(opened_count=F("opened_count") + 1, last_opened_at=Now())


def _digest(token: str) -> str:
    """A plain digest is enough for 192 random bits, and survives a change of the installation's key."""
    return hashlib.sha256(b"benchhub share link\0" + token.encode()).hexdigest()
