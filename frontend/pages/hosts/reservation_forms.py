"""Reserving hosts."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, cast

from django import forms
from django.conf import settings

from experiments.models import Host, Team
from experiments.registry.database_clock import database_now
from experiments.registry.hosts.reservations import MAX_REASON

HOURS_A_DAY = 24


class HoursField(forms.IntegerField):
    """For how long, in hours."""

    def __init__(self) -> None:
        most = settings.BENCHHUB_RESERVATION_DAYS * HOURS_A_DAY
        super().__init__(min_value=1, max_value=most, initial=2, label="Hours", help_text=f"At most {most}.")


class ExtendForm(forms.Form):
    """A later end."""

    hours = HoursField()

    def until(self, now_until: datetime) -> datetime:
        return now_until + timedelta(hours=self.cleaned_data["hours"])


class ReservationForm(forms.Form):
    """Which hosts, from when, for how long and why."""

    hosts = forms.ModelMultipleChoiceField(Host.objects.none(), widget=forms.CheckboxSelectMultiple)
    hours = HoursField()
    starts_at = forms.DateTimeField(
        required=False,
        label="From (UTC)",
        help_text="Now, when it is empty.",
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}),
    )
    reason = forms.CharField(
        required=False, max_length=MAX_REASON, widget=forms.TextInput(attrs={"placeholder": "profiling by hand"})
    )

    def __init__(self, team: Team, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        hosts = cast("forms.ModelMultipleChoiceField[Any]", self.fields["hosts"])
        hosts.queryset = Host.objects.for_team(team).order_by("name")

    def times(self) -> tuple[datetime, datetime]:
        """From when until when."""
        starts_at = self.cleaned_data["starts_at"] or database_now()
        return starts_at, starts_at + timedelta(hours=self.cleaned_data["hours"])
