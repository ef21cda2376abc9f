"""Members and API tokens."""

from __future__ import annotations

from typing import Any, cast

from django import forms

from experiments.models import Member, Role
from experiments.teams.tokens import MAX_DAYS, SCOPES


class MemberForm(forms.Form):
    """Somebody who is to join the team."""

    username = forms.CharField(max_length=150, label="User name")
    role = forms.ChoiceField(choices=Role.choices, initial=Role.LAUNCHER)


class TokenForm(forms.Form):
    """A new API token; only scopes that the member's own role covers are offered."""

    name = forms.CharField(max_length=120, widget=forms.TextInput(attrs={"placeholder": "ci"}))
    scopes = forms.MultipleChoiceField(widget=forms.CheckboxSelectMultiple, initial=["read"])
    days = forms.IntegerField(min_value=1, max_value=MAX_DAYS, initial=90, label="Valid for (days)")

    def __init__(self, member: Member, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        scopes = cast(forms.MultipleChoiceField, self.fields["scopes"])
        scopes.choices = [(scope, scope) for scope, role in SCOPES.items() if Role(member.role).covers(role)]
