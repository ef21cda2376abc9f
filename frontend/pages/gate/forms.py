"""The rules of a gate as a form; the page of the gate has them in its address."""

from __future__ import annotations

import shlex
from typing import Any, cast

from django import forms

from experiments.judging.gate.rules import GateRules
from frontend.shared.forms.choices import TeamChoices

INCONCLUSIVE = (
    ("neutral", "inconclusive (exit status 2)"),
    ("pass", "pass (exit status 0)"),
    ("fail", "fail (exit status 1)"),
)


class GateForm(forms.Form):
    """Other rules than the experiment's own; what stays empty is as in the experiment."""

    metric = forms.MultipleChoiceField(
        required=False,
        label="Decided by",
        help_text="None chosen: the experiment's own. Several are corrected for their number (Holm).",
        widget=forms.SelectMultiple(attrs={"size": 5}),
    )
    margin_pct = forms.FloatField(
        required=False, min_value=0.01, max_value=99, label="Margin (%)", help_text="Smaller changes are none."
    )
    inconclusive = forms.ChoiceField(
        required=False, choices=INCONCLUSIVE, initial="neutral", label="Too little data counts as"
    )
    baseline = forms.CharField(
        required=False,
        max_length=300,
        label="Baseline",
        help_text="Empty: the baseline variant. Else branch:main, label:KEY=VALUE, tag:release, pinned:NAME or run:12.",
        widget=forms.TextInput(attrs={"placeholder": "branch:main"}),
    )

    def __init__(self, choices: TeamChoices, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        cast("forms.ChoiceField", self.fields["metric"]).choices = choices.metrics()

    def rules(self) -> GateRules:
        """The rules of the valid form."""
        cleaned = self.cleaned_data
        margin_pct = cleaned["margin_pct"]
        return GateRules(
            metrics=tuple(cleaned["metric"]),
            margin_ratio=None if margin_pct is None else margin_pct / 100,
            inconclusive=cleaned["inconclusive"] or "neutral",
            baseline=cleaned["baseline"].strip(),
        )


def command_line(experiment_id: int, rules: GateRules) -> str:
    """The same question from a pipeline."""
    words = ["python3", "benchhub-ci", "gate", f"experiment:{experiment_id}"]
    for metric in rules.metrics:
        words += ["--metric", metric]
    if rules.margin_ratio is not None:
        words += ["--margin", f"{rules.margin_ratio * 100:g}"]
    if rules.inconclusive != "neutral":
        words += ["--inconclusive", rules.inconclusive]
    if rules.baseline:
        words += ["--baseline", rules.baseline]
    return shlex.join(words)
