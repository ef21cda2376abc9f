"""The first account, and the rule of every password: what people are told before they need it."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth import get_user_model

PASSWORD_RULE = "At least 10 characters; not digits alone, no common password, and not like your name or address."  # noqa: S105
"""AUTH_PASSWORD_VALIDATORS in one sentence: shown wherever somebody chooses a password."""


def how_to_make_the_first_account() -> str:
    """The command that makes it, to be typed on the server; "" as soon as there is an account."""
    if get_user_model().objects.exists():
        return ""
    return f"{settings.BENCHHUB_COMMAND} createadmin --user NAME --team TEAM"
