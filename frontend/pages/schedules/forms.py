"""A schedule as a form: what is launched, and when by which clock."""

from __future__ import annotations

from typing import Any, cast
from zoneinfo import available_timezones

from django import forms

from experiments.asking.schedules.clock import MOST_CHARS
from experiments.asking.schedules.saving import Plan
from experiments.models import Experiment, Run, Team
from frontend.shared.forms.fields import LabelsField, PriorityField

NEWEST = 100


class ScheduleForm(forms.Form):
    """One schedule."""

    name = forms.CharField(max_length=120, widget=forms.TextInput(attrs={"placeholder": "Every night"}))
    experiment = forms.ModelChoiceField(
        Experiment.objects.none(),
        required=False,
        empty_label="None: launch a run",
        help_text="Each time, a copy of it is launched.",
    )
    run = forms.IntegerField(
        required=False, min_value=1, label="Run number", help_text="Instead of an experiment: this run again."
    )
    cron = forms.CharField(
        max_length=MOST_CHARS,
        initial="30 2 * * 1-5",
        help_text="Minute, hour, day of the month, month, day of the week (0 is Sunday): 30 2 * * 1-5 is 02:30 on "
        "working days, 0 */6 * * * every six hours.",
    )
    time_zone = forms.ChoiceField(initial="UTC")
    newest_versions = forms.BooleanField(
        required=False, initial=True, label="Take the newest versions of application, recipe and workload"
    )
    skips_unchanged = forms.BooleanField(required=False, label="Skip a time when nothing changed since the last launch")
    labels = LabelsField(required=False, help_text="key=value, one per line; every run gets them.")
    priority = PriorityField()

    def __init__(self, team: Team, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.team = team
        cast(forms.ChoiceField, self.fields["time_zone"]).choices = [(zone, zone) for zone in _zones()]
        field = cast("forms.ModelChoiceField[Any]", self.fields["experiment"])
        field.queryset = Experiment.objects.for_team(team).order_by("-id")
        chosen = str(self["experiment"].value() or "")
        newest = list(field.queryset[:NEWEST])
        older = [] if chosen in {str(one.pk) for one in newest} else field.queryset.filter(pk=_number(chosen))
        field.choices = [
            ("", field.empty_label or ""),
            *((one.pk, f"{one.name} (#{one.pk})") for one in (*newest, *older)),
        ]

    def clean_run(self) -> Run | None:
        number = self.cleaned_data["run"]
        if number is None:
            return None
        found: Run | None = Run.objects.for_team(self.team).filter(number=number).first()
        if found is None:
            raise forms.ValidationError(f"There is no run #{number}.")
        return found

    def plan(self) -> Plan:
        """What the valid form says."""
        return Plan(**self.cleaned_data)


def _zones() -> list[str]:
    """UTC first, then by continent and city."""
    return ["UTC", *sorted(zone for zone in available_timezones() if "/" in zone and not zone.startswith("Etc/"))]


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 18 else None
