"""Which entries of the audit trail are asked for."""

from __future__ import annotations

from typing import Any, cast

from django import forms

from experiments.models import AuditEntry, Team


class AuditForm(forms.Form):
    """Which entries of the audit trail."""

    person = forms.ChoiceField(required=False)
    action = forms.ChoiceField(required=False, label="What")
    subject = forms.CharField(required=False, max_length=200, label="Object", widget=forms.SearchInput)
    since = forms.DateField(required=False, label="From (UTC)", widget=forms.DateInput(attrs={"type": "date"}))
    until = forms.DateField(required=False, label="To (UTC)", widget=forms.DateInput(attrs={"type": "date"}))

    def __init__(self, team: Team, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        found = AuditEntry.objects.for_team(team)
        for name, column in (("person", "actor__username"), ("action", "action")):
            known = found.exclude(**{column: None}).values_list(column, flat=True).distinct().order_by(column)
            field = cast(forms.ChoiceField, self.fields[name])
            field.choices = [("", "all"), *((value, value) for value in known)]
