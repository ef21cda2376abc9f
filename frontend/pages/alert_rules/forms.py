"""A rule for alerts, as a form."""

from __future__ import annotations

from typing import Any, cast

from django import forms

from experiments.judging.alerts.saving_rules import WantedRule
from experiments.models import AlertRule, Team, Workload
from frontend.shared.forms.choices import TeamChoices
from frontend.shared.forms.fields import LabelsField


class RuleForm(forms.Form):
    """One rule. The figure, the side and the limit are of rules about figures alone."""

    name = forms.CharField(max_length=120, widget=forms.TextInput(attrs={"placeholder": "p99 of the checkout"}))
    kind = forms.ChoiceField(label="Tell us when", choices=AlertRule.Kind.choices, initial=AlertRule.Kind.FIGURE)
    metric = forms.ChoiceField(label="Figure", required=False, help_text="Of rules about a figure.")
    side = forms.ChoiceField(label="Is", required=False, choices=AlertRule.Side.choices, initial=AlertRule.Side.ABOVE)
    limit = forms.FloatField(label="Limit", required=False, help_text="In the unit of the figure: ms for latencies.")
    workload = forms.CharField(
        max_length=120,
        required=False,
        help_text="Its name; empty: every workload.",
        widget=forms.TextInput(attrs={"list": "rule-workloads", "autocomplete": "off"}),
    )
    labels = LabelsField(required=False, help_text="key=value, one per line; only runs that have all of them.")
    is_active = forms.BooleanField(required=False, initial=True, label="Switched on")

    def __init__(self, team: Team, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        cast("forms.ChoiceField", self.fields["metric"]).choices = [("", "—"), *TeamChoices(team).metrics()]
        names = Workload.objects.for_team(team).newest_versions().values_list("name", flat=True)
        self.workloads = sorted(names)

    def wanted(self) -> WantedRule:
        """What the valid form says."""
        return WantedRule(**self.cleaned_data)
