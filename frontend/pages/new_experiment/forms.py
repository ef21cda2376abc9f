"""An experiment, as a form, and one of its variants."""

from __future__ import annotations

from typing import Any, cast

from django import forms
from django.urls import reverse

from experiments.analysis.limits import MIN_FOR_VERDICT
from experiments.asking.launching.choices import Candidate
from experiments.asking.launching.launch import EXPERIMENT_RETRIES
from experiments.models import Experiment, Workload
from experiments.registry.documents.own_load import OWN_LOAD
from experiments.registry.documents.standing_metric import standing_metric
from experiments.registry.experiments.rules import Rules
from frontend.pages.new_experiment.sweep import contradiction
from frontend.shared.forms.choices import TeamChoices
from frontend.shared.forms.fields import LabelsField, PriorityField, ProfilersField, RetriesField
from frontend.shared.forms.parts import PartsForm

WORKLOADS_OWN = ("", "What the workload measures: throughput, transactions, …")


class ExperimentForm(forms.Form):
    """The question, and how its runs are repeated and judged."""

    name = forms.CharField(max_length=120)
    question = forms.CharField(
        max_length=400, required=False, widget=forms.TextInput(attrs={"placeholder": "Does … make … faster?"})
    )
    workload = forms.ModelChoiceField(Workload.objects.none(), empty_label="Choose…")
    repetitions = forms.IntegerField(
        min_value=1,
        max_value=100,
        initial=MIN_FOR_VERDICT,
        help_text=f"Of each variant. Fewer than {MIN_FOR_VERDICT} never decide: they show figures and no verdict.",
    )
    order = forms.ChoiceField(choices=Experiment.Order.choices, initial=Experiment.Order.BLOCKS)
    primary_metric = forms.ChoiceField(label="Judged by", required=False)
    margin_pct = forms.FloatField(
        min_value=0.01,
        max_value=99,
        initial=3,
        label="Margin (%)",
        help_text="A smaller difference counts as none.",
    )
    stop_rule = forms.ChoiceField(
        choices=[rule for rule in Experiment.StopRule.choices if rule[0] != Experiment.StopRule.UNTIL_NOT_WORSE],
        initial=Experiment.StopRule.FIXED,
        required=False,
        label="Stops",
        help_text="A rule starts with 5 or 8 blocks and adds more where they are needed.",
    )
    target_pct = forms.FloatField(
        required=False,
        min_value=0.01,
        max_value=99,
        label="Interval within ± (%)",
        help_text="How narrow is narrow enough; for that rule only.",
    )
    max_blocks = forms.IntegerField(
        required=False, min_value=1, max_value=100, initial=20, label="At most blocks", help_text="Where a rule ends."
    )
    max_hours = forms.FloatField(
        required=False, min_value=0.01, max_value=10000, label="At most hours", help_text="Machine time; may be empty."
    )
    aa_first = forms.BooleanField(
        required=False,
        label="A/A check first",
        help_text="Ten runs of the baseline against itself; a difference there stops the experiment.",
    )
    canaries_first = forms.BooleanField(
        required=False,
        label="Check the hosts first",
        help_text="A few seconds of CPU, disk and network: whether a host itself got slower.",
    )
    gate_metrics = forms.MultipleChoiceField(
        required=False,
        label="Must not get worse either",
        help_text="They decide beside the metric above; all are corrected for their number (Holm).",
        widget=forms.SelectMultiple(attrs={"size": 4}),
    )
    profilers = ProfilersField(
        "Each block then has a profiled twin of each run, which counts nowhere. None chosen: those of the workload."
    )
    priority = PriorityField()
    retries = RetriesField(EXPERIMENT_RETRIES)
    labels = LabelsField(required=False, help_text="key=value, one per line; every run gets them.")

    def __init__(self, choices: TeamChoices, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        chosen = self.data.get("workload") if self.is_bound else self.initial.get("workload")
        choices.fill(cast("forms.ModelChoiceField[Any]", self.fields["workload"]), "workload", str(chosen or ""))
        cast("forms.ChoiceField", self.fields["primary_metric"]).choices = [WORKLOADS_OWN, *choices.metrics()]
        cast("forms.ChoiceField", self.fields["gate_metrics"]).choices = choices.metrics()

    def clean_primary_metric(self) -> str:
        """What stands for a run of the workload, where nothing else is chosen."""
        workload = self.cleaned_data.get("workload")
        chosen = str(self.cleaned_data["primary_metric"])
        return chosen or (standing_metric(workload) if workload is not None else "")

    def rules(self) -> Rules:
        """The rules of the valid form."""
        cleaned = self.cleaned_data
        target_pct = cleaned["target_pct"]
        return Rules(
            stop_rule=cleaned["stop_rule"] or Experiment.StopRule.FIXED,
            target_ratio=None if target_pct is None else target_pct / 100,
            max_blocks=cleaned["max_blocks"] or Rules.max_blocks,
            max_hours=cleaned["max_hours"],
            aa_first=cleaned["aa_first"],
            canaries_first=cleaned["canaries_first"],
            gate_metrics=tuple(cleaned["gate_metrics"]),
        )


class VariantForm(PartsForm):
    """One row of the variants table."""

    name = forms.CharField(
        max_length=120,
        widget=forms.TextInput(attrs={"placeholder": "Name of the variant", "aria-label": "Variant name"}),
    )
    offered_rate_rps = forms.FloatField(
        required=False, min_value=1, max_value=1e9, label="Offered rate (requests/s)", help_text="Else the workload's."
    )

    concurrency = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=1_000_000,
        label="Connections or users",
        help_text="Else the workload's; whichever its load tool has.",
    )

    field_order = ("name", "application", "recipe", "sut", "drivers")

    def __init__(self, choices: TeamChoices, *args: Any, **kwargs: Any) -> None:
        super().__init__(choices, *args, **kwargs)
        # Another recipe has other parameters, another application other members with hosts of their own; both may be
        # columns of the table: all rows are drawn again.
        for name in ("application", "recipe"):
            attrs = self.fields[name].widget.attrs
            del attrs["hx-get"]
            attrs |= {
                "hx-post": reverse("new_experiment", args=[choices.team.slug]),
                "hx-target": "#variants",
                "hx-select": "#variants",
                "hx-swap": "outerHTML",
                "hx-vals": '{"refresh": "1"}',
            }

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        own = {name: cleaned[name] for name in OWN_LOAD if cleaned.get(name) is not None}
        values = {
            name: default if (value := cleaned.get(f"p_{name}")) is None else value
            for name, parameter in self.parameters.items()
            if f"p_{name}" not in self.errors and (default := parameter.default) is not None
        }
        inputs = {name: self.fields[name if name in OWN_LOAD else f"p_{name}"] for name in own | values}
        if problem := contradiction(cleaned.get("name", ""), inputs, own | values):
            self.add_error("name", problem)
        return cleaned

    def candidate(self, *, is_baseline: bool) -> Candidate:
        """The variant that the valid row describes."""
        parts = {name: self.cleaned_data[name] for name in ("name", "application", "recipe", "sut", "drivers")}
        parts |= {name: self.cleaned_data[name] for name in OWN_LOAD}
        return Candidate(parameters=self.given(), is_baseline=is_baseline, members=self.members(), **parts)

    def api_parts(self) -> dict[str, Any]:
        own = {name: self.cleaned_data[name] for name in OWN_LOAD}
        return super().api_parts() | {name: value for name, value in own.items() if value is not None}
