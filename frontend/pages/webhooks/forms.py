"""Webhooks, and which mails a member wants."""

from __future__ import annotations

from django import forms

from experiments.models import Webhook
from experiments.registry.outgoing.addresses import MAX_URL
from experiments.telling.notifying.happenings import EVENTS
from experiments.telling.notifying.webhooks import MAX_TOKEN, Wanted


class WebhookForm(forms.Form):
    """One webhook."""

    name = forms.CharField(max_length=120, widget=forms.TextInput(attrs={"placeholder": "Team chat"}))
    url = forms.CharField(
        max_length=MAX_URL, label="URL", widget=forms.URLInput(attrs={"placeholder": "https://hooks.example.com/…"})
    )
    format = forms.ChoiceField(choices=Webhook.Format.choices, initial=Webhook.Format.JSON)
    token = forms.CharField(
        max_length=MAX_TOKEN,
        required=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
        help_text="Of Grafana alone: of a service account that may write annotations. Empty keeps the stored one.",
    )
    events = forms.MultipleChoiceField(choices=list(EVENTS.items()), widget=forms.CheckboxSelectMultiple)
    is_active = forms.BooleanField(required=False, initial=True, label="Switched on")

    def wanted(self) -> Wanted:
        """What the valid form says."""
        return Wanted(**self.cleaned_data)
