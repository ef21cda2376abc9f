"""For whom a token acts, read in one prepared statement: every request of a program begins with it."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from django.contrib.auth.models import User
from django.db import connection
from django.db.models import Model
from django.utils import timezone

from experiments.models import Member, Team, Token
from experiments.models.prepared import execute

M = TypeVar("M", bound=Model)


@dataclass(frozen=True)
class Bearer:
    """A live token, and the member of its team whose rights it has; team and user of both are loaded."""

    token: Token
    member: Member


def bearer_of(public_id: str) -> Bearer | None:
    """Whose token this is. None when it is revoked or expired, or its owner's account or membership has ended."""
    found = execute(_statement(), [public_id, timezone.now()])
    if not found:
        return None
    values = iter(found[0])
    token, member = _built(Token, values), _built(Member, values)
    team, user = _built(Team, values), _built(User, values)
    token.team = member.team = team
    token.owner = member.user = user
    return Bearer(token, member)


@functools.cache
def _statement() -> str:
    # Django takes ten times as long to word this query as PostgreSQL to answer it.
    tables = {"t": Token, "m": Member, "g": Team, "u": User}
    columns = ", ".join(
        f'{alias}."{field.column}"' for alias, model in tables.items() for field in model._meta.concrete_fields
    )
    token, member, team, user = (model._meta.db_table for model in tables.values())
    return (  # names of tables and columns only
        f"SELECT {columns} FROM {token} t JOIN {member} m ON m.team_id = t.team_id AND m.user_id = t.owner_id "  # noqa: S608
        f"JOIN {team} g ON g.id = t.team_id JOIN {user} u ON u.id = t.owner_id "
        "WHERE t.public_id = %s::text AND t.revoked_at IS NULL AND t.expires_at > %s::timestamptz AND u.is_active"
    )


def _built(model: type[M], values: Iterator[Any]) -> M:
    """An object of the next columns, as a query set would build it."""
    fields = model._meta.concrete_fields
    found = [
        field.from_db_value(next(values), None, connection) if hasattr(field, "from_db_value") else next(values)
        for field in fields
    ]
    return model.from_db(connection.alias, [field.attname for field in fields], found)
