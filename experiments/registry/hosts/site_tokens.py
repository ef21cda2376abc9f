"""Tokens as they are asked for: of a member, of a service, or of a site's worker."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.models import Member, Token
from experiments.registry.errors import RequestError
from experiments.registry.hosts.sites import find_site
from experiments.registry.teams.tokens import WORK, find_service, issue, issue_for_site


def issue_as_asked(
    member: Member, *, name: str, scopes: Sequence[str], days: int, site: str = "", service: str = ""
) -> tuple[Token, str]:
    """A new token and its text. The scope work stands alone and needs a site, which no other scope has."""
    if WORK not in scopes:
        if site:
            raise RequestError("Only a token with the scope work is for a site.", field="site")
        acting = find_service(member, service) if service else None
        return issue(member, name=name, scopes=scopes, days=days, service=acting)
    if list(scopes) != [WORK]:
        raise RequestError("The scope work stands alone: make other tokens for all else.", field="scopes")
    if service:
        raise RequestError("A token with the scope work is an admin's.", field="service")
    found = find_site(site)
    if found is None:
        raise RequestError("Say for which site the token is; the central one has workers of its own.", field="site")
    if not found.keys_stay:
        raise RequestError(
            f"The workers of site {found.name} reach the database and need no token. Whether keys stay at a site is "
            "chosen when it is added: have an operator add another one (`sites add NAME --keys-stay`), give its hosts "
            f"that site, and have this one removed (`sites remove {found.name}`).",
            field="site",
        )
    return issue_for_site(member, found, name=name, days=days)
