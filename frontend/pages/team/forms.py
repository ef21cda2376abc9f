"""The team, its members, invitations, services and API tokens."""

from __future__ import annotations

from typing import Any, cast

from django import forms
from django.http import QueryDict

from experiments.models import Member, Role
from experiments.registry.teams.founding import MOST_LETTERS
from experiments.registry.teams.tokens import MAX_DAYS, SCOPES
from frontend.shared.forms.links import LinkTemplatesField


class InvitationForm(forms.Form):
    """Somebody who is asked into the team."""

    email = forms.EmailField(
        required=False, label="Mail address", help_text="Empty: you get a link to hand over yourself."
    )
    role = forms.ChoiceField(choices=Role.choices, initial=Role.LAUNCHER)

    def __init__(self, data: QueryDict | None = None) -> None:
        super().__init__(data, auto_id="id_invitation_%s")


class ServiceForm(forms.Form):
    """An identity of the team for tokens."""

    name = forms.CharField(max_length=40, widget=forms.TextInput(attrs={"placeholder": "ci"}))
    role = forms.ChoiceField(choices=Role.choices, initial=Role.LAUNCHER)

    def __init__(self, data: QueryDict | None = None) -> None:
        super().__init__(data, auto_id="id_service_%s")


class TeamForm(forms.Form):
    """What an admin says about the team."""

    name = forms.CharField(max_length=MOST_LETTERS)
    requires_second_factor = forms.BooleanField(required=False, label="Members need a second factor to sign in")
    link_templates = LinkTemplatesField("They stand on the page of each run, with its window and its hosts.")


class NewTeamForm(forms.Form):
    """A team to be founded."""

    name = forms.CharField(max_length=MOST_LETTERS)
    slug = forms.SlugField(max_length=50, label="Short name", help_text="Stands in its addresses: letters, digits, -.")


class MemberForm(forms.Form):
    """Somebody who is to join the team."""

    username = forms.CharField(max_length=150, label="User name")
    role = forms.ChoiceField(choices=Role.choices, initial=Role.LAUNCHER)


class ServiceChoice(forms.ModelChoiceField):  # type: ignore[type-arg]  # takes none at run time
    """One of the team's services, with its role."""

    def label_from_instance(self, obj: Member) -> str:
        return f"{obj.user} ({obj.role})"


class TokenForm(forms.Form):
    """A new API token; only scopes that the member's own role covers are offered."""

    name = forms.CharField(max_length=120, widget=forms.TextInput(attrs={"placeholder": "ci"}))
    scopes = forms.MultipleChoiceField(widget=forms.CheckboxSelectMultiple, initial=["read"])
    days = forms.IntegerField(min_value=1, max_value=MAX_DAYS, initial=90, label="Valid for (days)")
    service = ServiceChoice(
        Member.objects.none(),
        required=False,
        label="Acts for",
        empty_label="you (ends when you leave the team)",
        help_text="A service is an identity of the team: its tokens stay when people go.",
    )

    def __init__(self, member: Member, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        scopes = cast(forms.MultipleChoiceField, self.fields["scopes"])
        scopes.choices = [(scope, scope) for scope, role in SCOPES.items() if Role(member.role).covers(role)]
        services = Member.objects.filter(team=member.team, is_service=True).select_related("user")
        if member.role == Role.ADMIN and services:
            field = cast(ServiceChoice, self.fields["service"])
            field.queryset = services
        else:
            del self.fields["service"]
