"""What the pages around sign-in ask for."""

from __future__ import annotations

from typing import Any

from allauth.socialaccount.adapter import get_adapter
from django import template
from django.conf import settings
from django.http import HttpRequest

from experiments.models.teams import AnyUser
from experiments.registry.teams.first_account import PASSWORD_RULE, how_to_make_the_first_account
from experiments.registry.teams.founding import may_found

register = template.Library()


@register.simple_tag
def sends_mail() -> bool:
    """Whether a mail server is set."""
    return bool(settings.BENCHHUB_SENDS_MAIL)


@register.simple_tag
def first_account() -> str:
    """The command that makes the first account, while there is none."""
    return how_to_make_the_first_account()


@register.simple_tag
def password_rule() -> str:
    return PASSWORD_RULE


@register.simple_tag(takes_context=True)
def single_sign_on(context: dict[str, Any], process: str = "login", after: str = "") -> list[dict[str, str]]:
    """Name and address of each identity provider; `process`: login or connect."""
    request: HttpRequest = context["request"]
    wanted = {"process": process} | ({"next": after} if after else {})
    return [
        {"name": provider.name, "address": provider.get_login_url(request, **wanted)}
        for provider in get_adapter(request).list_providers(request)
    ]


@register.filter
def may_found_teams(user: AnyUser) -> bool:
    return may_found(user)
