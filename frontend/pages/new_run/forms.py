"""One run, as a form."""

from __future__ import annotations

from django import forms

from experiments.asking.launching.choices import Choice
from experiments.models import Workload
from experiments.registry.errors import RequestError
from experiments.registry.notes.labels import check_tags
from frontend.shared.forms.fields import LabelsField, PriorityField, ProfilersField, RetriesField
from frontend.shared.forms.parts import CHOICE_FIELDS, PartsForm


class RunForm(PartsForm):
    """One run."""

    workload = forms.ModelChoiceField(Workload.objects.none(), empty_label="Choose…")
    labels = LabelsField(required=False, help_text="key=value, one per line; CI finds runs by them.")
    tags = forms.CharField(required=False, max_length=200, help_text="Words, separated by blanks or commas.")
    notes = forms.CharField(required=False, max_length=4000, widget=forms.Textarea(attrs={"rows": 2}))
    priority = PriorityField()
    retries = RetriesField(0)
    profilers = ProfilersField("With any, it is a profiled run: it counts in no verdict, trend, gate or baseline.")

    field_order = ("application", "recipe", "workload", "sut", "drivers", "labels", "tags", "notes")

    def choice(self) -> Choice:
        """What the valid form chose."""
        parts = {name: self.cleaned_data[name] for name in CHOICE_FIELDS}
        profilers = tuple(self.cleaned_data["profilers"])
        return Choice(parameters=self.given(), members=self.members(), profilers=profilers, **parts)

    def clean_tags(self) -> list[str]:
        try:
            return check_tags(self.cleaned_data["tags"].replace(",", " ").split())
        except RequestError as error:
            raise forms.ValidationError(error.message) from error
