"""A bisection as a form: what runs where, and the candidates in order."""

from __future__ import annotations

from typing import Any, cast

from django import forms

from experiments.analysis.sequential import LOOKS
from experiments.asking.bisections.plan import BisectionPlan, versions_between
from experiments.models import Workload
from frontend.shared.forms.choices import TeamChoices
from frontend.shared.forms.fields import LabelsField, PriorityField
from frontend.shared.forms.parts import CHOICE_FIELDS, PartsForm


class BisectionForm(PartsForm):
    """One bisection: values of a parameter of the recipe, or versions of the recipe."""

    name = forms.CharField(max_length=120, widget=forms.TextInput(attrs={"placeholder": "What slowed the home page?"}))
    workload = forms.ModelChoiceField(Workload.objects.none(), empty_label="Choose…")
    parameter = forms.CharField(
        required=False,
        max_length=60,
        help_text="The recipe's parameter that takes each candidate, such as commit.",
        widget=forms.TextInput(attrs={"placeholder": "commit", "spellcheck": "false"}),
    )
    candidates = forms.CharField(
        required=False,
        max_length=40_000,
        help_text="Its values in order, one a line: the good one first, the bad one last.",
        widget=forms.Textarea(attrs={"rows": 6, "spellcheck": "false", "placeholder": "4f2c9d1\n8a01b33\nc77e012"}),
    )
    good_version = forms.IntegerField(
        required=False, min_value=1, help_text="Instead of a parameter: versions of the recipe."
    )
    bad_version = forms.IntegerField(required=False, min_value=1)
    metric = forms.ChoiceField(label="Judged by")
    margin_pct = forms.FloatField(
        min_value=0.01, max_value=99, initial=3, label="Margin (%)", help_text="A smaller loss counts as none."
    )
    max_blocks = forms.IntegerField(
        min_value=LOOKS[0],
        max_value=LOOKS[-1],
        initial=LOOKS[-1],
        label="At most pairs of runs a step",
        help_text=f"Each step begins with {LOOKS[0]} and adds more while it is unclear.",
    )
    labels = LabelsField(required=False, help_text="key=value, one per line; every run gets them.")
    priority = PriorityField()

    def __init__(self, choices: TeamChoices, *args: Any, **kwargs: Any) -> None:
        super().__init__(choices, *args, **kwargs)
        cast("forms.ChoiceField", self.fields["metric"]).choices = choices.metrics()

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        by_version = bool(cleaned.get("good_version") and cleaned.get("bad_version"))
        if by_version == bool(cleaned.get("parameter")):
            raise forms.ValidationError("Give a parameter and its values, or a good and a bad version of the recipe.")
        return cleaned

    def plan(self) -> BisectionPlan:
        """What the valid form says. RequestError when the recipe lacks a version."""
        cleaned = self.cleaned_data
        if cleaned["parameter"]:
            order = [line.strip() for line in cleaned["candidates"].splitlines() if line.strip()]
        else:
            order = versions_between(cleaned["recipe"], cleaned["good_version"], cleaned["bad_version"])
        same = ("name", "parameter", "metric", "max_blocks", "labels", "priority", *CHOICE_FIELDS)
        given = self.given()
        given.pop(cleaned["parameter"], None)
        return BisectionPlan(
            **{name: cleaned[name] for name in same},
            parameters=given,
            labels_in_order=order,
            members=self.members(),
            margin_ratio=cleaned["margin_pct"] / 100,
        )
