"""A search as a form: what is searched, where, under which objective."""

from __future__ import annotations

from typing import Any

from django import forms

from experiments.analysis.search import DEFAULT_WIDTH_RATIO
from experiments.asking.launching.choices import Choice
from experiments.asking.searches.live import LARGEST_RPS, OBJECTIVES
from experiments.models import Workload
from experiments.registry.metrics.vocabulary import METRICS
from frontend.shared.api_call import versioned
from frontend.shared.forms.fields import LabelsField, PriorityField
from frontend.shared.forms.parts import CHOICE_FIELDS, PartsForm


class SearchForm(PartsForm):
    """One search. The workload's own rate does not matter: every trial sets its own."""

    name = forms.CharField(max_length=120, widget=forms.TextInput(attrs={"placeholder": "Capacity of the home page"}))
    workload = forms.ModelChoiceField(
        Workload.objects.none(),
        empty_label="Choose…",
        help_text="Its load tool must be able to offer a rate: wrk2, k6, vegeta, oha, h2load, …",
    )
    objective_metric = forms.ChoiceField(
        choices=[(name, METRICS[name].label) for name in OBJECTIVES], initial="latency_p99_ms", label="Objective"
    )
    objective_ms = forms.FloatField(min_value=0.001, max_value=3_599_999, label="At most (ms)")
    low_rps = forms.FloatField(
        min_value=0.001,
        max_value=LARGEST_RPS,
        label="Should pass (requests/s)",
        help_text="Tried first; smaller ones follow until one passes.",
    )
    high_rps = forms.FloatField(
        min_value=0.001,
        max_value=LARGEST_RPS,
        label="Should fail (requests/s)",
        help_text="Tried next; larger ones follow until one fails.",
    )
    width_pct = forms.FloatField(
        min_value=0.1,
        max_value=50,
        initial=DEFAULT_WIDTH_RATIO * 100,
        label="Width of the answer (%)",
        help_text="Take twice the spread between equal runs, at least 2 %.",
    )
    priority = PriorityField()
    labels = LabelsField(required=False, help_text="key=value, one per line; every trial gets them.")

    def choice(self) -> Choice:
        """What the valid form chose."""
        parts = {name: self.cleaned_data[name] for name in CHOICE_FIELDS}
        return Choice(parameters=self.given(), members=self.members(), **parts)

    def settings(self) -> dict[str, Any]:
        """The other arguments of `start_search`."""
        names = ("name", "objective_metric", "objective_ms", "low_rps", "high_rps", "labels", "priority")
        return {name: self.cleaned_data[name] for name in names} | {"width_ratio": self.cleaned_data["width_pct"] / 100}

    def api_body(self) -> dict[str, Any]:
        """The equal body of POST /searches."""
        body = {**self.api_parts(), "workload": versioned(self.cleaned_data["workload"]), **self.settings()}
        del body["priority"]
        return body if body["labels"] else {key: value for key, value in body.items() if key != "labels"}
