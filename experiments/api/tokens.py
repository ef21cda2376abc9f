"""API tokens of the team."""

from __future__ import annotations

from datetime import datetime

from django.db.models import QuerySet
from django.http import HttpRequest
from ninja import Router
from ninja.responses import Status
from pydantic import BaseModel, Field

from experiments.api.plumbing.auth import ADMIN, Scope, member_of
from experiments.api.plumbing.paging import paged
from experiments.api.shapes import Body, Whole
from experiments.models import Member, Role, Token
from experiments.registry.errors import NotFound
from experiments.registry.hosts.site_tokens import issue_as_asked
from experiments.registry.teams.tokens import MAX_DAYS, revoke

router = Router(auth=ADMIN, tags=["tokens"])


class TokenOut(BaseModel):
    id: str
    name: str
    scopes: list[str]
    owner: str = Field(description="For whom the token acts: a member, or a service of the team")
    service: bool = Field(description="True for a token of the team: it stays when people go")
    site: str = Field(description="Of the scope work: the site whose worker it is for; else empty")
    created_at: datetime
    expires_at: datetime
    last_used_at: datetime | None
    revoked_at: datetime | None

    @classmethod
    def of(cls, token: Token, services: frozenset[int]) -> TokenOut:
        return cls(
            id=token.public_id,
            name=token.name,
            scopes=token.scopes,
            owner=token.owner.get_username(),
            service=token.owner_id in services,
            site=token.site.name if token.site else "",
            created_at=token.created_at,
            expires_at=token.expires_at,
            last_used_at=token.last_used_at,
            revoked_at=token.revoked_at,
        )


class TokenMade(TokenOut):
    text: str = Field(description="The token itself; it is not shown again")


class TokenIn(Body):
    name: str = Field(min_length=1, max_length=120)
    scopes: list[Scope] = Field(min_length=1)
    days: Whole = Field(90, ge=1, le=MAX_DAYS)
    service: str = Field(
        "", max_length=150, description="User name of a service of the team, for which the token is to act; admins only"
    )
    site: str = Field(
        "", max_length=40, description="With the scope work, which stands alone: the site whose worker it is for"
    )


@router.get("", response=list[TokenOut])
@paged
def list_tokens(request: HttpRequest) -> list[TokenOut]:
    """The caller's tokens; an admin sees those of the whole team."""
    member = member_of(request)
    services = _services(member)
    return [TokenOut.of(token, services) for token in _visible(member).order_by("-id")]


@router.post("", response={201: TokenMade})
def create_token(request: HttpRequest, payload: TokenIn) -> Status[TokenMade]:
    """A new token. No token gets a scope above its creator's role."""
    member = member_of(request)
    token, text = issue_as_asked(member, **payload.model_dump())
    return Status(201, TokenMade(**TokenOut.of(token, _services(member)).model_dump(), text=text))


@router.delete("/{token_id}", response=TokenOut)
def revoke_token(request: HttpRequest, token_id: str) -> TokenOut:
    """End a token at once."""
    token = _visible(member_of(request)).filter(public_id=token_id).first()
    if token is None:
        raise NotFound("There is no such token.")
    revoke(member_of(request), token)
    return TokenOut.of(token, _services(member_of(request)))


def _visible(member: Member) -> QuerySet[Token]:
    tokens: QuerySet[Token] = Token.objects.for_team(member.team).select_related("owner", "site")
    return tokens if member.role == Role.ADMIN else tokens.filter(owner_id=member.user_id)


def _services(member: Member) -> frozenset[int]:
    return frozenset(member.team.members.filter(is_service=True).values_list("user_id", flat=True))
