"""A schedule as a form: what is launched, and when by which clock."""

from __future__ import annotations

import re
from datetime import time
from typing import Any, cast
from zoneinfo import available_timezones

from django import forms

from experiments.asking.schedules.clock import MOST_CHARS
from experiments.asking.schedules.saving import Plan
from experiments.models import Experiment, Run, Team
from frontend.shared.forms.fields import LabelsField, PriorityField

NEWEST = 100
BY_CRON = "cron"
WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
EVERY = (
    ("*", "every day"),
    ("1-5", "Monday to Friday"),
    *((str(day), f"every {name}") for day, name in enumerate(WEEKDAYS)),
    (BY_CRON, "by a cron expression"),
)
"""Days of the week as cron has them, in words."""
_AT_A_TIME = re.compile(r"([0-5]?\d) ([01]?\d|2[0-3]) \* \* (\*|1-5|[0-6])")
"""Minute, hour and days of an expression that is a time of day on some days of the week."""


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
    every = forms.ChoiceField(choices=EVERY, initial="1-5", required=False, label="Days")
    at = forms.TimeField(
        required=False, initial=time(2, 30), label="At", widget=forms.TimeInput(format="%H:%M", attrs={"type": "time"})
    )
    cron = forms.CharField(
        max_length=MOST_CHARS,
        required=False,
        label="Cron expression",
        help_text="In place of a time of day. Minute, hour, day of the month, month, day of the week (0 is Sunday): "
        "30 2 * * 1-5 is 02:30 on working days, 0 */6 * * * every six hours.",
    )
    time_zone = forms.ChoiceField(initial="UTC", help_text="Daylight saving included.")
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
        if not self.is_bound and "time_zone" not in self.initial:
            self.fields["time_zone"].widget.attrs["data-browser-zone"] = ""  # the script chooses the browser's own
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

    def clean(self) -> dict[str, Any]:
        """The days and the time become an expression; one that is written counts where it was asked for."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        every, at = cleaned.pop("every", "") or BY_CRON, cleaned.pop("at", None)
        if every == BY_CRON:
            if not cleaned.get("cron") and "cron" not in self.errors:
                self.add_error("cron", "Write five fields, such as 30 2 * * 1-5, or choose days and a time above.")
        elif at is None:
            if "at" not in self.errors:
                self.add_error("at", "Give the time of day.")
        else:
            cleaned["cron"] = f"{at.minute} {at.hour} * * {every}"
        return cleaned

    def plan(self) -> Plan:
        """What the valid form says."""
        return Plan(**self.cleaned_data)


def days_and_time(expression: str) -> dict[str, Any]:
    """The fields that show an expression: days and a time where it is no more than that, else the text."""
    if found := _AT_A_TIME.fullmatch(expression):
        return {"every": found[3], "at": time(int(found[2]), int(found[1])), "cron": ""}
    return {"every": BY_CRON, "at": None, "cron": expression}


def _zones() -> list[str]:
    """UTC first, then by continent and city."""
    return ["UTC", *sorted(zone for zone in available_timezones() if "/" in zone and not zone.startswith("Etc/"))]


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 18 else None
