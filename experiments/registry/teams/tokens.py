"""API tokens `bh_<id>_<secret>`: shown once, stored as a keyed hash."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterable
from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from experiments.models import Member, Role, Token
from experiments.registry.database_clock import database_now
from experiments.registry.errors import Forbidden, RequestError
from experiments.registry.naming import check_title
from experiments.registry.teams.access import require
from experiments.registry.teams.audit import record
from experiments.registry.teams.bearers import Bearer, bearer_of

SCOPES: dict[str, Role] = {
    "read": Role.VIEWER,
    "launch": Role.LAUNCHER,
    "write": Role.EDITOR,
    "admin": Role.ADMIN,
}
"""Scope -> the role that a member needs to give it to a token. Each scope stands alone; none includes another."""

MAX_DAYS = 366
_TOUCH_EVERY = timedelta(minutes=1)  # "last used" need not cost a write per request


def issue(
    member: Member, *, name: str, scopes: Iterable[str], days: int = 90, service: Member | None = None
) -> tuple[Token, str]:
    """A new token and its text, which cannot be shown again. It acts for the member, or for a service of their team."""
    owner = member if service is None else service
    if service is not None:
        require(member, Role.ADMIN)
        if service.team_id != member.team_id or not service.is_service:
            raise RequestError("There is no such service in the team.", field="service")
    chosen = list(dict.fromkeys(scopes))
    check_title(name.strip(), "A token")
    if not chosen:
        raise RequestError(f"Choose at least one scope of {', '.join(SCOPES)}.", field="scopes")
    for scope in chosen:
        if scope not in SCOPES:
            raise RequestError(f"There is no scope {scope!r}; known: {', '.join(SCOPES)}.", field="scopes")
        if not Role(owner.role).covers(SCOPES[scope]):
            whose = "yours" if service is None else "the service's"
            raise Forbidden(f"The scope {scope} needs the role {SCOPES[scope].label.lower()}; {whose} is {owner.role}.")
    if not 1 <= days <= MAX_DAYS:
        raise RequestError(f"A token lives between 1 and {MAX_DAYS} days.", field="days")
    public_id, secret = secrets.token_hex(8), secrets.token_hex(24)
    with transaction.atomic():
        token = Token.objects.create(
            team_id=member.team_id,
            owner_id=owner.user_id,
            name=name.strip(),
            public_id=public_id,
            secret_hash=_hash(secret, settings.SECRET_KEY),
            scopes=chosen,
            expires_at=database_now() + timedelta(days=days),
        )
        record(
            member,
            "token.issue",
            f"token {token.name}",
            after={"id": public_id, "scopes": chosen, "days": days, "for": owner.user.get_username()},
        )
    return token, f"bh_{public_id}_{secret}"


def find_service(member: Member, username: str) -> Member:
    """A service of the member's team. RequestError when there is none of this name."""
    found = Member.objects.select_related("user").filter(
        team_id=member.team_id, is_service=True, user__username=username
    )
    service = found.first()
    if service is None:
        raise RequestError("There is no such service in the team.", field="service")
    return service


def authenticate(text: str) -> Bearer | None:
    """The live token behind `text` and its member, or None: unknown, wrong, expired and revoked ones look the same."""
    mark, _, rest = text.partition("_")
    public_id, _, secret = rest.partition("_")
    if mark != "bh" or not (public_id.isascii() and public_id.isalnum()) or not (secret.isascii() and secret.isalnum()):
        return None
    now = timezone.now()  # only to be shown, so not worth a question to the database in every request
    bearer = bearer_of(public_id)
    peppers = (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    stored = bearer.token.secret_hash if bearer else ""
    # Every pepper is tried, also without a token, so that the time does not tell whether the id exists.
    matches = [hmac.compare_digest(_hash(secret, pepper), stored) for pepper in peppers]
    if bearer is None or not any(matches):
        return None
    token = bearer.token
    if token.last_used_at is None or token.last_used_at < now - _TOUCH_EVERY:
        Token.objects.filter(pk=token.pk).update(last_used_at=now)
    return bearer


def revoke(member: Member, token: Token) -> None:
    """End a token. Its owner may, and an admin."""
    if token.team_id != member.team_id or (token.owner_id != member.user_id and member.role != Role.ADMIN):
        raise Forbidden("Only an admin may revoke the token of someone else.")
    with transaction.atomic():
        if Token.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=database_now()):
            record(member, "token.revoke", f"token {token.name}", before={"id": token.public_id})
    token.refresh_from_db()


def _hash(secret: str, pepper: str) -> str:
    key = hashlib.sha256(b"benchhub api token\0" + pepper.encode()).digest()
    return hmac.new(key, secret.encode(), hashlib.sha256).hexdigest()
