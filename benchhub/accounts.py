"""Who may have an account."""

from __future__ import annotations

from allauth.account.adapter import DefaultAccountAdapter
from django.http import HttpRequest


class ClosedSignupAdapter(DefaultAccountAdapter):  # type: ignore[misc]  # allauth is untyped
    """Nobody signs up by themselves: an administrator makes the accounts."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False
