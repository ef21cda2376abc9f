"""Webhooks, and which mails a member wants."""

from __future__ import annotations

from typing import Any

from django import forms

from experiments.models import Webhook
from experiments.registry.outgoing.addresses import MAX_URL
from experiments.telling.notifying.happenings import EVENTS
from experiments.telling.notifying.webhooks import MAX_TOKEN, Wanted
from frontend.shared.forms.fields import SecretField, tell_of_stored


class WebhookForm(forms.Form):
    """One webhook."""

    name = forms.CharField(max_length=120, widget=forms.TextInput(attrs={"placeholder": "Team chat"}))
    url = forms.CharField(
        max_length=MAX_URL, label="URL", widget=forms.URLInput(attrs={"placeholder": "https://hooks.example.com/…"})
    )
    format = forms.ChoiceField(choices=Webhook.Format.choices, initial=Webhook.Format.JSON)
    token = SecretField(
        max_length=MAX_TOKEN,
        required=False,
        help_text="Of Grafana alone: of a service account that may write annotations.",
    )
    events = forms.MultipleChoiceField(choices=list(EVENTS.items()), widget=forms.CheckboxSelectMultiple)
    is_active = forms.BooleanField(required=False, initial=True, label="Switched on")

    def __init__(self, *args: Any, stored: Webhook | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if stored and stored.token:
            tell_of_stored(self.fields["token"])

    def wanted(self) -> Wanted:
        """What the valid form says."""
        return Wanted(**self.cleaned_data)
